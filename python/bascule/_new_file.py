"""Files that appear under their names when they are complete."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import IO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends without an exception.

    Nobody sees half of it. A link under either name, which another user may have put there, is not followed.
    """
    unfinished = f"{os.fspath(path)}.{secrets.token_hex(8)}.tmp"
    try:
        with open(unfinished, "xb") as file:
            yield file
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
