"""Our receiver that looks and then acts, whose work takes a moment: long enough for others to look, too."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from receivers.check_then_act import CheckThenAct
from receivers.kind import Context, Options
from receivers.server import run


class Slow(CheckThenAct):
    """See the module."""

    def __init__(self, context: Context) -> None:
        super().__init__(replace(context, work=lambda: asyncio.sleep(0.2)))


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[2], "receiver"), int(sys.argv[1]), Slow, Options()))
