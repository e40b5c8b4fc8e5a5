"""Every command that a page prints is run, in the checkout, and must print what the page says."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.documents import PAGES, ROOT, Commands, boxes, commands

SECONDS = 60
BOXES = [each for page in PAGES for each in commands(page)]


@pytest.mark.parametrize("box", BOXES, ids=str)
@pytest.mark.usefixtures("archive")
def test_commands_print_what_the_page_says(box: Commands, tmp_path: Path) -> None:
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed; install it (apt-get install jq) and the commands of the pages are run")
    environment = {**os.environ, "TMPDIR": str(tmp_path), "LC_ALL": "C"}
    with subprocess.Popen(
        ["bash", "-u", "-o", "pipefail", "-c", here(box.script)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            output, complaints = shell.communicate(timeout=SECONDS)
        finally:
            end_group(shell.pid)
    assert shell.returncode == 0, complaints
    assert box.output is None or output == box.output, complaints


def here(script: str) -> str:
    """The script with the interpreter of this test and with ports that are free."""
    for port in sorted(set(re.findall(r"\b802[0-9]\b", script))):
        script = script.replace(port, str(free_port()))
    return script.replace(".venv/bin/python", sys.executable)


def free_port() -> int:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        return int(reserved.getsockname()[1])


def end_group(pid: int) -> None:
    """A box that failed half-way may have left its receiver behind."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_answers_belong_to_commands() -> None:
    for page in PAGES:
        found = boxes(page.read_text(encoding="utf-8"))
        asked, told = ([box.name for box in found if box.role == role] for role in ("prints", "printed"))
        assert sorted(map(str, asked)) == sorted(map(str, told)), page.name
