"""The index of records: the same answers before, across and after the spill to disk."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from outbox.index import MERGE_AT, RecordIndex
from tests.outbox.world import python

KEYS = st.tuples(st.sampled_from(["attempt", "outcome"]), st.text(alphabet="abAB #%'_\"", min_size=1, max_size=4))
PLACES = st.tuples(st.integers(0, 2**38), st.integers(1, 2**24))
SETTINGS = settings(derandomize=True, database=None, deadline=None, max_examples=60)


def weak_hash(modulus: int) -> object:
    """A hash that many keys share; its bytes stand in places too."""
    return lambda key: sum(map(ord, "".join(key))) % modulus


@SETTINGS
@given(
    spill_at=st.integers(1, 7),
    modulus=st.sampled_from([1, 2, 5, 2**62]),
    entries=st.lists(st.tuples(KEYS, PLACES), max_size=40),
    absent=KEYS,
)
def test_every_place_is_found_whatever_was_spilled_joined_or_hashed_alike(
    spill_at: int, modulus: int, entries: list[tuple[tuple[str, str], tuple[int, int]]], absent: tuple[str, str]
) -> None:
    hash_of = weak_hash(modulus)
    known: dict[int, list[tuple[int, int]]] = {}
    with RecordIndex(spill_at, hash_of) as index:  # type: ignore[arg-type]
        for key, place in entries:
            index.add(*key, *place)
            known.setdefault(hash_of(key), []).append(place)  # type: ignore[operator]
            assert sorted(index.places(*key)) == sorted(known[hash_of(key)])  # type: ignore[operator]
        for key in [*(key for key, _place in entries), absent]:
            assert sorted(index.places(*key)) == sorted(known.get(hash_of(key), []))  # type: ignore[operator]
        repeated = sorted(sorted(places) for places in index.repeated())
        assert repeated == sorted(sorted(places) for places in known.values() if len(places) > 1)


@SETTINGS
@given(spill_at=st.integers(1, 7), places=st.dictionaries(KEYS, PLACES, max_size=40), absent=KEYS)
def test_with_the_real_hash_it_answers_as_a_dictionary_does(
    spill_at: int, places: dict[tuple[str, str], tuple[int, int]], absent: tuple[str, str]
) -> None:
    with RecordIndex(spill_at) as index:
        for key, place in places.items():
            assert index.places(*key) == []
            index.add(*key, *place)
        for key in [*places, absent]:
            assert index.places(*key) == ([places[key]] if key in places else [])
        assert list(index.repeated()) == []


def test_the_same_id_of_two_types_has_two_places_on_both_sides_of_the_spill() -> None:
    with RecordIndex(2) as index:
        index.add("attempt", "a#1", 0, 10)
        index.add("outcome", "a#1", 11, 12)
        index.add("attempt", "a#2", 24, 10)
        assert index.places("attempt", "a#1") == [(0, 10)]
        assert index.places("outcome", "a#1") == [(11, 12)]
        assert (index.places("attempt", "a#2"), index.places("outcome", "a#2")) == ([(24, 10)], [])


def test_a_closed_index_is_empty_and_can_be_closed_again() -> None:
    index = RecordIndex(2)
    for number in range(3):
        index.add("attempt", f"a#{number}", number, 1)
    index.close()
    index.close()
    assert [index.places("attempt", f"a#{number}") for number in range(3)] == [[], [], []]


MANY_SPILLS = """
import os, sys; from outbox.index import RecordIndex
index = RecordIndex(1000)
for n in range(1000 * int(sys.argv[1])): index.add('attempt', str(n), n, n + 1)
assert all(index.places('attempt', str(n)) == [(n, n + 1)] for n in range(0, 1000 * int(sys.argv[1]), 97))
print(len([each for each in os.scandir('/proc/self/fd') if 'deleted' in os.readlink(each.path)]))
"""


def test_many_spills_leave_no_file_behind_and_few_open(tmp_path: Path) -> None:
    spills = MERGE_AT**3 - 1
    ended = python(MANY_SPILLS, str(spills), TMPDIR=str(tmp_path))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert int(ended.stdout) == 3 * (MERGE_AT - 1)
    assert list(tmp_path.iterdir()) == []


FULL_DISK = """
import resource, sys; from outbox.errors import MachineRefused; from outbox.index import RecordIndex
index = RecordIndex(1000)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
try:
    for n in range(100_000): index.add('attempt', str(n), n, n + 1)
except MachineRefused as error: print(n + 1, error.disk_full, error.exit_code, error)
assert index.places('attempt', '7') == [(7, 8)]
index.close()
"""


def test_a_disk_that_is_too_full_for_a_spill_or_a_join_is_the_machine_refusing_and_forgets_nothing() -> None:
    for room, added in ((100, 1000), (15_999, 1000), (16_000, 1000 * MERGE_AT)):
        ended = python(FULL_DISK, str(room))
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.startswith(
            f"{added} True 16 the temporary index of a large journal cannot be kept (File too large)"
        )
        assert "free space in TMPDIR" in ended.stdout


def test_a_temporary_directory_that_is_not_there_is_the_machine_refusing() -> None:
    code = (
        "import tempfile; from outbox.errors import MachineRefused; from outbox.index import RecordIndex\n"
        "tempfile.tempdir = '/nowhere'\n"
        "try: RecordIndex(1).add('attempt', 'a', 0, 1)\n"
        "except MachineRefused as error: print(error.disk_full, error)\n"
    )
    ended = python(code)
    assert ended.stdout.startswith("False the temporary index of a large journal cannot be kept (No such file")
