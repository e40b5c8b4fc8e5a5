"""`python audit/audit.py DIR [DIR ...] [--json]`: the audit's command.

A script is compiled anew at every start, a module is not: this file only makes the package importable under its own
name from any working directory and hands over to `audit.cli`, which documents the options and the exit codes.
"""

import gc
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if __name__ == "__main__":
    gc.disable()  # nothing here is cyclic, and looking for cycles takes a tenth of the time
    if sys.path and os.path.abspath(sys.path[0]) == os.path.join(ROOT, "audit"):
        sys.path[0] = ROOT
    else:
        sys.path.insert(0, ROOT)
    from audit.cli import main

    # Everything is printed and flushed, nothing was written: taking the interpreter apart would only cost time.
    os._exit(main(sys.argv[1:], ROOT))
