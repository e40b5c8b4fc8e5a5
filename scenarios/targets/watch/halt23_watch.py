"""Watches the lines of somebody else's program from inside its process: lists them, and halts at one.

Asked by a JSON object: `packages` are the Python packages whose lines count, `scripts` the files that count besides, with their
names; `halt` is a place, a line and an occurrence (from 1): there the process ends with 23, after one line on standard error and
in the file `witness`. `lines` is a file to which each line that is about to be executed is appended, as `huey.storage:412
huey/storage.py name`, but no line more than `most` times; `modules` one to which each imported module is appended, with the file that it came from.

Only lines of functions count: what runs while a module or a class is defined does not. Every thread counts, and every process
that was forked off, by a count of its own. From Python 3.12 on it watches by `sys.monitoring`, before by `sys.settrace`.
Standard library only; Python 3.8 and later.
"""

import atexit
import itertools
import json
import os
import sys
import threading
from inspect import CO_OPTIMIZED

HALT_EXIT_CODE = 23
CANNOT_LIST_EXIT_CODE = 70


def begin(asked):
    """Begin to watch this process as the JSON object `asked` says."""
    wanted = json.loads(asked)
    if wanted.get("modules"):
        _list_modules(wanted["modules"])
    if wanted.get("halt") or wanted.get("lines"):
        _begin(_Watch(wanted))


def _name(code):
    return getattr(code, "co_qualname", code.co_name)


class _Watch:
    def __init__(self, wanted):
        self._packages = tuple(wanted.get("packages", ()))
        self._scripts = wanted.get("scripts", {})
        self._halt = wanted.get("halt")
        self._witness = wanted.get("witness")
        self._most = wanted.get("most", 1000)
        self._listing = _append_to(wanted["lines"]) if wanted.get("lines") else None
        self._left = itertools.count(1)  # threads count at once; next() of this is one step for the interpreter
        self._counts = {}
        self._places = {}

    def place(self, path):
        """What the file is called, and its path there; None where its lines do not count. Asked at every call, so it is kept."""
        try:
            return self._places[path]
        except KeyError:
            place = self._find(path)
            if self._listing is None and place is not None and (self._halt is None or place[0] != self._halt[0]):
                place = None
            return self._places.setdefault(path, place)

    def _find(self, path):
        if path.startswith("<"):
            return None
        path = os.path.abspath(path)
        script = self._scripts.get(path) or self._scripts.get(os.path.realpath(path))
        if script is not None:
            return script, script
        if not path.endswith(".py"):
            return None
        # The longest entry that it lies in is where it was imported from.
        for entry in sorted((os.path.abspath(each) for each in sys.path), key=len, reverse=True):
            if path.startswith(entry + os.sep):
                inner = path[len(entry) + 1 :]
                parts = inner[: -len(".py")].split(os.sep)
                module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                if any(module == each or module.startswith(each + ".") for each in self._packages):
                    return module, inner.replace(os.sep, "/")
        return None

    def wants(self, code):
        """Whether lines of this code, whose file counts, are to be told of."""
        if not code.co_flags & CO_OPTIMIZED:
            return False
        return self._listing is not None or self._halt[1] in _numbers(code)

    def line(self, place, number, code):
        """A line is about to be executed. False: it need not be told of again."""
        again = False
        if self._listing is not None:
            count = self._counts[code, number] = self._counts.get((code, number), 0) + 1
            if count <= self._most:
                again = True
                self._append(place, number, code)
        halt = self._halt
        if halt is None or number != halt[1] or place[0] != halt[0]:
            return again
        if next(self._left) == halt[2]:
            self._end(place, code)
        return True

    def _append(self, place, number, code):
        try:
            os.write(self._listing, "{}:{} {} {}\n".format(place[0], number, place[1], _name(code)).encode())
        except OSError as error:  # a list with a hole in it would be believed
            os.write(2, "halt23: the list of lines cannot be written: {}\n".format(error.strerror).encode())
            os._exit(CANNOT_LIST_EXIT_CODE)

    def _end(self, place, code):
        line = "halt(23) at {}:{}#{} in {}\n".format(*self._halt, _name(code))
        if self._witness:
            os.write(_append_to(self._witness), "{} {}\n".format(place[1], _name(code)).encode())
        try:
            os.write(2, line.encode())
        except OSError:  # nobody may be reading any more
            pass
        os._exit(HALT_EXIT_CODE)


def _append_to(path):
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _numbers(code):
    if hasattr(code, "co_lines"):
        return [line for _start, _end, line in code.co_lines()]
    import dis

    return [line for _offset, line in dis.findlinestarts(code)]


def _begin(watch):
    if sys.version_info >= (3, 12):
        _monitor(watch)
    else:
        _trace(watch)


def _trace(watch):
    known = watch.place

    def line(frame, event, _argument):
        if event == "line":
            code = frame.f_code
            watch.line(known(code.co_filename), frame.f_lineno, code)
        return line

    def call(frame, _event, _argument):
        code = frame.f_code
        return line if known(code.co_filename) is not None and watch.wants(code) else None

    threading.settrace(call)
    sys.settrace(call)


def _monitor(watch):
    monitoring, events = sys.monitoring, sys.monitoring.events
    tool = next(number for number in range(6) if monitoring.get_tool(number) is None)
    monitoring.use_tool_id(tool, "halt23")

    def started(code, _offset):
        if watch.place(code.co_filename) is not None and watch.wants(code):
            monitoring.set_local_events(tool, code, events.LINE)
        return monitoring.DISABLE

    def line(code, number):
        return None if watch.line(watch.place(code.co_filename), number, code) else monitoring.DISABLE

    monitoring.register_callback(tool, events.PY_START, started)
    monitoring.register_callback(tool, events.LINE, line)
    monitoring.set_events(tool, events.PY_START)


def _list_modules(path):
    """Append each module once it is imported, in the order in which the imports began."""
    descriptor, begun = _append_to(path), []

    def tell():
        told, begun[:] = begun[:], []
        for name in told:
            spec = getattr(sys.modules.get(name), "__spec__", None)
            if spec is not None:
                os.write(descriptor, "{}\t{}\n".format(name, getattr(spec, "origin", None) or "").encode())

    class Finder:
        """Finds nothing; it is only asked."""

        @staticmethod
        def find_spec(name, _path=None, _target=None):
            begun.append(name)
            return None

    sys.meta_path.insert(0, Finder)
    atexit.register(tell)
