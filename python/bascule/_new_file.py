"""Writes files that appear under their names only when they are complete."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import IO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file that replaces `path` when the block ends without an exception.

    Other processes never see a part of it. Symbolic links that another user may have created under either name are not
    followed.
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
