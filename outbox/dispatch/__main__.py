"""`python -m outbox.dispatch`; see `outbox.dispatch.cli`."""

import sys

from outbox.dispatch.cli import main

if __name__ == "__main__":
    sys.exit(main())
