"""Whether a target can run on this machine, and which versions of its packages are there: asked of its own interpreter."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field

from scenarios.targets import services
from scenarios.targets.model import Target

SECONDS = 60
_ASK = """
import importlib.util, json, platform, sys
from importlib import metadata
def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
names, packages = json.loads(sys.argv[1])
found = {name: version(name) for name in packages}
print(json.dumps({"missing": [name for name in names if not there(name)], "python": platform.python_version(),
    "versions": {name: each for name, each in found.items() if each}}))
"""


@dataclass(frozen=True, slots=True)
class Presence:
    """`missing` is what lacks, in words, with what to install; None where nothing does."""

    missing: str | None
    versions: Mapping[str, str] = field(default_factory=dict)


def look(target: Target, python: str) -> Presence:
    """Look for what a target needs, and ask for versions."""
    contents, package = target.contents, target.contents.package
    imports = package.imports if package is not None else ()
    programs = [each for each in (package.programs if package is not None else ()) if shutil.which(each) is None]
    install = f"; install with: {package.install}" if package is not None else ""
    if programs:
        return Presence(f"{target.name} needs {', '.join(programs)} in PATH{install}")
    missing = services.why_not(contents.services)
    if missing is not None:
        return Presence(f"{target.name}: {missing}")
    names = [list(imports), [package.name, *imports] if package is not None else []]
    try:
        asked = subprocess.run(
            [python, "-c", _ASK, json.dumps(names)],
            stdin=subprocess.DEVNULL,
            cwd="/",  # what lies where we were started is not what the target can import
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        told = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Presence(f"{python} does not answer as a Python does ({error}); choose another by --python")
    versions = {"python": told["python"], **told["versions"]}
    if told["missing"]:
        return Presence(f"{target.name} needs the modules {', '.join(told['missing'])}{install}", versions)
    return Presence(None, versions)
