"""The databases of scenarios, for which `{db}` stands: volatile as ports are, and still not everything is possible.

On SQLite it is the one file in the scenario's own folder. On PostgreSQL it is a database of a private server on this machine:
the server has a port of its own, shared by all scenarios but those that kill it, and numbers its databases from 1.
"""

from __future__ import annotations

from audit.case import label
from audit.findings import show
from audit.volatile import DATABASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case
    from audit.findings import Note

FILE = "state/dispatch.db"
SERVER, NAME = "postgresql://postgres@127.0.0.1:", "halt23_"
SMALLEST_PORT = 1024


def check(cases: list[Case], store: str, note: Note) -> None:
    """Hold the databases of all scenarios of a run, which was made on this store."""
    shared: dict[str, list[str]] = {}
    own: dict[str, str] = {}
    for case in cases:
        found = _of_scenario(case, store)
        if store == "sqlite" or found is None:
            continue
        if any(step["do"] == "kill_database" for step in case.plan["steps"]):
            own[case.name] = found[0]
            if found[1] != "1":
                case.note("processes.json substitutions", f"is database {found[1]} of a server that this scenario alone has")
        else:
            shared.setdefault(found[0], []).append(found[1])
    if len(shared) > 1:
        note("substitutions", f"name servers at the ports {show(sorted(shared))} for scenarios that share one")
    for port, numbers in shared.items():
        if sorted(numbers, key=int) != [str(number) for number in range(1, len(numbers) + 1)]:
            note("substitutions", f"number the databases of the server at {port} {show(sorted(numbers, key=int))}")
    for name, port in own.items():
        if port in shared:
            note("substitutions", f"{name}, which kills its server, shares the one at {port} with others")


def _of_scenario(case: Case, store: str) -> tuple[str, str] | None:
    """Port and number of a scenario's database; None where it has none, or none that is possible."""
    found: dict[str, str] = {}
    for process in case.processes:
        place = f"processes.json {label(process)}.substitutions"
        url = process["substitutions"].get(DATABASE)
        if url is None:
            continue
        if found and url not in found:
            case.note(place, f"give the database {show(url)}, before it was {show(next(iter(found)))}")
        elif not found:
            found[url] = place
    if not found:
        return None
    url, place = next(iter(found.items()))
    if store == "sqlite":
        if url != FILE:
            case.note(place, f"give the database {show(url)}, expected {show(FILE)}")
        return None
    port, mark, number = url.removeprefix(SERVER).partition(f"/{NAME}")
    good = url.startswith(SERVER) and mark and _is_whole(number) and _is_whole(port) and SMALLEST_PORT <= int(port) < 65536
    if not good:
        case.note(place, f"give the database {show(url)}, expected {SERVER}PORT/{NAME}N")
        return None
    if any(port in process["substitutions"].values() for process in case.processes):
        case.note(place, f"give the database the port {port}, which a receiver has")
    return port, number


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and text[0] != "0" and len(text) < 10
