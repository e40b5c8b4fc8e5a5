"""Archives that nobody would write: whatever is in one, the audit ends, in time, in little memory, with a verdict.

    python -m tests.tamper.fuzz [DIR] [--inputs N] [--seed N] [--checkout DIR] [--json FILE]

mutates the files of some small scenarios of the archive DIR (evidence/study), one after the other, which together have every
kind of journal, half of the time with the manifest and the chains made anew around the damage, and audits each. No exception,
none slower than BOUND_SECONDS, no PASS unless the archive says the same as before in everything that is not volatile, type by
type and in the same order. Then come the trees of `tests.tamper.trees`. Exit code 1: something is not so.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType

from audit.strict_json import Malformed, parse_document
from tests.audit.forge import REPOSITORY
from tests.audit.sweep import VOLATILE
from tests.tamper.draft import MANIFEST, PROCESSES, Draft
from tests.tamper.ground import Field, Ground
from tests.tamper.mutate import mutated
from tests.tamper.trees import grown, strange_trees

SCENARIO = "delivery/keyed_delivery"
SCENARIOS = (
    SCENARIO, "delivery/receiver_unavailable", "ledger/effect_then_key", "ledger/in_flight_rejected", "ledger/torn_prefixes",
    "unknown/unknown_not_applied", "wire/retry_after_seconds", "wire/request_cut_in_body", "dispatch/purge_frees_the_key",
)  # fmt: skip
"""Between them: checkpoints, keys kept apart, clients that wait for each other, prefixes, inquiries, relays and exports."""
ROUND = 250
"""So many inputs of one scenario, then of the next."""
BOUND_SECONDS = 5
MEMORY_BYTES = 64 * 1024 * 1024
"""How much more memory the audit of mutated small archives may take than the first ones took."""


class Hanging(BaseException):
    """An audit took longer than its bound."""


@dataclass
class Fuzzed:
    """What was tried and what came of it."""

    inputs: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    slowest_seconds: float = 0.0
    memory_growth_bytes: int = 0
    trees: dict[str, str] = field(default_factory=dict)
    growth: dict[str, float] = field(default_factory=dict)
    bad: list[str] = field(default_factory=list)

    def told(self, verdict: str) -> None:
        self.inputs += 1
        self.verdicts[verdict] = self.verdicts.get(verdict, 0) + 1


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _hangs(number: int, frame: FrameType | None) -> None:
    raise Hanging


def changes_of(ground: Ground, chance: random.Random) -> dict[str, bytes | None]:
    """One input: a file or two mutated; half of the time everything around them is made to fit."""
    draft = Draft(ground.base)
    paths = sorted(ground.base.files)
    for _ in range(chance.choice((1, 1, 2))):
        path = chance.choice(paths)
        draft.raw[path] = mutated(ground.base.files[path], chance)
    return draft.sealed("b" if chance.random() < 0.5 else "a")


def says_the_same(ground: Ground, changes: dict[str, bytes | None]) -> bool:
    """Whether only volatile members differ."""
    return all(
        path in (MANIFEST, PROCESSES) and data is not None and _meaning(path, data) == _meaning(path, ground.base.files[path])
        for path, data in changes.items()
    )


def _meaning(path: str, data: bytes) -> bytes:
    """What a document says beside its volatile members, as a text: types, order and spelling of numbers count."""
    try:
        document = parse_document(data)
    except Malformed:
        return data
    if path == MANIFEST:
        document["run"] = None
        document["files"][PROCESSES] = None
    elif path == PROCESSES:
        document["processes"] = [
            {name: None if name in VOLATILE else value for name, value in each.items()} for each in document["processes"]
        ]
    return json.dumps(document).encode()


def fuzz(field_: Field, inputs: int, seed: int, scenarios: tuple[str, ...] = SCENARIOS) -> Fuzzed:
    """Mutate and audit, `inputs` times."""
    found = Fuzzed()
    chance = random.Random(seed)
    before = 0
    signal.signal(signal.SIGALRM, _hangs)
    began = time.monotonic()
    for number in range(inputs):
        ground = field_.ground(scenarios[number // ROUND % len(scenarios)])
        changes = changes_of(ground, chance)
        started = time.monotonic()
        try:
            signal.setitimer(signal.ITIMER_REAL, BOUND_SECONDS)
            verdict = ground.audit(changes).verdict
        except (Exception, Hanging) as error:
            found.bad.append(
                f"input {number} of seed {seed} ({ground.base.names[0]}): {type(error).__name__}: {error} for {sorted(changes)}"
            )
            verdict = "none"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        found.slowest_seconds = max(found.slowest_seconds, time.monotonic() - started)
        found.told(verdict)
        if verdict == "PASS" and not says_the_same(ground, changes):
            found.bad.append(f"input {number} of seed {seed} passes: {sorted(changes)}")
        if number == min(ROUND * len(scenarios), inputs - 1):
            before = peak_bytes()
    found.seconds = time.monotonic() - began
    found.memory_growth_bytes = peak_bytes() - before
    if found.memory_growth_bytes > MEMORY_BYTES:
        found.bad.append(f"memory grew by {found.memory_growth_bytes} bytes, more than {MEMORY_BYTES}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tamper.fuzz", description="Fuzzes the audit.")
    parser.add_argument("archive", type=Path, nargs="?", default=Path("evidence/study"), metavar="DIR")
    parser.add_argument("--inputs", type=int, default=100_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--checkout", type=Path, default=REPOSITORY, metavar="DIR", help="the sources that the archive is of")
    given = parser.parse_args()
    with ExitStack() as stack:
        field_ = stack.enter_context(Field(given.archive, given.checkout))
        found = fuzz(field_, given.inputs, given.seed)
        found.trees, bad = strange_trees(field_.ground(SCENARIO))
        found.bad.extend(bad)
        found.growth, bad = grown(field_.ground(SCENARIO))
        found.bad.extend(bad)
    if given.json:
        given.json.write_text(json.dumps(asdict(found), indent=1) + "\n")
    print(f"{found.inputs} inputs in {found.seconds:.0f} s, {found.inputs / found.seconds:.0f} a second: {found.verdicts}")
    print(f"slowest {found.slowest_seconds * 1000:.0f} ms, memory grew by {found.memory_growth_bytes / 2**20:.1f} MiB")
    for name, told in found.trees.items():
        print(f"tree: {name}: {told}")
    print(f"growth: {found.growth}")
    for line in found.bad:
        print(f"bad: {line}")
    return 1 if found.bad else 0


if __name__ == "__main__":
    sys.exit(main())
