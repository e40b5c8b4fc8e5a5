"""The pytest fixture `halt23_check`: a worker or receiver of one's own is checked in one's own test suite.

    def test_my_worker(halt23_check):
        halt23_check.worker("target.toml", mode="lines", budget=200)

The test fails with a list of windows if something goes against the claim, or if the check leaves something in doubt or could
not be made. A path is relative to the file of the test. The check runs in a process of its own; what it leaves is below
`tmp_path`. Nothing is imported, added or changed in a test run that does not use the fixture.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).resolve().parents[2]
_STOP_SECONDS = 20.0


class Halt23Check:
    """What the fixture gives."""

    def __init__(self, here: Path, scratch: Path) -> None:
        self._here, self._scratch = here, scratch
        self._count = 0

    def worker(self, target: str | Path, **options: object) -> dict[str, Any]:
        """Check the worker of a target file; the summary. Options are those of `run.py check worker`: mode, depth, budget,
        jobs, spawn, only, python, junitxml, repro."""
        return self._checked("worker", target, options)

    def receiver(self, target: str | Path, **options: object) -> dict[str, Any]:
        """Check the receiver of a target file; the summary. Options: only, python, junitxml, repro."""
        return self._checked("receiver", target, options)

    def _checked(self, kind: str, target: str | Path, options: dict[str, object]) -> dict[str, Any]:
        __tracebackhide__ = True
        self._count += 1
        out = self._scratch / f"halt23-check-{self._count}"
        code, said = _run([kind, str(self._here / target), "--out", str(out), *_words(options)])
        if code not in (0, 1, 3) or not (out / "manifest.json").exists():
            pytest.fail(f"halt23 could not check {target} (exit code {code}):\n{said}", pytrace=False)
        import json  # noqa: PLC0415 - a test run without the fixture pays for nothing

        summary: dict[str, Any] = json.loads((out / "summary.json").read_bytes())
        if code:
            pytest.fail("\n".join(_told(summary, out)), pytrace=False)
        return summary


def _words(options: dict[str, object]) -> Iterator[str]:
    for name, value in options.items():
        if value is not None:
            yield from (f"--{name.replace('_', '-')}", str(value))


def _run(arguments: list[str]) -> tuple[int, str]:
    """Run the check; its exit code and what it said. Whatever ends this wait ends the check, in order, too."""
    import os  # noqa: PLC0415 - as above
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    with subprocess.Popen(
        [sys.executable, "-m", "scenarios.targets", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as check:
        try:
            said, _ = check.communicate()
        except BaseException:
            check.terminate()
            try:
                check.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                check.kill()
            raise
    return check.returncode, said


def _told(summary: dict[str, Any], out: Path) -> Iterator[str]:
    """The windows that count, the verdict, and where everything is."""
    from scenarios.targets import handed, results  # noqa: PLC0415 - as above
    from scenarios.targets.windows import Unmet, Window  # noqa: PLC0415

    check = handed.read(out)
    found = [each for each in summary["windows"] if check.is_finding(each) or check.is_in_doubt(each)]
    yield f"halt23: {summary['target']}: {summary['verdict']}"
    for each in found:
        if check.is_worker:
            yield f"  {Window(**each)}"
            yield f"    again: --only '{each['example']}'; {'; '.join(check.lines[each['example']]['reasons'])}"
        else:
            line = check.lines[each["where"]]
            yield f"  {Unmet(**each)}"
            yield f"    expected {line['expected']}; seen {line['seen']}"
    yield f"  {results.told(summary, out)[-3 if check.is_worker else -2]}"
    yield f"  everything: {out}"


@pytest.fixture
def halt23_check(request: pytest.FixtureRequest, tmp_path: Path) -> Halt23Check:
    """Checks a worker or receiver that a target file describes; see `scenarios.targets.pytest_plugin`."""
    return Halt23Check(request.path.parent, tmp_path)
