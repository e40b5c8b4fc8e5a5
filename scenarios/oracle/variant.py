"""What a variant is: a system with one mistake, its correct twin, the modes that claim to see it, and what they must see."""

from dataclasses import dataclass

from scenarios.explore.model import Subject

POINTS, WIRE, PAUSES, LINES, SYSCALLS, POWER = "points", "wire", "pauses", "lines", "syscalls", "power"
BOTH = (POINTS, WIRE)


@dataclass(frozen=True, slots=True)
class Variant:
    """A mistake to be caught. `modes` claim to see it, all together as exactly these `kinds`; `field_case` as in
    docs/field-cases.md, where it is one."""

    subject: Subject
    twin: Subject
    modes: tuple[str, ...]
    kinds: tuple[str, ...]
    shows: str
    field_case: str | None = None

    @property
    def name(self) -> str:
        """The subject's name without its beginning."""
        return self.subject.name.rpartition("/")[2]
