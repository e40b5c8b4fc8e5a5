"""Somebody else's worker or receiver, described in a small TOML file, crashed wherever it can be reached from outside.

`model` has what a target file says, `file` reads one. A target knows nothing of us: it is commands, a folder, and HTTP on
loopback; what it is written in does not matter.
"""
