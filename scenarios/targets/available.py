"""Whether a target can run on this machine: its interpreter, its programs, its packages, the servers that it asks for."""

import json
import shutil
import subprocess
from collections.abc import Sequence

from scenarios.targets import services
from scenarios.targets.model import Target

_SECONDS = 30.0
_LOOK = "import importlib.util as u, json, sys; print(json.dumps([n for n in sys.argv[1:] if u.find_spec(n) is None]))"


def why_not(target: Target, python: str) -> str | None:
    """Why it cannot run, with what to install; None where it can."""
    package = target.contents.package
    if shutil.which(python) is None:
        return f"there is no interpreter {python}"
    if package is not None:
        programs = [each for each in package.programs if shutil.which(each) is None]
        if programs:
            return f"there is no program {', '.join(programs)}; to have all that it needs: {package.install}"
        missing = _missing(package.imports, python)
        if missing:
            return f"{python} has no {', '.join(missing)}; to have all that it needs: {package.install}"
    return services.why_not(target.contents.services)


def _missing(names: Sequence[str], python: str) -> list[str]:
    """Those of these modules that this interpreter cannot find; nothing of the target is imported."""
    if not names:
        return []
    tops = dict.fromkeys(name.partition(".")[0] for name in names)
    command = [python, "-c", _LOOK, *tops]
    try:
        found = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=True)
        return [str(each) for each in json.loads(found.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return [f"… nobody knows what ({error})"]
