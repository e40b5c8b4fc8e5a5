"""What a story comes to: marks for what neither side can see by itself, and a few sentences at the end."""

from outbox.dispatch.edges import ACKED, ACTIVE, DELIVERED
from scenarios.report.books import worded
from scenarios.report.events import Kind, Trait
from scenarios.report.scene import Scene
from scenarios.report.words import counted, plain, tallied


def say_differences(scene: Scene) -> None:
    """Mark what the sender's side and the receiver say differently at the end, where no mark has said it yet."""
    if _lost(scene) and not any(event.kind is Kind.MOMENT for event in scene.events):
        sentence = "The sender holds a receipt, the receiver did nothing, and no later pass will send."
        scene.emit(Kind.MOMENT, "A receipt and no effect: lost", sentence, traits=[Trait.LOST])
    for operation in sorted(scene.denied - scene.settled.keys()):
        if scene.certain and scene.effects[operation]:
            words = "The receiver did it, the sender's side says it did not"
            sentence = f"The receiver did {plain(operation)}, and the last that the sender's side says of it is a refusal."
            scene.emit(Kind.MOMENT, words, sentence, traits=[Trait.DENIED])
    _unknown_to_the_outbox(scene)


def _unknown_to_the_outbox(scene: Scene) -> None:
    """Mark what the receiver did and no book of a dispatch outbox ever says."""
    books = scene.books
    if books is None or not scene.certain:
        return
    for operation in sorted(scene.effects):
        row = books.rows.get(operation)
        status = "purged" if row is None else row.status
        if operation in books.receipts or status in (*ACTIVE, DELIVERED, ACKED):
            continue
        words = f"The outbox says {worded(status)}, the receiver did it"
        scene.emit(Kind.MOMENT, words, f"{words}: {plain(operation)}.", traits=[Trait.DENIED])


def sentences(scene: Scene) -> list[str]:
    """The end in sentences: the counts, what was applied more than once, what is lost."""
    closing = [f"At the end: {tallied(scene.counts.values(), tables=scene.books is not None)}."]
    if scene.books is not None:
        closing = [f"{closing[0][:-1]}; {counted(scene.books.attempts, 'attempt')}. Rows: {scene.books.told()}."]
    for operation, done in sorted(scene.effects.items()):
        if done > 1:
            closing.append(f"The operation {plain(operation)} was applied {done} times.")
    lost = "has a receipt and no effect: it is lost, and nobody will send it."
    return [*closing, *(f"The operation {plain(operation)} {lost}" for operation in _lost(scene))]


def _lost(scene: Scene) -> list[str]:
    """The operations with a receipt and no effect. Where something could not be placed nothing is called lost."""
    if not scene.certain or any(event.kind is Kind.DOUBT for event in scene.events):
        return []
    return sorted(operation for operation in scene.settled if not scene.effects[operation])
