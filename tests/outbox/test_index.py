"""The index of records: the same answers before, across and after the spill to disk."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from outbox.index import RecordIndex
from tests.outbox.world import python

KEYS = st.tuples(st.sampled_from(["attempt", "outcome"]), st.text(alphabet="abAB #%'_\"", min_size=1, max_size=4))


@settings(derandomize=True, database=None, deadline=None, max_examples=60)
@given(
    spill_at=st.integers(1, 7),
    places=st.dictionaries(KEYS, st.tuples(st.integers(0, 2**62), st.integers(1, 2**24)), max_size=40),
    absent=KEYS,
)
def test_every_place_is_found_whatever_was_spilled(
    spill_at: int, places: dict[tuple[str, str], tuple[int, int]], absent: tuple[str, str]
) -> None:
    with RecordIndex(spill_at) as index:
        known: dict[tuple[str, str], tuple[int, int]] = {}
        for key, place in places.items():
            assert index.get(*key) is None
            index.add(*key, *place)
            known[key] = place
            assert index.get(*key) == place
        for key, place in known.items():
            assert index.get(*key) == place
        assert index.get(*absent) == known.get(absent)


def test_the_same_id_of_two_types_has_two_places_on_both_sides_of_the_spill() -> None:
    with RecordIndex(2) as index:
        index.add("attempt", "a#1", 0, 10)
        index.add("outcome", "a#1", 11, 12)
        index.add("attempt", "a#2", 24, 10)
        assert index.get("attempt", "a#1") == (0, 10)
        assert index.get("outcome", "a#1") == (11, 12)
        assert (index.get("attempt", "a#2"), index.get("outcome", "a#2")) == ((24, 10), None)


def test_a_closed_index_is_empty_and_can_be_closed_again() -> None:
    index = RecordIndex(2)
    for number in range(3):
        index.add("attempt", f"a#{number}", number, 1)
    index.close()
    index.close()
    assert [index.get("attempt", f"a#{number}") for number in range(3)] == [None, None, None]


def test_the_spill_leaves_no_file_behind(tmp_path: Path) -> None:
    code = (
        "import sys; from outbox.index import RecordIndex\n"
        "index = RecordIndex(5000)\n"
        "for n in range(20000): index.add('attempt', f'{n:0280}', n, n + 1)\n"
        "assert all(index.get('attempt', f'{n:0280}') == (n, n + 1) for n in range(0, 20000, 97))\n"
    )
    ended = python(code, TMPDIR=str(tmp_path), SQLITE_TMPDIR=str(tmp_path))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []
