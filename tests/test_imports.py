"""The import rules of DESIGN section 2, read from the sources."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("outbox", "receivers", "scenarios", "audit")
# Whose modules may import which of our modules, by the beginning of the dotted name.
ALLOWED: Mapping[str, tuple[str, ...]] = {
    "outbox": ("outbox",),
    "receivers": ("receivers", "outbox.journal", "outbox.faults", "outbox.errors"),
    "scenarios": ("scenarios", "receivers", "outbox"),
    "audit": ("audit",),
    "run": ("scenarios", "receivers", "outbox"),
}
STANDARD_LIBRARY = sys.stdlib_module_names
Sources = dict[str, str]  # module name to source text


def read_sources() -> Sources:
    sources = {"run": (ROOT / "run.py").read_text("utf-8")}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            sources[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text("utf-8")
    return sources


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def statements(node: ast.AST, *, at_import: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """All import statements below `node`; with `at_import` only those that run when the module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif at_import and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        elif at_import and isinstance(child, ast.If) and is_type_checking(child):
            for other in child.orelse:
                yield from statements(ast.Module([other], []), at_import=at_import)
        else:
            yield from statements(child, at_import=at_import)


def imported(sources: Sources, module: str, *, at_import: bool = False) -> set[str]:
    """The modules that `module` imports; `from a import b` counts as `a.b` if that is a module, or may be one of ours."""
    names: set[str] = set()
    for statement in statements(ast.parse(sources[module]), at_import=at_import):
        if isinstance(statement, ast.Import):
            names |= {alias.name for alias in statement.names}
        else:
            assert statement.level == 0, f"{module}: imports are written in full, not relative"
            base = statement.module or ""
            below = {f"{base}.{alias.name}" for alias in statement.names}
            top = base.split(".")[0]
            names |= {name if name in sources or (top in PACKAGES and base == top) else base for name in below}
    return names


def is_within(name: str, beginnings: tuple[str, ...]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in beginnings)


def violations(sources: Sources) -> list[str]:
    """Every import that the rules forbid, a sentence each."""
    found = []
    for module in sources:
        owner = module.split(".")[0]
        for name in sorted(imported(sources, module)):
            top = name.split(".")[0]
            if top in ALLOWED:
                if not is_within(name, ALLOWED[owner]):
                    found.append(f"{module} imports {name}")
            elif top == "tests" or (owner == "audit" and top not in STANDARD_LIBRARY):
                found.append(f"{module} imports {name}")
    return found


def circle(sources: Sources) -> list[str]:
    """The modules of one circle of module-level imports, or nothing."""
    graph = {module: imported(sources, module, at_import=True) & set(sources) - {module} for module in sources}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_every_package_of_the_design_is_read() -> None:
    modules = set(read_sources())
    assert {"run", "outbox.journal", "receivers.ledger", "scenarios.engine.runner", "audit.audit"} <= modules
    assert len(modules) > 40


def test_no_module_imports_what_its_package_must_not() -> None:
    assert violations(read_sources()) == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert circle(read_sources()) == []


def test_no_source_imports_by_a_computed_name_but_those_that_must() -> None:
    # The rules are read from import statements, so a computed import would escape them.
    using = {name for name, text in read_sources().items() if "import_module(" in text or "__import__(" in text}
    # The spawner imports what it is asked to run, also of others; the audit its own tables, by section, from a closed list.
    others = {"scenarios.engine.entry", "scenarios.engine.foreign", "scenarios.targets.preloading"}
    assert using == {"scenarios.engine.spawner", "audit.expectations", *others}


RECORDED = "scenarios.dispatch.recorded"


def users_of_the_recorded_books(sources: Sources) -> set[str]:
    """The modules that import the variant's class, and those outside of the study that import anything of its module."""
    importing = {module for module in sources if RECORDED in imported(sources, module)}
    return {each for each in importing if "RecordedBooks" in sources[each] or not each.startswith("scenarios.")}


def test_the_books_as_recorded_are_for_the_study_alone() -> None:
    # With their flaws they are no choice of the outbox's: a scan of the study takes them. (Their points are named elsewhere.)
    assert users_of_the_recorded_books(read_sources()) == {"scenarios.dispatch.__main__"}


@pytest.mark.parametrize(
    "text",
    [
        "def late():\n    from scenarios.dispatch.recorded import RecordedBooks",
        "import scenarios.dispatch.recorded as books",
        "from scenarios.dispatch import recorded",
    ],
)
def test_a_planted_use_of_the_books_as_recorded_is_reported(text: str) -> None:
    assert "outbox.bad" in users_of_the_recorded_books({**read_sources(), "outbox.bad": text})


@pytest.mark.parametrize(
    ("module", "text", "sentence"),
    [
        ("outbox.bad", "import receivers", "outbox.bad imports receivers"),
        ("outbox.bad", "def late():\n    from scenarios.engine import ports", "outbox.bad imports scenarios.engine.ports"),
        ("outbox.bad", "import audit.audit as x", "outbox.bad imports audit.audit"),
        ("outbox.bad", "try:\n    import run\nexcept ImportError:\n    pass", "outbox.bad imports run"),
        ("receivers.bad", "from outbox.workflow import Intention", "receivers.bad imports outbox.workflow"),
        ("receivers.bad", "from outbox import journal, transport", "receivers.bad imports outbox.transport"),
        ("receivers.bad", "from scenarios import model", "receivers.bad imports scenarios.model"),
        ("scenarios.bad", "from audit import files", "scenarios.bad imports audit.files"),
        ("scenarios.bad", "import run", "scenarios.bad imports run"),
        ("run", "from audit.cli import main", "run imports audit.cli"),
        ("audit.bad", "import psutil", "audit.bad imports psutil"),
        ("audit.bad", "from outbox import journal", "audit.bad imports outbox.journal"),
        ("audit.bad", "class C:\n    def f(self):\n        import aiohttp.web", "audit.bad imports aiohttp.web"),
        ("scenarios.bad", "from tests import support", "scenarios.bad imports tests"),
    ],
)
def test_a_planted_bad_import_is_reported(module: str, text: str, sentence: str) -> None:
    assert violations({**read_sources(), module: text}) == [sentence]


def test_a_planted_circle_is_reported() -> None:
    sources = {"outbox.a": "from outbox import b", "outbox.b": "from outbox.c import x", "outbox.c": "import outbox.a"}
    assert set(circle(sources)) == set(sources)


def test_a_late_or_typing_import_makes_no_circle() -> None:
    typing = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from outbox import b"
    late = "def f():\n    import outbox.a"
    assert circle({"outbox.a": typing, "outbox.b": "import outbox.a"}) == []
    assert circle({"outbox.a": "import outbox.b", "outbox.b": late}) == []
    assert circle({"outbox.a": f"{typing}\nelse:\n    import outbox.b", "outbox.b": "import outbox.a"}) != []
