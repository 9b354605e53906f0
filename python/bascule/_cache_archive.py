"""Archives of compiled programs: a header line, a compressed tar file, and an HMAC-SHA256 of both."""

import hashlib
import hmac
import io
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

from bascule import _bascule, _errors
from bascule._new_file import replacing

_HEAD = b"bascule cache archive 1\n"
_SIGNATURE_BYTES = hashlib.sha256().digest_size
_LEAST_KEY_BYTES = 16
_CHUNK_BYTES = 1 << 20


def export(path: str | os.PathLike[str], key: bytes, names: Iterable[str]) -> int:
    """Write the entries with these names and return how many still existed."""
    signature = _new_signature(key)
    exported = 0
    with replacing(path) as file:
        signed = _SigningWriter(file, signature)
        signed.write(_HEAD)
        with tarfile.open(fileobj=signed, mode="w|gz") as archive:
            for name in names:
                entry = _bascule._cache_bytes(name)
                if entry is None:
                    continue  # removed since it was listed
                member = tarfile.TarInfo(name)
                member.size = len(entry)
                archive.addfile(member, io.BytesIO(entry))
                exported += 1
        file.write(signature.digest())
    return exported


def import_(path: str | os.PathLike[str], key: bytes) -> int:
    """Add the entries of an archive to the cache and return how many were new."""
    signature = _new_signature(key)
    with open(path, "rb") as file, tempfile.TemporaryFile() as verified:
        # Parse the verified copy, because the file itself may be changed after this check.
        _copy_signed(file, verified, signature, path)
        for name, entry in _entries(verified, path):
            if wrong := _bascule._cache_problem(entry):
                raise _errors.CacheError(f"{os.fspath(path)}: entry {name} is {wrong}. Nothing was imported.")
        imported = 0
        for _, entry in _entries(verified, path):
            kept, problem = _bascule._cache_adopt(entry)
            if problem is not None:
                raise _errors.CacheError(
                    f"The cache in {_bascule._cache_directory()} cannot be written: {problem}. "
                    f"{imported} programs of {os.fspath(path)} were imported."
                )
            imported += kept
    return imported


def _new_signature(key: bytes) -> hmac.HMAC:
    if not isinstance(key, (bytes, bytearray)):
        raise _errors.ArgumentTypeError(f"key must be bytes, got {type(key).__name__}")
    if len(key) < _LEAST_KEY_BYTES:
        raise _errors.ArgumentValueError(
            f"key has {len(key)} bytes, but must have at least {_LEAST_KEY_BYTES}; secrets.token_bytes(32) makes one"
        )
    return hmac.new(key, digestmod="sha256")


class _SigningWriter(io.RawIOBase):
    """Writes to a file and adds the same bytes to its signature."""

    def __init__(self, file: IO[bytes], signature: hmac.HMAC) -> None:
        self._file = file
        self._signature = signature

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._signature.update(data)
        return self._file.write(data)


def _copy_signed(file: IO[bytes], copy: IO[bytes], signature: hmac.HMAC, path: str | os.PathLike[str]) -> None:
    """Copy the tar file of an archive, and check the signature."""
    rest = os.fstat(file.fileno()).st_size - len(_HEAD) - _SIGNATURE_BYTES
    head = file.read(len(_HEAD))
    if head != _HEAD or rest < 0:
        raise _errors.CacheError(
            f"{os.fspath(path)} is not an archive that bascule.cache.export of this version wrote."
        )
    signature.update(head)
    while rest > 0 and (chunk := file.read(min(rest, _CHUNK_BYTES))):
        signature.update(chunk)
        copy.write(chunk)
        rest -= len(chunk)
    if not hmac.compare_digest(signature.digest(), file.read(_SIGNATURE_BYTES)):
        raise _errors.CacheError(
            f"{os.fspath(path)} was exported with another key, or was changed since. Nothing was imported."
        )


def _entries(archive: IO[bytes], path: str | os.PathLike[str]) -> Iterator[tuple[str, bytes]]:
    archive.seek(0)
    try:
        with tarfile.open(fileobj=archive, mode="r:gz") as members:
            for member in members:
                content = members.extractfile(member)
                if content is not None:
                    yield member.name, content.read()
    except Exception as error:  # tarfile does not document what it raises for malformed members
        raise _errors.CacheError(
            f"{os.fspath(path)} has the right signature, but its contents cannot be read: {error}. "
            "Nothing was imported."
        ) from error
