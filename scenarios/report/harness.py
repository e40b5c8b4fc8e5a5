"""What the harness itself does in a step: to files, to the database of a scenario and its exports, and where it counts."""

from collections.abc import Callable, Mapping
from typing import Any

from scenarios.report.actors import capital
from scenarios.report.events import Kind, Trait
from scenarios.report.posting import NO_ROOM, NOT_THERE, database, of, open_database
from scenarios.report.scene import Scene
from scenarios.report.tables import in_words
from scenarios.report.words import label, plain, tallied, text_of

Step = Mapping[str, Any]


def _write(scene: Scene, step: Step) -> None:
    path, content = plain(step.get("path"), 60), plain(step.get("content"), 60)
    scene.clocks[text_of(step, "path")] = text_of(step, "content")
    scene.emit(Kind.FILE, f"{path} := {content}", f"The scenario writes {content} into the file {path}.")


def _flip(scene: Scene, step: Step) -> None:
    path, offset = plain(step.get("path"), 60), plain(step.get("offset"), 20)
    scene.emit(Kind.FILE, f"{path}: bit flipped at byte {offset}", f"The scenario flips a bit of {path} at byte {offset}.")


def _move(scene: Scene, step: Step) -> None:
    path, to = plain(step.get("path"), 60), plain(step.get("to"), 60)
    scene.emit(Kind.FILE, f"{path}/ becomes {to}/", f"The scenario renames {path}/ to {to}/: it is lost to its owner.")


def _check(scene: Scene, step: Step) -> None:
    name = text_of(step, "name")
    here = tallied(scene.counts.values())
    short = " ".join(f"{letter} {value}" for letter, value in zip("ERHA", scene.counts.values(), strict=True))
    scene.emit(Kind.CHECK, f"CHECKPOINT {label(name)}: {short}", f"Checkpoint {plain(name)}: by now {here}.")
    found = next((check.counts for check in scene.scenario.checks if check.name == name), None)
    if found is not None and found != scene.counts:
        scene.doubt(f"results.json has other counts for checkpoint {plain(name)}: {tallied(found.values())}.")


def _export(scene: Scene, step: Step) -> None:
    name, books = text_of(step, "name"), of(scene)
    found = next((each.rows for each in scene.scenario.exported if each.name == name), None)
    told = books.told() if found is None else in_words(found)
    words = f"EXPORT {label(name)}: {told}"
    scene.emit(Kind.CHECK, label(words, 90), f"The tables are kept as export {plain(name)}. Rows: {told}.")
    file = scene.scenario.exports.get(name)
    if file is None:
        scene.doubt(f"The export {plain(name)} is missing or is none: what was in the tables then cannot be told.")
        return
    differences = books.differences(file)
    if differences:
        more = f", and {len(differences) - 5} more" if len(differences) > 5 else ""
        scene.doubt(f"The export {plain(name)} is not what this story has by now: {'; '.join(differences[:5])}{more}.")


def _limit_files(scene: Scene, step: Step) -> None:
    name, most = plain(step.get("process"), 60), plain(step.get("max_bytes"), 20)
    actor = scene.latest(text_of(step, "process"))
    if actor is not None:
        actor.cut_off = NO_ROOM
    words = f"from now on no file of {name} may grow beyond {most} bytes: a full disk"
    scene.emit(Kind.FILE, words, f"{capital(words)}.")


def _kill_database(scene: Scene, _step: Step) -> None:
    tables = database(scene)
    if tables is None:
        return
    tables.running = False
    for actor in scene.actors:
        if actor.running and actor.lane.role != "receiver":
            actor.cut_off = NOT_THERE
    sentence = "The server of the database and all its processes are killed by a step (SIGKILL)."
    scene.emit(Kind.END, "SIGKILL", sentence, tables, traits=[Trait.KILLED])


def _start_database(scene: Scene, _step: Step) -> None:
    open_database(scene)


STEPS: Mapping[str, Callable[[Scene, Step], None]] = {
    "write": _write,
    "flip": _flip,
    "move": _move,
    "check": _check,
    "export": _export,
    "limit_files": _limit_files,
    "kill_database": _kill_database,
    "start_database": _start_database,
}
