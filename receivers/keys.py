"""The journal `keys`: a registry of keys that is a file of its own, beside the effects. That there are two files is the mistake
that two counterexamples show; the keyed receiver has one.
"""

from pathlib import Path

from outbox import journal
from receivers.kind import Context
from receivers.ledger import Effect
from receivers.registry import RegistryKind

KEYS = journal.declare("keys", "key")


class KeyRegistry:
    """Keys and the effects that they stand for. Raises as `outbox.journal` does."""

    def __init__(self, directory: Path) -> None:
        self._journal = KEYS.open(directory)

    def find(self, key: str) -> Effect | None:
        """What `key` was recorded with, or None."""
        record = self._journal.find("key", key)
        if record is None:
            return None
        data = record.data
        return Effect(data["effect"], data["fingerprint"], data["status"], journal.payload_bytes(data["result"]))

    def record(self, key: str, effect: Effect) -> None:
        """Make the key durable, with the result that is replayed for it."""
        self._journal.append(
            "key",
            key,
            {
                "effect": effect.id,
                "fingerprint": effect.fingerprint,
                "status": effect.status,
                "result": journal.payload(effect.result),
            },
        )

    def close(self) -> None:
        """Give the registry up."""
        self._journal.close()


class SeparateKeys(RegistryKind):
    """Base of the two counterexamples that keep their keys in a file of their own."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.keys = KeyRegistry(context.directory)

    def find(self, key: str) -> Effect | None:
        """What the file of keys says."""
        return self.keys.find(key)

    def close(self) -> None:
        """Give the registry up."""
        self.keys.close()
