"""The command: arguments, folders of archives, verdict lines, exit codes, and what the audit may import."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.cli import main
from audit.inventory import CHECKOUT
from tests.audit import forge
from tests.audit.play import study

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(checkout: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments], str(checkout))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_line_of_a_pass(command: Command, run: Path) -> None:
    code, out, err = command(run)
    assert (code, err) == (0, "")
    assert out == f"PASS {run}: 5 scenarios, 22 processes, 9 requests, 50 records checked\n"


def test_a_partial_selection_says_so(command: Command, tmp_path: Path) -> None:
    run = study(["keyed_delivery"]).write(tmp_path / "run")
    code, out, _ = command(run)
    assert code == 0
    assert out == f"PASS (1 of 5 scenarios) {run}: 1 scenario, 4 processes, 2 requests, 10 records checked\n"


def test_every_finding_is_printed(command: Command, run: Path) -> None:
    (run / "one").write_text("")
    (run / "two").write_text("")
    code, out, _ = command(run)
    lines = out.splitlines()
    assert code == 1
    assert len(lines) == 5
    assert lines[-1] == f"FAIL {run}: 4 findings"


def test_json(command: Command, run: Path) -> None:
    (run / "one").write_text("")
    code, out, _ = command("--json", run)
    document = json.loads(out)
    assert code == 1
    assert document["verdict"] == "FAIL"
    assert document["archives"][0]["totals"]["scenarios"] == 5
    assert {"subject", "place", "sentence", "first_illegal_step"} == set(document["archives"][0]["findings"][0])
    (run / "one").unlink()
    code, out, _ = command(run, "--json")
    assert code == 0
    assert json.loads(out)["verdict"] == "PASS"


def test_an_interrupted_run(command: Command, run: Path) -> None:
    (run / "manifest.json").unlink()
    code, out, _ = command(run)
    assert code == 3
    assert out.splitlines()[-1] == f"UNKNOWN {run}: 1 finding"
    for name in ("processes.json", "results.json", "tables.md"):
        (run / name).unlink()
        assert command(run)[0] == 3


def test_a_folder_of_archives(command: Command, archive: forge.Archive, tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    archive.write(folder / "study")
    archive.write(folder / "deeper" / "and deeper" / "again")
    (folder / "README.md").write_text("# Archives\n")
    (folder / "schemas").mkdir()
    (folder / "schemas" / "manifest.json").write_text("{}")
    code, out, _ = command(folder)
    assert code == 0
    assert out.splitlines()[-1] == "PASS: 2 archives: 2 PASS"
    (folder / "deeper" / "and deeper" / "again" / "manifest.json").unlink()
    assert command(folder)[0] == 3
    (folder / "study" / "extra").write_text("")
    code, out, _ = command(folder)
    assert code == 1
    assert out.splitlines()[-1] == "FAIL: 2 archives: 1 FAIL, 1 UNKNOWN"


def test_a_subfolder_without_an_archive(command: Command, archive: forge.Archive, tmp_path: Path) -> None:
    archive.write(tmp_path / "evidence" / "study")
    (tmp_path / "evidence" / "notes" / "more").mkdir(parents=True)
    code, out, _ = command(tmp_path / "evidence")
    assert code == 3
    assert "the folder holds no archive" in out


def test_a_checkout_is_no_interrupted_run(command: Command, archive: forge.Archive, tmp_path: Path) -> None:
    checkout = tmp_path / "all" / "checkout"
    (checkout / "scenarios").mkdir(parents=True)
    (checkout / "scenarios" / "__init__.py").touch()
    code, out, err = command(checkout)
    assert (code, out) == (2, "")
    assert err == f"{checkout}: {CHECKOUT}\n"
    archive.write(tmp_path / "all" / "run")
    code, out, err = command(tmp_path / "all")
    assert (code, err) == (3, "")
    assert f"{checkout}: .: {CHECKOUT}\n" in out
    archive.write(checkout)
    assert command(checkout)[0] == 1, "a manifest makes it an archive, with files too many"


def test_several_folders(command: Command, archive: forge.Archive, tmp_path: Path) -> None:
    one, two = archive.write(tmp_path / "one"), archive.write(tmp_path / "two")
    assert command(one, two)[0] == 0
    (two / "manifest.json").write_text("")
    code, out, _ = command(one, two)
    assert code == 1
    assert out.splitlines()[-1] == "FAIL: 2 archives: 1 PASS, 1 FAIL"


def test_nothing_to_read(command: Command, tmp_path: Path, run: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for arguments, words in (
        ([], "no DIR was given"),
        (["--frob"], "unknown option '--frob'"),
        ([tmp_path / "nowhere"], "there is no such directory"),
        ([tmp_path / "file"], "is not a directory"),
        ([tmp_path / "empty"], "holds no archive"),
        (["a\0b"], ""),
        ([run, tmp_path / "nowhere"], "there is no such directory"),
    ):
        code, _, err = command(*arguments)
        assert code == 2
        assert words in err


def test_help(command: Command) -> None:
    code, out, _ = command("--help")
    assert code == 0
    assert "Exit codes" in out


def _start(checkout: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = os.path.relpath(checkout / "audit" / "audit.py", cwd)
    return subprocess.run(
        [sys.executable, script, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


def test_from_any_working_directory(checkout: Path, run: Path, tmp_path: Path) -> None:
    for cwd, folder in ((tmp_path, "run"), (run, "."), (checkout / "audit", str(run)), (Path("/"), str(run))):
        done = _start(checkout, cwd, folder)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("PASS ")
    done = _start(checkout, tmp_path, "nowhere")
    assert (done.returncode, done.stdout) == (2, "")


def test_an_interpreter_without_the_fast_modules(checkout: Path, run: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.modules.update(dict.fromkeys(('_json', '_sha2', '_sha256')))\n"
        "from audit.cli import main; sys.exit(main([sys.argv[2]], sys.argv[1]))"
    )
    for spoil, words, code in ((None, "PASS", 0), (b'{"a":' + b"[" * 100_000 + b"\n", "results.json: cannot be read", 1)):
        if spoil is not None:
            (run / "results.json").write_bytes(spoil)
        command = [sys.executable, "-c", script, str(checkout), str(run)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (code, "")
        assert words in done.stdout


def test_a_reader_who_leaves(checkout: Path, run: Path) -> None:
    (run / "manifest.json").write_text("")
    reader, writer = os.pipe()
    os.close(reader)
    script = [sys.executable, str(checkout / "audit" / "audit.py"), str(run)]
    done = subprocess.run(script, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_sources_are_those_of_the_checkout(checkout: Path, run: Path, tmp_path: Path, pin: str) -> None:
    other = forge.checkout(tmp_path / "other", pin)
    assert _start(other, tmp_path, "run").returncode == 0
    (other / "run.py").write_bytes(b"print('run')\n")
    assert _start(other, tmp_path, "run").returncode == 0, "CR LF counts as LF"
    (other / "run.py").write_bytes(b"print('ran')\n")
    (other / "outbox" / "more.py").write_text("")
    (other / "receivers" / "__init__.py").unlink()
    done = _start(other, tmp_path, "run")
    assert done.returncode == 1
    assert "sources 'run.py': is" in done.stdout
    assert "sources 'outbox/more.py': is a source of this checkout, but is not listed" in done.stdout
    assert "sources 'receivers/__init__.py': is listed, but this checkout has no such source" in done.stdout
    shutil.rmtree(other / "outbox")
    assert "sources 'outbox/dispatcher.py'" in _start(other, tmp_path, "run").stdout


def test_the_audit_imports_the_standard_library_and_itself() -> None:
    for path in sorted((forge.REPOSITORY / "audit").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                names = [node.module or ""]
            for name in names:
                top = name.split(".")[0]
                assert top in sys.stdlib_module_names or top in {"audit", "_sha2", "_sha256"}, f"{path} imports {name}"


def test_the_start_stays_small(checkout: Path, run: Path) -> None:
    """What makes a start slow is not there: these cost more than the whole audit of a small archive."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules)\n"
        "from audit.cli import main; code = main([sys.argv[2]], sys.argv[1])\n"
        "print(*sorted(set(sys.modules) - before)); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script, str(checkout), str(run)], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"re", "json", "argparse", "pathlib", "typing", "dataclasses", "hashlib", "collections"}
