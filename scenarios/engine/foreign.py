"""Runs somebody else's Python program in a fork, as `python SCRIPT …` or `python -m MODULE …` would run it.

The fork has modules loaded that the program would import anyway, so it starts in milliseconds. What a program can see of that
is put right before it begins: `sys.path`, `sys.argv`, `__main__`, a `sitecustomize` of its environment; our own modules are not
there. It ends as Python ends: threads are waited for, exit functions are called, `__main__` is cleared, an unhandled exception
is told by `sys.excepthook` and gives exit code 1. Not imitated are options of the interpreter: who needs them is not forked.
"""

import atexit
import contextlib
import gc
import importlib
import importlib.machinery
import io
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

_OWN = ("scenarios", "outbox", "receivers", "audit")
_SITE = "sitecustomize"
UNFLUSHED_EXIT_CODE = 120
_codes: dict[str, tuple[tuple[int, int], CodeType]] = {}


def can_fork(argv: Sequence[str], python: str) -> bool:
    """Whether this is a command that `run` knows: this interpreter, no options of it, a script or a module."""
    if len(argv) < 2 or argv[0] != python or python != sys.executable:
        return False
    return len(argv) > 2 if argv[1] == "-m" else argv[1].endswith(".py")


def preload(names: Sequence[str]) -> None:
    """In the spawner: import what programs will import. What cannot be imported is left to them."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def prepare(argv: Sequence[str], directory: str) -> None:
    """In the spawner: compile the script, so that its forks need not. What does not compile is told by the fork."""
    if argv[1] != "-m":
        with contextlib.suppress(OSError, SyntaxError, ValueError):
            _compiled(_joined(directory, argv[1]))


def _compiled(path: str) -> CodeType:
    status = os.stat(path)  # noqa: PTH116 - paths are text here, as Python has them
    mark = (status.st_mtime_ns, status.st_size)
    known = _codes.get(path)
    if known is None or known[0] != mark:
        source = importlib.machinery.SourceFileLoader("__main__", path).get_data(path)
        known = _codes[path] = (mark, compile(source, path, "exec", dont_inherit=True))
    return known[1]


def _joined(directory: str, path: str) -> str:
    return os.path.join(directory, path)  # noqa: PTH118


def run(argv: Sequence[str], ours: Sequence[str]) -> int:
    """Run the command; its exit code. The working directory and the environment are those of the program already. `ours` are
    the entries of `sys.path` that are there for the spawner; the first is where the harness lies."""
    main = _stage(argv, ours)
    code = _end_of(lambda: _execute(argv, main))
    # What Python does at its end, in its order.
    _end_of(threading._shutdown)  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    flushed = _flushed()
    main.__dict__.clear()
    gc.collect()
    return code if _flushed() and flushed else UNFLUSHED_EXIT_CODE


def _stage(argv: Sequence[str], ours: Sequence[str]) -> ModuleType:
    """Make everything look as at the start of an interpreter."""
    own = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]  # noqa: PTH100
    if not set(ours[:1]) & set(own):
        for name in [each for each in sys.modules if each.partition(".")[0] in _OWN]:
            del sys.modules[name]
    sys.path[:] = [*own, *(each for each in sys.path if each not in ours and each not in own)]
    sys.argv = list(argv[1:]) if argv[1] != "-m" else ["-m", *argv[3:]]
    sys.orig_argv = list(argv)
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = main
    if own:
        _site()
    first = str(Path.cwd() if argv[1] == "-m" else Path(argv[1]).resolve().parent)
    sys.path.insert(0, first)
    return main


def _site() -> None:
    """Import the `sitecustomize` of the program's environment, as Python does at its start."""
    before = sys.modules.pop(_SITE, None)
    try:
        importlib.import_module(_SITE)
    except ModuleNotFoundError as error:
        if error.name != _SITE:
            traceback.print_exc()
    except Exception:
        traceback.print_exc()  # and Python goes on
    if before is not None:
        sys.modules.setdefault(_SITE, before)


def _execute(argv: Sequence[str], main: ModuleType) -> None:
    if argv[1] == "-m":
        runpy._run_module_as_main(argv[2], alter_argv=True)  # type: ignore[attr-defined]
        return
    path = argv[1]
    whole = _joined(str(Path.cwd()), path)
    try:
        code = _compiled(whole)
    except OSError as error:
        print(f"{sys.executable}: can't open file {whole!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    names = main.__dict__
    names.update(__file__=path, __cached__=None, __annotations__={})
    names["__loader__"] = importlib.machinery.SourceFileLoader("__main__", path)
    exec(code, names)  # noqa: S102 - it is what we are for


def _end_of(work: Callable[[], object]) -> int:
    """Do it, and return the exit code that Python would have."""
    try:
        work()
    except SystemExit as request:
        return _code_of(request.code)
    except KeyboardInterrupt as error:
        _tell(error)
        _flushed()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        return 1
    except BaseException as error:
        _tell(error)
        return 1
    return 0


def _code_of(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    _flushed()
    print(code, file=sys.stderr)
    return 1


def _tell(error: BaseException) -> None:
    """Tell of an exception that nobody handled, without our own frames."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    except BaseException:
        traceback.print_exc()


def _flushed() -> bool:
    """Flush what was printed; whether it could be delivered."""
    whole = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if isinstance(stream, io.IOBase) and not stream.closed:
                stream.flush()
        except (OSError, ValueError):
            whole = False
    return whole
