"""The other queues that the dispatch outbox is measured beside, each behind the same few functions.

Every peer is used as its documentation shows, on a store of its own, in a process of its own: `python -m benchmarks.peers`
enqueues there or works there, and prints what it took as one line of JSON. Nothing of this is a test, and none of these
packages is needed to use halt23.
"""
