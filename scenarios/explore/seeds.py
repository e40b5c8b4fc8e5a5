"""Files of histories that failed: `seeds/` of the checkout is played first by every campaign of mode `random`, and a campaign
writes those that it found into DIR/seeds, shrunk. A file that is moved from there to `seeds/` is played from then on.

    {"format": "halt23.seed", "format_version": 1, "subject": "journal/keyed", "seed": 17, "kinds": ["duplicate"],
     "violations": ["…"], "history": {…}}

What it failed with is for the reader; only `subject` and `history` are played. The name of the file is the history's.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outbox.errors import BadInput
from scenarios.explore.histories import History, Named, parse

FORMAT, FORMAT_VERSION = "halt23.seed", 1
FOLDER, SUFFIX = "seeds", ".json"
# A number is the history that Hypothesis gives for it; a name is a file's.
NUMBER, NAME = re.compile(r"0|[1-9]\d{0,17}"), re.compile(r"[a-z][a-z0-9-]{0,79}")


@dataclass(frozen=True, slots=True)
class Kept:
    """One file: the subject's name, and the history by the file's."""

    subject: str
    named: Named


def read(path: Path) -> Kept:
    """Read one file. Raises BadInput, which names it, for another form and for words that mean nothing any more."""
    try:
        return _kept(path.name.removesuffix(SUFFIX), json.loads(path.read_bytes()))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: it is no JSON: {error}") from error
    except BadInput as error:
        raise BadInput(f"{path}: {error}; mend it, or remove it") from None


def _kept(name: str, data: Any) -> Kept:
    if not NAME.fullmatch(name):
        raise BadInput("a file's name is lower-case letters, digits and -, and begins with a letter")
    if not isinstance(data, dict) or (data.get("format"), data.get("format_version")) != (FORMAT, FORMAT_VERSION):
        raise BadInput(f"it is no {FORMAT} of version {FORMAT_VERSION}")
    if not isinstance(data.get("subject"), str):
        raise BadInput("subject: expected a name")
    return Kept(data["subject"], Named(name, parse(data.get("history"))))


def read_all(folder: Path) -> list[Kept]:
    """All files of a folder, by name; none where there is no folder."""
    return [read(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]


def write(folder: Path, subject: str, seed: str, history: History, result: Mapping[str, Any]) -> Path:
    """Write a history that failed, shrunk from that of `seed`. Raises OSError."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{subject.replace('/', '-')}-{seed}{SUFFIX}"
    told = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "subject": subject,
        "seed": int(seed),
        "kinds": list(result["kinds"]),
        "violations": list(result["violations"]),
        "history": history.data(),
    }
    path.write_text(readable(told) + "\n", encoding="ascii")
    return path


def readable(told: Mapping[str, Any]) -> str:
    """JSON with a line for each step, as a person reads a history."""
    rest = {key: value for key, value in told.items() if key != "history"}
    history = told["history"]
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in rest.items()]
    lines += [f' "history": {{"operations": {history["operations"]}, "wire": {json.dumps(history["wire"])}, "steps": [']
    lines += [",\n".join(f"  {json.dumps(step)}" for step in history["steps"])] if history["steps"] else []
    return "\n".join(["{", *lines, " ]}", "}"])
