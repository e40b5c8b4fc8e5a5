"""Python imports this at its start, because the folder that it lies in is in PYTHONPATH.

It takes the folder out of the environment and of `sys.path` again, so that the program finds both as they would be without us,
imports the `sitecustomize` that would have been there, and begins to watch if it is asked to. Standard library only; Python 3.8
and later; our packages need not be installed.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_SPEC = "HALT23_WATCH"


def _is_here(path: str) -> bool:
    return os.path.abspath(path) == _HERE


def _leave() -> None:
    sys.path[:] = [each for each in sys.path if not _is_here(each)]
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = [each for each in entries if not (each and _is_here(each))]
    if kept:
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    else:
        os.environ.pop("PYTHONPATH", None)


def _next() -> None:
    """Run the sitecustomize that would have been imported without us."""
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _watch(asked: str) -> None:
    spec = importlib.util.spec_from_file_location("_halt23_watch", os.path.join(_HERE, "halt23_watch.py"))
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.begin(asked)


_leave()
_asked = os.environ.pop(_SPEC, None)
_next()
if _asked is not None:
    _watch(_asked)
