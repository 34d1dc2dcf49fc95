"""Where ledgers are: directories, or objects under s3://. Files that are made whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import uuid
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from .errors import Failure
from .fleet import Ledger

_LOG_NAME = re.compile(r"(?:(\d{20})\.jsonl\.gz|tail-(\d{20})\.log)")


def directory_to_plan(ledger: Ledger, scratch: str) -> str:
    """A directory that `ledger-rules plan` can read."""
    if not ledger.is_remote:
        return ledger.path
    directory = os.path.join(scratch, "plan", ledger.name)
    _fetch(ledger, directory, None)
    return directory


@contextlib.contextmanager
def directory_to_scan(ledger: Ledger, first: int, end: int) -> Iterator[str]:
    """A directory that holds at least the events first..<end, while the context lasts."""
    if not ledger.is_remote:
        yield ledger.path
        return
    with tempfile.TemporaryDirectory(prefix="receipt-ledger-") as directory:
        _fetch(ledger, directory, (first, end))
        yield directory


class _Object(NamedTuple):
    path: str
    name: str
    size: int


def _fetch(ledger: Ledger, directory: str, events: Optional[Tuple[int, int]]) -> None:
    """Copies ledger.json and the log, or the files of it that hold these events."""
    import pyarrow as pa

    try:
        file_system, base = _file_system(ledger)
        objects = _log_objects(file_system, base)
        if events is not None:
            objects = _holding(objects, *events)
        os.makedirs(os.path.join(directory, "log"), mode=0o700, exist_ok=True)
        _copy(file_system, _Object(f"{base}/ledger.json", "ledger.json", -1), directory)
        for entry in objects:
            _copy(file_system, entry, os.path.join(directory, "log"))
    except FileNotFoundError:
        raise Failure("fetch", f"{ledger.name} ({ledger.path})", "there is no ledger", 10) from None
    except (OSError, pa.ArrowException) as error:
        cause = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Failure("fetch", f"{ledger.name} ({ledger.path})", cause[:300]) from None


def _file_system(ledger: Ledger) -> Tuple[Any, str]:
    from pyarrow import fs

    options = {}
    if ledger.endpoint is not None:
        scheme, separator, host = ledger.endpoint.rpartition("://")
        options["endpoint_override"] = host
        if separator:
            options["scheme"] = scheme
    if ledger.region is not None:
        options["region"] = ledger.region
    # Credentials are those of the environment, as the AWS SDK finds them.
    return fs.S3FileSystem(**options), ledger.path[len("s3://"):]


def _log_objects(file_system: Any, base: str) -> List[_Object]:
    from pyarrow import fs

    found = []
    for entry in file_system.get_file_info(fs.FileSelector(f"{base}/log", allow_not_found=True)):
        if entry.type == fs.FileType.File and _LOG_NAME.fullmatch(entry.base_name):
            found.append(_Object(entry.path, entry.base_name, entry.size))
    return found


def _holding(objects: List[_Object], first: int, end: int) -> List[_Object]:
    """The segments and tails that may hold events of first..<end: those that begin before `end`, from the last
    segment that begins at `first` or before."""
    begins = {entry.name: _begin(entry.name) for entry in objects}
    from_position = max(
        (begin for name, begin in begins.items()
         if begin <= first and not name.startswith("tail-")), default=0)
    return [entry for entry in objects if from_position <= begins[entry.name] < end]


def _begin(name: str) -> int:
    match = _LOG_NAME.fullmatch(name)
    assert match is not None
    return int(match.group(1) or match.group(2))


def _copy(file_system: Any, entry: _Object, directory: str) -> None:
    """Copies an object, unless a closed copy of its size is there from an earlier run."""
    path = os.path.join(directory, entry.name)
    is_tail = not entry.name.endswith(".gz")
    if not is_tail and os.path.exists(path) and os.path.getsize(path) == entry.size:
        return
    partial = f"{path}.{uuid.uuid4().hex}"
    try:
        with file_system.open_input_stream(entry.path) as source, open(partial, "xb") as target:
            shutil.copyfileobj(source, target, 4 << 20)
        os.chmod(partial, 0o600)
        os.replace(partial, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)


def install(folder: str, target: str) -> bool:
    """Renames a complete folder to its name; false if another task was faster, whose folder is as good."""
    for name in os.listdir(folder):
        _sync(os.path.join(folder, name))
    _sync(folder)
    try:
        os.rename(folder, target)
    except OSError:
        if not os.path.isdir(target):
            raise
        shutil.rmtree(folder, ignore_errors=True)
        return False
    _sync(os.path.dirname(target))
    return True


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
