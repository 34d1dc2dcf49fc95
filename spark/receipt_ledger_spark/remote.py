# Ledgers under s3://BUCKET/PREFIX, of which each task copies what it reads.
#
# A plan needs the ends of closed segments alone: STATE/mirror/<name> holds them as sparse files,
# and the rest of the log whole. A task gets the ends of the segments before its part from there,
# and its part from the bucket.

from __future__ import annotations

import contextlib
import os
import re
import shutil
import uuid
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .errors import NO_LEDGER, Failure
from .fleet import Ledger

_NAME = re.compile(r"(?:(\d{20})\.jsonl\.gz|tail-(\d{20})\.log)")
# More than an opening member, and more than a closing one.
_END_BYTES = 4096


class _File(NamedTuple):
    """A file of the log: its object, its name, its size, the position of its first event."""

    path: str
    name: str
    size: int
    first: int

    @property
    def is_tail(self) -> bool:
        return self.name.startswith("tail-")


def mirror(ledger: Ledger, state: str) -> str:
    """A directory to plan by: the ends of closed segments, and what is not closed whole."""

    def copy(source: "_Source") -> str:
        directory = _mirror_path(ledger, state)
        # What was a tail may be a block by now.
        shutil.rmtree(directory, ignore_errors=True)
        log = _directory(directory)
        source.copy_identity(directory)
        segments = [file for file in source.files() if not file.is_tail]
        for file in source.files():
            is_last = file.is_tail or file == segments[-1]
            if is_last or _holds_head(ledger, file, segments):
                source.copy(file, log)
            else:
                source.copy_ends(file, log)
        return directory

    return _with_source(ledger, copy)


def fetch(ledger: Ledger, state: str, directory: str, first: int, end: int) -> None:
    """Copies what a task needs to read the events first..<end into a directory."""

    def copy(source: "_Source") -> None:
        log = _directory(directory)
        mirrored = os.path.join(_mirror_path(ledger, state), "log")
        source.copy_identity(directory)
        segments = [file for file in source.files() if not file.is_tail]
        own = max((file.first for file in segments if file.first <= first), default=0)
        for file in source.files():
            if file.first >= end:
                continue
            if file.is_tail or file.first == own:
                source.copy(file, log)
            elif file.first < own:
                _copy_sparse(os.path.join(mirrored, file.name), os.path.join(log, file.name))
            else:
                source.copy(file, log)

    _with_source(ledger, copy)


def _holds_head(ledger: Ledger, file: _File, segments: List[_File]) -> bool:
    """Whether a ledger's head lies in a closed segment, whose blocks are then read."""
    if ledger.head is None:
        return False
    following = segments[segments.index(file) + 1].first
    return file.first < ledger.head.size < following


def _mirror_path(ledger: Ledger, state: str) -> str:
    return os.path.join(state, "mirror", ledger.name)


def _directory(path: str) -> str:
    log = os.path.join(path, "log")
    os.makedirs(log, 0o700, exist_ok=True)
    os.chmod(path, 0o700)
    return log


def _with_source(ledger: Ledger, work: Callable[["_Source"], Any]) -> Any:
    import pyarrow as pa

    place = f"{ledger.name} ({ledger.path})"
    try:
        return work(_Source(ledger))
    except FileNotFoundError:
        raise Failure("fetch", place, "there is no ledger", NO_LEDGER) from None
    except (OSError, pa.ArrowException) as error:
        lines = str(error).splitlines()
        raise Failure("fetch", place, lines[0][:300] if lines else type(error).__name__) from None


class _Source:
    """The objects of a ledger. Credentials are those of the environment, as the AWS SDK finds
    them.
    """

    def __init__(self, ledger: Ledger) -> None:
        from pyarrow import fs

        options: Dict[str, Any] = {}
        if ledger.endpoint is not None:
            scheme, separator, host = ledger.endpoint.rpartition("://")
            options["endpoint_override"] = host
            if separator:
                options["scheme"] = scheme
        if ledger.region is not None:
            options["region"] = ledger.region
        self._system = fs.S3FileSystem(**options)
        self._base = ledger.path[len("s3://"):]
        self._files: Optional[List[_File]] = None

    def files(self) -> List[_File]:
        """The files of the log, segments and tails in the order of their events."""
        from pyarrow import fs

        if self._files is None:
            found = []
            selector = fs.FileSelector(f"{self._base}/log", allow_not_found=True)
            for entry in self._system.get_file_info(selector):
                match = _NAME.fullmatch(entry.base_name)
                if entry.type == fs.FileType.File and match:
                    first = int(match.group(1) or match.group(2))
                    found.append(_File(entry.path, entry.base_name, entry.size, first))
            self._files = sorted(found, key=lambda file: (file.is_tail, file.first))
        return self._files

    def copy_identity(self, directory: str) -> None:
        self.copy(_File(f"{self._base}/ledger.json", "ledger.json", -1, 0), directory)

    def copy(self, file: _File, directory: str) -> None:
        """Copies an object."""
        # Without a compression named, Arrow would decompress a segment.
        with self._system.open_input_stream(file.path, compression=None) as source:
            _write(directory, file.name,
                   lambda target: shutil.copyfileobj(source, target, 4 << 20))

    def copy_ends(self, file: _File, directory: str) -> None:
        """Copies the first and last bytes of an object to a sparse file of its size."""
        with self._system.open_input_file(file.path) as source:
            first, last = _ends(source.read_at, file.size)
        _write(directory, file.name, lambda target: _write_sparse(target, file.size, first, last))


def _ends(read_at: Callable[[int, int], bytes], size: int) -> Tuple[bytes, bytes]:
    count = min(size, _END_BYTES)
    return read_at(count, 0), read_at(count, size - count)


def _copy_sparse(source: str, target: str) -> None:
    with open(source, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        first, last = _ends(lambda count, at: os.pread(file.fileno(), count, at), size)
    folder, name = os.path.split(target)
    _write(folder, name, lambda opened: _write_sparse(opened, size, first, last))


def _write_sparse(target: Any, size: int, first: bytes, last: bytes) -> None:
    target.truncate(size)
    target.write(first)
    target.seek(size - len(last))
    target.write(last)


def _write(directory: str, name: str, write: Callable[[Any], Any]) -> None:
    path = os.path.join(directory, name)
    partial = f"{path}.{uuid.uuid4().hex}"
    try:
        with open(partial, "xb") as file:
            write(file)
        os.chmod(partial, 0o600)
        os.replace(partial, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
