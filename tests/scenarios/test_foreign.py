"""Somebody else's Python program in a fork: it sees and does what it would see and do in an interpreter of its own."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from scenarios.engine import foreign
from scenarios.engine.supervisor import Command, Ending, Supervisor
from tests.support import ProcessBox

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
PROGRAMS = {
    "what it sees": "import sys; print(__name__, __file__, sys.argv, sys.path[0], 'scenarios' in sys.modules, __spec__)",
    "a code": "import sys; print('before'); sys.exit(7)",
    "a large code": "import sys; sys.exit(259)",
    "words": "import sys; sys.exit('it gave up')",
    "nothing": "import sys; sys.exit()",
    "an exception": "def f():\n    raise ValueError('a bug')\nf()",
    "its own hook": "import sys\nsys.excepthook = lambda kind, *_: print('hooked', kind.__name__)\n1 / 0",
    "an interrupt": "raise KeyboardInterrupt",
    "a syntax error": "print('never'",
    "a thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), print(1))).start()\nprint('main')",
    "at its end": "import atexit\natexit.register(print, 'goodbye')\nprint('hello')",
    "what it leaves": "class A:\n    def __del__(self): print('gone')\na = A()\nprint('end')",
    "a sibling": "import beside; print(beside.NAME, beside.__file__)",
    "an import from cwd": "try:\n    import here\nexcept ImportError as error:\n    print(error)",
    "closed output": "import sys; sys.stdout.close()",
}


@pytest.fixture(scope="module")
def box() -> Iterator[ProcessBox]:
    with ProcessBox("fork") as opened:
        yield opened


async def ran(supervisor: Supervisor, command: Command) -> tuple[Ending, str, str]:
    child = await supervisor.start(command)
    ending = await child.wait(20)
    return ending, child.stdout.text(), child.stderr.text()


def both(box: ProcessBox, argv: tuple[str, ...], directory: Path) -> list[tuple[object, ...]]:
    """How it ends and what it says: executed, and in a fork."""
    found: list[tuple[object, ...]] = []
    for forked in (False, True):
        command = Command((sys.executable, *argv), directory, ENVIRONMENT, forked)
        ending, stdout, stderr = box.do(ran(box._supervisor, command))
        found.append((ending.exit_code, ending.signal, stdout, stderr))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_in_a_fork_is_the_same_program(box: ProcessBox, tmp_path: Path, name: str) -> None:
    place, directory = tmp_path / "programs", tmp_path / "cwd"
    place.mkdir()
    directory.mkdir()
    (place / "program.py").write_text(PROGRAMS[name] + "\n")
    (place / "beside.py").write_text("NAME = __name__\n")
    (directory / "here.py").write_text("")
    executed, forked = both(box, (str(place / "program.py"), "one", "-x"), directory)
    assert forked == executed


@pytest.mark.parametrize("module", ["package", "package.inner", "package.absent", "single"])
def test_a_module_in_a_fork_is_the_same_program(box: ProcessBox, tmp_path: Path, module: str) -> None:
    (tmp_path / "package").mkdir()
    for name in ("package/__init__", "package/__main__", "package/inner", "single"):
        (tmp_path / f"{name}.py").write_text("import sys\nprint(__name__, __package__, __spec__.name, sys.argv, sys.path[0])\n")
    executed, forked = both(box, ("-m", module, "one"), tmp_path)
    assert forked == executed


def test_a_script_that_is_not_there_is_told_as_python_tells_it(box: ProcessBox, tmp_path: Path) -> None:
    executed, forked = both(box, ("absent.py",), tmp_path)
    assert forked == executed
    assert executed[0] == 2


def test_a_script_that_changed_is_not_the_one_that_was_compiled(box: ProcessBox, tmp_path: Path) -> None:
    for said in ("one", "another"):
        (tmp_path / "program.py").write_text(f"print({said!r})\n")
        assert both(box, (str(tmp_path / "program.py"),), tmp_path)[1][2] == f"{said}\n"


@pytest.mark.parametrize(
    "argv", [("python", "x.py"), (sys.executable, "-u", "x.py"), (sys.executable,), (sys.executable, "-m")]
)
def test_what_another_interpreter_or_its_options_are_needed_for_is_not_forked(argv: tuple[str, ...]) -> None:
    assert not foreign.can_fork(argv, sys.executable)


@pytest.mark.parametrize("forked", [False, True])
@pytest.mark.parametrize("leaves", ["child", "daemon"])
def test_who_is_left_behind_is_counted_and_ended(box: ProcessBox, tmp_path: Path, leaves: str, *, forked: bool) -> None:
    program = """
        import os, sys, time
        read, write = os.pipe()
        if os.fork() == 0:
            if sys.argv[1] == "daemon":
                os.setsid()
            open("pid", "w").write(str(os.getpid()))
            os.write(write, b"!")
            time.sleep(3600)
        os.read(read, 1)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    command = Command((sys.executable, str(tmp_path / "program.py"), leaves), tmp_path, ENVIRONMENT, forked)
    ending, _stdout, _stderr = box.do(ran(box._supervisor, command))
    assert (ending.exit_code, ending.left) == (0, 1)
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_nobody_is_counted_where_nobody_is_left(box: ProcessBox, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import subprocess; subprocess.run(['true'])\n")
    command = Command((sys.executable, str(tmp_path / "program.py")), tmp_path, ENVIRONMENT, forked=True)
    assert box.do(ran(box._supervisor, command))[0].left == 0


def test_no_file_can_fill_the_disk(box: ProcessBox, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os\nos.truncate(os.open('big', os.O_CREAT | os.O_RDWR), 1 << 29)\n")
    command = Command((sys.executable, str(tmp_path / "program.py")), tmp_path, ENVIRONMENT, forked=True)
    ending, _stdout, stderr = box.do(ran(box._supervisor, command))
    assert ending.exit_code == 1
    assert "File too large" in stderr


def test_a_command_that_is_no_program_says_so(box: ProcessBox, tmp_path: Path) -> None:
    ending, _stdout, stderr = box.do(ran(box._supervisor, Command(("no-such-program",), tmp_path, ENVIRONMENT)))
    assert ending.exit_code == 70
    assert stderr == "no-such-program: cannot be started: No such file or directory\n"
