"""How journals end: with a whole line, or with a torn tail where the last process that wrote there died in the middle of one.

Where a death tore a journal, and whether a later opening cut it back, is known once all programs were played (`player`). Every
journal of the scenario is held, also those that no player follows: of bare clients, of relays, of prefixes. (The copies of a
checkpoint end with a whole line of the final journal: `journals.hold_prefix`.)
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case


def check(case: Case) -> None:
    """A journal has a torn tail exactly where a death left one."""
    for store in case.stores.values():
        for name, journal in store.journals.items():
            if journal.tail and name not in store.torn:
                sentence = f"ends with a torn tail of {len(journal.tail)} bytes, but nobody was halted there last"
                case.note(journal.path, sentence)
            elif name in store.torn and not journal.tail:
                case.note(
                    journal.path, "ends with a whole line, but the last process that wrote was halted in the middle of one"
                )
