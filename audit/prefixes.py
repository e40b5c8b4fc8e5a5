"""The journal of prefixes: every way in which a last record can be cut, derived from the bytes of the source itself.

For a last line of L bytes, newline included, there is one record for each K from 0 to L. All earlier records are kept each
time; the last one is kept when all its bytes are there, with or without its newline (a whole record that lacks only its
newline is completed, not cut: the contract's page says so under `prefixes`, and `a torn tail is cut back` elsewhere). After
one more append there is one record more.
"""

from __future__ import annotations

from audit.case import PREFIXES, option
from audit.findings import show
from audit.plan import folder_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case, Store
    from audit.journals import Journal


def check(case: Case) -> None:
    """Hold every journal of prefixes."""
    for store in case.having(PREFIXES):
        for process in store.ran(PREFIXES):
            if process["stdout"]:
                case.note("processes.json prefixes.stdout", f"is {show(process['stdout'])}, expected nothing")
        source = _source(case, store)
        if source is not None:
            _prefixes(case, store, source)


def _source(case: Case, store: Store) -> Journal | None:
    """The journal that the command names."""
    process = store.ran(PREFIXES)[-1]
    path = folder_at(case.plan["steps"], option(process, "--source") or "", process["step"])
    folder, _, name = path.rpartition("/")
    source = case.stores[folder].journals.get(name.removesuffix(".jsonl")) if folder in case.stores else None
    if source is None or not source.ends:
        case.note(store["prefixes"].path, f"was made of {show(path)}, which is no journal of this scenario with a record in it")
        return None
    return source


def _prefixes(case: Case, store: Store, source: Journal) -> None:
    ends = [0, *source.ends]
    length, whole = ends[-1] - ends[-2], len(source.ends)
    records = store["prefixes"].records
    if len(records) != length + 1:
        sentence = f"has {len(records)} records, but the last line of {source.path} has {length} bytes: expected {length + 1}"
        case.note(store["prefixes"].path, sentence)
    for size, record in enumerate(records):
        kept = whole if size >= length - 1 else whole - 1
        wanted = {"bytes": size, "kept": kept, "after": kept + 1}
        if record.id != str(size):
            case.note(f"{record.place} id", f"is {show(record.id)}, expected '{size}'")
        for member, value in wanted.items():
            if record.data[member] != value:
                case.note(f"{record.place} data.{member}", f"is {record.data[member]}, expected {value} of {whole} records")
        record.span = (store.ran(PREFIXES)[-1]["step"], store.ran(PREFIXES)[-1].ends)
