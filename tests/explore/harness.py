"""`run.py` as a process, with the subjects of the tests in the place of the shipped ones.

python -m tests.explore.harness explore|replay|shrink …
"""

from __future__ import annotations

import sys

from scenarios.explore import subjects
from scenarios.explore.model import Subject
from tests.explore import ground

vars(subjects)["SUBJECTS"] = tuple(each for each in vars(ground).values() if isinstance(each, Subject))

import run  # noqa: E402 - its commands take the subjects that they find when they are imported

if __name__ == "__main__":
    sys.exit(run.main())
