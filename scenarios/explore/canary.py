"""The canary of mode `random`: a system with a mistake, which the mode must find before its own word counts for anything.

Its histories are those of the seeds from 1 on, at most so many; the first that is violated is the proof, and its files stay. A
campaign whose canary is not found failing is unknown, whatever else it says.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from scenarios.explore import results
from scenarios.explore.histories import History, Named
from scenarios.explore.model import Case, Subject
from scenarios.explore.player import play
from scenarios.explore.rounds import KEEP_ALL, Room
from scenarios.explore.verdicts import DUPLICATE, VIOLATED

NAME, MOST = "oracle/key-per-attempt", 40
FOLDER = "canary"


def subject() -> Subject:
    """The oracle's sender that gives every attempt a key of its own: what is sent again is applied again.

    It is made of parts here, not taken from the oracle, which declares points of its own as soon as it is loaded.
    """
    from scenarios.oracle import parts  # noqa: PLC0415 - only where it is played

    return parts.journal(NAME.rpartition("/")[2], parts.policy("key-per-attempt"))


async def found(
    canary: Subject, of_seed: Callable[[Subject, int], History], room: Room, directory: Path
) -> dict[str, Any] | None:
    """The result of the first history of the canary that is violated as it must be; None where there is none. Its files are
    then in `directory`. Raises HarnessBug and OSError."""
    shutil.rmtree(directory, ignore_errors=True)  # of a campaign that was interrupted
    for seed in range(1, MOST + 1):
        case = Case(canary, history=Named(str(seed), of_seed(canary, seed)))
        result = results.line(await play(case, replace(room, keep=KEEP_ALL), directory), reached=False)
        if result["verdict"] == VIOLATED and DUPLICATE in result["kinds"]:
            return result
        shutil.rmtree(directory)
    return None
