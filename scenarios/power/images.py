"""Which images of a disk are derived for one moment of a run, and in which order.

All of them, where at most WHOLE_UNITS things are not durable: every set of them that can be there without what is missing.
Beyond that a part that grows with the number of things and not with its power: every beginning of them, all but each one, each
one alone. For each write there is then what tears it: its size without its bytes, and its beginning up to some sector (all,
where it crosses few, else the first, the middle and the last), with its size and without, both with only what came before it
and with all else.
"""

from collections.abc import Iterator, Sequence

from scenarios.power.disk import ALL, NOTHING, SECTOR_BYTES, Choice, Part, Unit, closed, needs

WHOLE_UNITS = 6
MOST_CUTS = 3


def choices(units: Sequence[Unit]) -> Iterator[Choice]:
    """Each choice once, the emptiest first."""
    met: set[Choice] = set()
    for choice in _all(units):
        if choice not in met:
            met.add(choice)
            yield choice


def _all(units: Sequence[Unit]) -> Iterator[Choice]:
    for chosen in _sets(units):
        yield tuple(ALL if at in chosen else NOTHING for at in range(len(units)))
    for at, unit in enumerate(units):
        if unit.data is None:
            continue
        for part in parts(unit):
            for base in (set(range(at)), without(units, at)):
                yield tuple(part if each == at else ALL if each in base else NOTHING for each in range(len(units)))


def _sets(units: Sequence[Unit]) -> Iterator[set[int]]:
    count = len(units)
    if count <= WHOLE_UNITS:
        for bits in range(1 << count):
            chosen = {at for at in range(count) if bits >> at & 1}
            if closed(units, chosen) == chosen:
                yield chosen
        return
    yield from (set(range(end)) for end in range(count + 1))
    yield from (without(units, at) for at in range(count))
    yield from (closed(units, {at}) for at in range(count))


def without(units: Sequence[Unit], at: int) -> set[int]:
    """All units but this one and what cannot be there without it."""
    missing = {at}
    for later in range(at + 1, len(units)):
        if needs(units, later) & missing:
            missing.add(later)
    return set(range(len(units))) - missing


def parts(unit: Unit) -> Iterator[Part]:
    """The ways in which one write may be torn."""
    yield Part(0, sized=True)
    for kept in cuts(unit):
        yield Part(kept, sized=False)
        yield Part(kept, sized=True)


def cuts(unit: Unit) -> list[int]:
    """How many bytes of a write may be there: it ends at a sector of the file."""
    first = (unit.offset // SECTOR_BYTES + 1) * SECTOR_BYTES
    places = [place - unit.offset for place in range(first, unit.end, SECTOR_BYTES)]
    if len(places) <= MOST_CUTS:
        return places
    return [places[0], places[len(places) // 2], places[-1]]
