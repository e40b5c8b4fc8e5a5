"""Completeness: the files of the archive against the manifest, and the manifest's sources against the checkout.

Nothing missing, nothing extra: what lies on the disk, what the manifest lists and what the processes of the selected
scenarios must have left are the same set of paths, with the bytes and hashes that the manifest gives. The sources are
those of the checkout that holds the audit, with CR LF turned into LF before hashing.
"""

from __future__ import annotations

import os

from audit.files import Unreadable, hash_source
from audit.findings import plain, show
from audit.hashing import digest
from audit.shapes import COUNT, SHA, holds, in_order
from audit.volatile import DERIVED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.files import Tree
    from audit.findings import Findings

MANIFEST = "manifest.json"
SOURCE_FOLDERS = ("outbox", "receivers", "scenarios")
SOURCE_FILES = ("run.py",)


def check_files(tree: Tree, listed: dict[str, Any], expected: set[str], findings: Findings) -> None:
    """Disk, manifest and scenarios name the same files; size and hash are the listed ones."""
    in_order(listed, sorted(listed), findings.about(MANIFEST), "files")
    for name in sorted(tree.sizes):
        if name not in expected and name != MANIFEST and name not in DERIVED:
            findings.add(plain(name), "", "is an extra file: no process of the selected scenarios leaves it")
        if name not in tree.digests:
            tree.read(name)
        if name != MANIFEST and (name in listed or name not in DERIVED):
            _listed(name, listed, tree, findings)
    for name in listed:
        if name not in tree.sizes:
            findings.add(plain(name), "", "is listed in manifest.json, but the file is missing")
        if name not in expected and name not in DERIVED:
            findings.add(MANIFEST, f"files {show(name)}", "is listed, but no process of the selected scenarios leaves it")
    for name in sorted(expected - tree.sizes.keys()):
        if name not in listed:
            findings.add(plain(name), "", "is missing, and manifest.json does not list it")


def _listed(name: str, listed: dict[str, Any], tree: Tree, findings: Findings) -> None:
    if name not in listed:
        findings.add(plain(name), "", "is an extra file: manifest.json does not list it")
        return
    place = f"files {show(name)}"
    if not holds(listed[name], {"bytes": COUNT, "sha256": SHA}, findings.about(MANIFEST), place):
        return
    if name not in tree.digests:
        return
    size, actual = tree.digests[name]
    if listed[name]["bytes"] != size:
        findings.add(plain(name), "", f"has {size} bytes, but manifest.json lists {listed[name]['bytes']}")
    if listed[name]["sha256"] != actual:
        findings.add(plain(name), "", f"has the SHA-256 {actual}, but manifest.json lists {listed[name]['sha256']}")


class Checkout:
    """The sources of one checkout, each listed and hashed once, however many archives are held against them."""

    __slots__ = ("_hashes", "_present", "root")

    def __init__(self, root: str) -> None:
        self.root = root
        self._present: dict[str, str] | None = None
        self._hashes: dict[str, str] = {}

    def present(self) -> dict[str, str]:
        """Relative path to real path."""
        if self._present is None:
            self._present = sources(self.root)
        return self._present

    def hash_of(self, name: str) -> str:
        """The SHA-256 of a source; `Unreadable` where it cannot be had."""
        if name not in self._hashes:
            self._hashes[name] = hash_source(self.present()[name])
        return self._hashes[name]


def one_hash(listed: dict[str, str]) -> str:
    """One SHA-256 in place of all: of the lines `PATH SHA-256`, sorted by path."""
    return digest("".join(f"{name} {sha}\n" for name, sha in sorted(listed.items())).encode("utf-8", "surrogatepass"))


def check_sources(checkout: Checkout, listed: dict[str, str], findings: Findings) -> None:
    """The sources that ran are the sources of this checkout."""
    in_order(listed, sorted(listed), findings.about(MANIFEST), "sources")
    present = checkout.present()
    for name in sorted(present.keys() | listed.keys()):
        place = f"sources {show(name)}"
        if name not in present:
            findings.add(MANIFEST, place, "is listed, but this checkout has no such source")
        elif name not in listed:
            findings.add(MANIFEST, place, "is a source of this checkout, but is not listed")
        else:
            try:
                actual = checkout.hash_of(name)
            except Unreadable as error:
                findings.add(MANIFEST, place, f"the checkout's file {error}")
                continue
            if actual != listed[name]:
                findings.add(MANIFEST, place, f"is {listed[name]}, but this checkout's file has {actual}: another version ran")


CHECKOUT = "is a checkout of the study, not an archive: name an archive, such as evidence/study, or the folder evidence"


def is_checkout(folder: str) -> bool:
    """Whether a folder holds the study's sources, whose folder `scenarios` has the name of one in an archive."""
    mark = os.path.join(folder, "scenarios", "__init__.py")
    return os.path.lexists(mark) and not os.path.lexists(os.path.join(folder, MANIFEST))


def sources(root: str) -> dict[str, str]:
    """The sources of a checkout: relative path to real path; caches and hidden names are none."""
    found: dict[str, str] = {}
    for name in SOURCE_FILES:
        path = os.path.join(root, name)
        if os.path.lexists(path):
            found[name] = path
    folders = [name + "/" for name in SOURCE_FOLDERS]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                for entry in entries:
                    if entry.name == "__pycache__" or entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{folder}{entry.name}/")
                    else:
                        found[folder + entry.name] = entry.path
        except OSError:
            continue
    return found
