"""Which modes work on this machine, and why one does not."""

from collections.abc import Callable, Mapping

from scenarios.explore import strace
from scenarios.explore.levels import MODES, POWER, SYSCALLS

# Who needs more than a file system and processes says what is missing.
_NEEDS: Mapping[str, Callable[[], str | None]] = {SYSCALLS: strace.why_not, POWER: strace.why_not}


def why_not(mode: str) -> str | None:
    """Why `mode` does not work here; None where it does."""
    needs = _NEEDS.get(mode)
    return None if needs is None else needs()


def told() -> list[str]:
    """A line for each mode."""
    return [f"mode {mode:<22} {'works here' if (why := why_not(mode)) is None else f'skipped: {why}'}" for mode in MODES]
