"""An archive whose evidence wants to be more than text: a part of the real one, edited and sealed again as a forger would."""

from __future__ import annotations

from pathlib import Path

from tests.audit.real import Whole, document

MARKUP = "<img src=x onerror=hacked()><script>hacked()</script></pre></script><style>*{display:none}</style>"
QUOTES = "\"'><a href=javascript:hacked()>&lt;{{7*7}}{% raw %}"
RIGHT_TO_LEFT = "\u05d0\u05d1\u05d2 \u202egnorw\u202c"
CONTROL = "\x00\x1b[31m\r\n\u2028\ufeff"
LONG = "y" * 100_000
URL = "http://203.0.113.7/x.png"
NAME = "delivery/keyed_delivery"


def write(whole: Whole, folder: Path) -> Path:
    """A valid archive of two scenarios, with hostile text wherever text may stand."""
    part = whole.part(NAME, "wire/response_cut_in_body")
    for journal in ("intentions", "attempts", "receipts", "history"):
        for record in part.journal(f"outbox/{journal}"):
            for member, value in record["data"].items():
                if isinstance(value, dict):
                    value["content"] = f"{MARKUP}{LONG}" if member in ("body", "question") else f"{URL}{CONTROL}"
    part.data("receiver/effects", 1)["result"]["content"] = f"{RIGHT_TO_LEFT}{MARKUP}"
    part.data("receiver/arrivals", 1)["route"] = f"{MARKUP}{QUOTES}"
    for process in part.processes:
        process["stderr"] = f"{MARKUP}\n{CONTROL}{LONG}"
        process["stdout"] = process["stdout"] or QUOTES
        process["environment"] = {MARKUP: QUOTES}
    part.process("receiver")["process"] = f"{RIGHT_TO_LEFT}{MARKUP}"
    for entry in part.results:
        entry["problems"] = [f"{MARKUP}{QUOTES}{RIGHT_TO_LEFT}{CONTROL}{LONG}"]
        entry["verdict"] = "FAIL"
    files = part.files()
    manifest = part.manifest(files)
    plans = manifest["protocol"]["scenarios"]
    said = {"shows": f"{MARKUP}{QUOTES}", "look_at": f"{RIGHT_TO_LEFT}{LONG}"}
    manifest["protocol"]["scenarios"] = [{**plan, **said} for plan in plans]
    facts = {"platform": f"{MARKUP}{URL}", "started_at": RIGHT_TO_LEFT, "packages": {QUOTES: MARKUP}}
    manifest["run"] = {**manifest["run"], **facts}
    for path, data in {**files, "manifest.json": document(manifest)}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder
