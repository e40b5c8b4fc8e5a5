"""`summary.json` and `table.md` of a check, made anew from its lines: windows, sums, claims, verdict, and the table."""

from __future__ import annotations

from audit.check_words import (
    LINE,
    OF_RECEIVER,
    OF_WORKER,
    RECOVERED,
    SEVERITIES,
    UNCLEAR,
    VIOLATED,
    WORKER,
    Held,
    fails,
    of_receiver,
    of_worker,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Key = tuple[int, str, str, str, str]

WORKER_COLUMNS = ["Died in", "Where", "Function", "Verdict", "Cases", "Seconds", "Example"]
RECEIVER_COLUMNS = ["Expectation", "Source", "If not met", "Verdict", "Expected", "Seen"]
NO_CLAIM = "nothing; judged as at-least-once with stable keys"


class Sums:
    """What the lines of a check come to, gathered one by one."""

    def __init__(self, kind: str, target: str, claims: str | None) -> None:
        self.kind, self.target, self.claims = kind, target, claims
        self.counts = dict.fromkeys(OF_WORKER if kind == WORKER else OF_RECEIVER, 0)
        self.held = Held()
        self.lines: list[dict[str, Any]] = []
        self._places: dict[Key, dict[int, list[dict[str, Any]]]] = {}

    def add(self, line: dict[str, Any]) -> None:
        """Count one line."""
        self.counts[line["verdict"]] += 1
        if self.kind != WORKER:
            self.lines.append({name: value for name, value in line.items() if name != "exchanges"})
            return
        self.held.add(line)
        last = line["then"] or {"role": line["role"], **line["fault"]}
        where, number, function = last["where"], last["occurrence"], last["function"]
        if last["kind"] == LINE:
            where, _, text = where.rpartition(":")
            number = int(text) if text.isdigit() else 0
        key = (2 if line["then"] else 1, last["role"], last["kind"], where, (function or "") if last["kind"] == LINE else "")
        seconds = line["watched_seconds"] if line["recovered_seconds"] is None else line["recovered_seconds"]
        short = {"case": line["case"], "verdict": line["verdict"], "seconds": seconds, "function": function}
        self._places.setdefault(key, {}).setdefault(number, []).append(short)

    @property
    def cases(self) -> int:
        """How many lines there were."""
        return sum(self.counts.values())

    @property
    def verdict(self) -> str:
        """PASS, FAIL or UNKNOWN."""
        return of_worker(self.counts, self.held.claims(), self.claims) if self.kind == WORKER else of_receiver(self.lines)

    def summary(self, wall_seconds: float) -> dict[str, Any]:
        """The document, with the time that the run says it took."""
        return {
            "kind": self.kind, "target": self.target, "verdict": self.verdict, "claims": self.claims,
            "holds": self.held.claims() if self.kind == WORKER else None, "cases": self.cases, "by_verdict": self.counts,
            "wall_seconds": wall_seconds, "cases_per_second": round(self.cases / wall_seconds, 2) if wall_seconds else 0.0,
            "windows": self._windows() if self.kind == WORKER else self._unmet(),
        }  # fmt: skip

    def _windows(self) -> list[dict[str, Any]]:
        """Neighbouring places of the same worst verdict are one."""
        found = []
        for key in self._places:
            open_window: list[int] = []
            numbers = sorted(self._places[key])
            for number in numbers:
                if open_window and self._worst(key, open_window[-1]) != self._worst(key, number):
                    found.append(self._window(key, open_window))
                    open_window = []
                open_window.append(number)
            found.append(self._window(key, open_window))
        return [window for _, window in sorted(found, key=lambda each: each[0])]

    def _worst(self, key: Key, number: int) -> str:
        verdicts = {each["verdict"] for each in self._places[key][number]}
        return next(verdict for verdict in OF_WORKER if verdict in verdicts)

    def _window(self, key: Key, numbers: list[int]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        depth, role, kind, where, function = key
        verdict = self._worst(key, numbers[0])
        tried = [each for number in numbers for each in self._places[key][number]]
        bad = [each for each in tried if each["verdict"] == verdict]
        to = f"-{numbers[-1]}" if numbers[-1] != numbers[0] else ""
        window = {
            "role": role, "kind": kind, "where": f"{where}{':' if kind == LINE else '#'}{numbers[0]}{to}",
            "function": tried[0]["function"], "depth": depth, "verdict": verdict, "cases": len(bad), "tried": len(tried),
            "seconds": max(each["seconds"] for each in bad), "example": bad[0]["case"],
        }  # fmt: skip
        return (OF_WORKER.index(verdict), depth, role, kind, where, numbers[0], function), window

    def _unmet(self) -> list[dict[str, Any]]:
        lines = [line for line in self.lines if line["verdict"] in (VIOLATED, UNCLEAR)]
        lines.sort(key=lambda line: (OF_RECEIVER.index(line["verdict"]), SEVERITIES.index(line["severity"])))
        return [
            {
                "where": line["expectation"], "severity": line["severity"], "source": line["source"],
                "verdict": line["verdict"], "fails": fails(line),
            }
            for line in lines
        ]  # fmt: skip

    def table(self, summary: dict[str, Any], not_played: int) -> str:
        """`table.md` as it must stand."""
        more = f", {not_played} more not played" if not_played else ""
        counts = ", ".join(f"{number} {verdict}" for verdict, number in self.counts.items() if number) or "none"
        text = [f"# {self.target}: {summary['verdict']}", ""]
        text += [f"{self.cases} case{'' if self.cases == 1 else 's'}{more}: {counts}; {summary['wall_seconds']:.1f} s.", ""]
        if self.kind == WORKER:
            text += [f"Claimed: {self.claims or NO_CLAIM}. Holds: {', '.join(summary['holds']) or 'none'}.", ""]
            rows, columns = self._worker_rows(summary["windows"]), WORKER_COLUMNS
        else:
            names = ("expectation", "source", "severity", "verdict", "expected", "seen")
            rows, columns = [[line[name] for name in names] for line in self.lines], RECEIVER_COLUMNS
        text += [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
        text += ["| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in row) + " |" for row in rows]
        return "\n".join(text) + "\n"

    def _worker_rows(self, windows: list[dict[str, Any]]) -> list[list[str]]:
        rows = []
        for each in windows:
            if each["verdict"] != RECOVERED:
                again = " (recovery)" if each["depth"] == 2 else ""
                of = f"{each['cases']} of {each['tried']}" if each["tried"] != each["cases"] else str(each["cases"])
                rows.append([
                    each["role"] + again, each["where"], each["function"] or "", each["verdict"], of,
                    f"{each['seconds']:.1f}", each["example"],
                ])  # fmt: skip
        well = [each for each in windows if each["verdict"] == RECOVERED]
        if well:
            longest, cases = max(each["seconds"] for each in well), sum(each["cases"] for each in well)
            rows.append(["", f"{len(well)} more", "", RECOVERED, str(cases), f"{longest:.1f}", ""])
        return rows
