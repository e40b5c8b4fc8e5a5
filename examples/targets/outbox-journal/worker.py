"""halt23's own outbox on journals: its producer, and passes of its dispatcher until one has nothing left to do."""

import json
import sys
import time
from urllib.parse import urlsplit

from outbox import dispatcher, producer


def enqueue(job):
    """Persist an intention."""
    return producer.main(["--dir", "outbox", "--key", job, "--body", json.dumps({"job": job})])


def work(url):
    """Make passes until all is delivered, or until a pass met what no other pass can mend."""
    where = urlsplit(url)
    again = {dispatcher.EXIT_UNAVAILABLE, dispatcher.EXIT_UNKNOWN}
    while (code := dispatcher.main(["--dir", "outbox", "--receiver", f"http://{where.netloc}"])) in again:
        time.sleep(0.1)
    return code


if __name__ == "__main__":
    sys.exit(enqueue(sys.argv[2]) if sys.argv[1] == "enqueue" else work(sys.argv[2]))
