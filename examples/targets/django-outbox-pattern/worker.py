"""django-outbox-pattern on SQLite: rows of its table Published, sent by its own Producer.

The package sends to a STOMP broker. Its setting DEFAULT_CONNECTION_CLASS takes another class for that, here one that POSTs.
"""

import json
import sys
import urllib.request

import django
from django.conf import settings
from django.core.management import call_command
from stomp.exception import StompException


class HttpConnection:
    """What the package calls of a connection, over HTTP: a message that was not accepted raises StompException."""

    def __init__(self, **parameters):
        pass

    def is_connected(self):
        return True

    def disconnect(self):
        pass

    def send(self, body, destination, headers):
        headers = {"Content-Type": "application/json", "Idempotency-Key": json.loads(body)["job"]}
        try:
            urllib.request.urlopen(urllib.request.Request(destination, body.encode(), headers), timeout=5).close()
        except OSError as error:
            raise StompException(error) from error


settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "queue.db"}},
    INSTALLED_APPS=["django_outbox_pattern"],
    USE_TZ=True,
    DJANGO_OUTBOX_PATTERN={
        "DEFAULT_CONNECTION_CLASS": "__main__.HttpConnection",
        "DEFAULT_PAUSE_FOR_RETRY": 0.2,  # its default is four minutes
        "DEFAULT_WAIT_RETRY": 0.2,
        "DEFAULT_PRODUCER_WAITING_TIME": 0,
    },
)
django.setup()

from django_outbox_pattern.choices import StatusChoice  # noqa: E402 - models can be imported once Django is set up
from django_outbox_pattern.factories import factory_producer  # noqa: E402
from django_outbox_pattern.models import Published  # noqa: E402


def work():
    """What its command `publish` does, until nothing is scheduled."""
    producer = factory_producer()
    while Published.objects.filter(status=StatusChoice.SCHEDULE).exists():
        producer.publish_message_from_database()


if __name__ == "__main__":
    if sys.argv[1] == "setup":
        call_command("migrate", verbosity=0)
    elif sys.argv[1] == "enqueue":
        Published.objects.create(destination=sys.argv[3], body={"job": sys.argv[2]})
    else:
        work()
