"""The families of benchmarks: one module each, in the order in which they are told.

A module has a docstring whose first line is its title, and `parts(quick)`: a generator of what is to be measured. What a part
needs (a server, a folder) is opened before its `yield` and closed after it. `quick` asks for sizes that only show that it runs.
"""

NAMES = (
    "study",
    "explore",
    "dispatch",
    "peers",
    "latency",
    "depth",
    "journal",
    "idle",
    "imports",
    "audit",
    "memory",
)
