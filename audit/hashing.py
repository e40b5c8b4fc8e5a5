"""SHA-256, from the module that starts fastest.

`hashlib` loads OpenSSL, which costs a quarter of a bare interpreter start. The same function is there without it:
as `_sha2` since Python 3.12 and as `_sha256` before. Where neither exists (another implementation), `hashlib` it is.
"""

from __future__ import annotations

import sys

try:
    if sys.version_info >= (3, 12):
        from _sha2 import sha256  # type: ignore[import-not-found, unused-ignore]
    else:
        from _sha256 import sha256  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    from hashlib import sha256


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes, in lower-case hex."""
    return str(sha256(data).hexdigest())


__all__ = ["digest", "sha256"]
