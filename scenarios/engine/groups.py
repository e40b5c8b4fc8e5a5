"""Tasks that belong together: how their errors are told."""

import contextlib
from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def one_error() -> AsyncIterator[None]:
    """Around a TaskGroup: of its errors one is enough to end the work, and is easier to read."""
    try:
        yield
    except* Exception as errors:
        raise errors.exceptions[0] from None
