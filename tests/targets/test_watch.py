"""The watch inside somebody else's Python: it lists and halts, and is not to be seen."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from scenarios.targets.commands import WATCH, WATCH_VARIABLE, Watched

PROGRAM = """
    import os, sys, threading
    import package

    def twice():
        for _ in range(2):
            package.step()

    if __name__ == "__main__":
        thread = threading.Thread(target=twice)
        thread.start()
        thread.join()
        twice()
        print("done", os.environ.get("PYTHONPATH"), [each for each in sys.path if "watch" in each], sys.argv)
"""
PACKAGE = "AT_IMPORT = 1\n\n\ndef step():\n    return AT_IMPORT\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text(PACKAGE)
    return tmp_path


def run(place: Path, watched: Watched | None, more: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(WATCH), **(more or {})}
    if watched is not None:
        environment[WATCH_VARIABLE] = watched.setting
    command = [sys.executable, str(place / "program.py"), "x"]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=20, check=False)


def test_lines_of_functions_are_listed_by_module_and_by_script(place: Path) -> None:
    listing = place / "lines"
    ended = run(place, Watched(("package",), {str(place / "program.py"): "program.py"}, lines=listing))
    assert ended.returncode == 0, ended.stderr
    lines = listing.read_text().splitlines()
    assert lines.count("package:5\tpackage/__init__.py\tstep") == 4
    assert lines.count("program.py:7\tprogram.py\ttwice") == 4
    assert not [line for line in lines if line.startswith("package:1 ")]


def test_no_line_is_listed_more_often_than_asked(place: Path) -> None:
    assert run(place, Watched(("package",), {}, lines=place / "lines", most=3)).returncode == 0
    assert (place / "lines").read_text().splitlines().count("package:5\tpackage/__init__.py\tstep") == 3


def test_it_halts_at_an_occurrence_and_says_where(place: Path) -> None:
    ended = run(place, Watched(("package",), {}, halt=("package", 5, 3), witness=place / "witness"))
    assert (ended.returncode, ended.stdout) == (23, "")
    assert ended.stderr == "halt(23) at package:5#3 in step\n"
    assert (place / "witness").read_text() == "package/__init__.py\tstep\n"


def test_what_is_not_reached_changes_nothing(place: Path) -> None:
    ended = run(place, Watched(("package",), {}, halt=("package", 5, 99), witness=place / "witness"))
    assert (ended.returncode, ended.stderr, (place / "witness").exists()) == (0, "", False)


def test_the_program_sees_neither_folder_nor_variable(place: Path) -> None:
    ended = run(place, None)
    assert ended.stdout == f"done None [] ['{place / 'program.py'}', 'x']\n"


def test_a_sitecustomize_of_the_environment_is_imported_all_the_same(place: Path) -> None:
    (place / "site").mkdir()
    (place / "site" / "sitecustomize.py").write_text("print('theirs', __name__)\n")
    ended = run(place, None, {"PYTHONPATH": os.pathsep.join((str(WATCH), str(place / "site")))})
    assert ended.stdout.splitlines()[0] == "theirs sitecustomize"
    assert ended.stdout.splitlines()[1].startswith(f"done {place / 'site'} []")


def test_modules_are_listed_with_where_they_come_from(place: Path) -> None:
    run(place, Watched((), {}, modules=place / "modules"))
    listed = dict(line.split("\t") for line in (place / "modules").read_text().splitlines())
    assert listed["package"] == str(place / "package" / "__init__.py")


def test_where_a_forked_process_halts_its_whole_group_dies(place: Path) -> None:
    (place / "program.py").write_text(
        "import os, time\nimport package\nif os.fork() == 0:\n    package.step()\ntime.sleep(60)\n"
    )
    watched = Watched(("package",), {}, halt=("package", 5, 1), witness=place / "witness")
    environment = {"PYTHONPATH": str(WATCH), WATCH_VARIABLE: watched.setting}
    process = subprocess.Popen(
        [sys.executable, str(place / "program.py")],
        cwd=place,
        env=environment,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    assert process.wait(20) == -9
    assert (place / "witness").exists()


def test_it_needs_nothing_but_the_standard_library() -> None:
    program = "import sys; sys.path.insert(0, sys.argv[1]); import halt23_watch, sitecustomize"
    command = [sys.executable, "-S", "-c", program, str(WATCH)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 0, ended.stderr


def test_what_takes_lines_out_of_sight_is_listed(place: Path) -> None:
    (place / "program.py").write_text("import subprocess, sys\nsubprocess.run(['true'])\nsys.settrace(None)\n")
    run(place, Watched((), {}, modules=place / "modules"))
    told = [line for line in (place / "modules").read_text().splitlines() if line.startswith("!")]
    assert told == ["!starts\ttrue", *(["!traces\t"] if sys.version_info < (3, 12) else [])]
