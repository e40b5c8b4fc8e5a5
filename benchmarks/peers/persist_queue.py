"""persist-queue's acknowledged SQLite queue: a loop of get, do, ack, in one thread or in several on one queue object."""

from concurrent.futures import ThreadPoolExecutor

from persistqueue import Empty, SQLiteAckQueue

from benchmarks.peers.jobs import Job, Told, clocked, post, sqlite_durability


def _told(queue: SQLiteAckQueue, seconds: float) -> Told:
    durability = sqlite_durability(lambda statement: queue._putter.execute(statement).fetchone()[0])
    return Told(seconds, durability, queue.size + queue.unack_count())


def enqueue(store: str, given: list[Job]) -> Told:
    """One item a job."""
    queue = SQLiteAckQueue(store, auto_resume=False)
    with clocked() as took:
        for job in given:
            queue.put({"key": job.key, "url": job.url, "body": job.body})
    return _told(queue, took.seconds)


def work(store: str, number: int, at_once: int) -> Told:
    """So many loops, each until the queue is empty."""
    queue = SQLiteAckQueue(store, multithreading=True)

    def loop(_number: int) -> None:
        while True:
            try:
                item = queue.get(block=False)
            except Empty:
                return
            post(**item)
            queue.ack(item)

    with clocked() as took:
        if at_once == 1:
            loop(0)
        else:
            with ThreadPoolExecutor(at_once) as threads:
                list(threads.map(loop, range(at_once)))
    return _told(queue, took.seconds)
