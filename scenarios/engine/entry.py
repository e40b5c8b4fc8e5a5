"""How a program of ours is entered: its `main` is called as `python -m MODULE` would, and its end gives an exit code."""

import importlib
import importlib.util
import os
import signal
import sys
import traceback
from collections.abc import Sequence

from outbox.errors import BadInput
from scenarios.engine import lines


def entry_module(module: str) -> str:
    """The module whose `main` is run by `python -m MODULE`: of a package, its `__main__`."""
    spec = importlib.util.find_spec(module)
    return f"{module}.__main__" if spec is not None and spec.submodule_search_locations else module


def run_entry(module: str, arguments: Sequence[str]) -> int:
    """Call the program's `main` as `python -m MODULE` would run it, and return its exit code."""
    try:
        main = importlib.import_module(entry_module(module)).main
        with lines.watched(os.environ):
            code = main(list(arguments))
    except BadInput as error:
        print(error, file=sys.stderr)
        code = 2
    except SystemExit as request:
        code = request.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
            code = 1
    except KeyboardInterrupt:
        traceback.print_exc()
        sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return int(code or 0)
