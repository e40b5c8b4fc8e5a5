"""litequeue: the loop of its quickstart (pop, do, mark as done), in one thread or in several with a queue object each.

`FULL` is the same with `PRAGMA synchronous = FULL` on its connection: what it would cost there not to lose what was said to
be done.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from litequeue import LiteQueue, MessageStatus

from benchmarks.peers.jobs import Job, Told, clocked, post, sqlite_durability


@dataclass(frozen=True, slots=True)
class Lite:
    """litequeue with its own setting of `synchronous`, or another."""

    synchronous: str | None = None

    def _opened(self, store: str) -> LiteQueue:
        queue = LiteQueue(store, timeout=60)
        if self.synchronous:
            queue.conn.execute(f"PRAGMA synchronous = {self.synchronous}")
        return queue

    def _told(self, queue: LiteQueue, seconds: float) -> Told:
        durability = sqlite_durability(lambda statement: queue.conn.execute(statement).fetchone()[0])
        asked = f"SELECT count(*) FROM {queue.table} WHERE status != {MessageStatus.DONE.value}"  # noqa: S608
        return Told(seconds, durability, queue.conn.execute(asked).fetchone()[0])

    def enqueue(self, store: str, given: list[Job]) -> Told:
        """One message a job."""
        queue = self._opened(store)
        with clocked() as took:
            for job in given:
                queue.put(json.dumps([job.key, job.url, job.body]))
        return self._told(queue, took.seconds)

    def work(self, store: str, number: int, at_once: int) -> Told:
        """So many loops, each until nothing is ready."""
        queues = [self._opened(store) for _ in range(at_once)]

        def loop(queue: LiteQueue) -> None:
            while message := queue.pop():
                post(*json.loads(message.data))
                queue.done(message.message_id)

        with clocked() as took:
            if at_once == 1:
                loop(queues[0])
            else:
                with ThreadPoolExecutor(at_once) as threads:
                    list(threads.map(loop, queues))
        return self._told(queues[0], took.seconds)


DEFAULT = Lite()
FULL = Lite("FULL")
