# Where ledgers are: directories, or objects under s3://. Files that are made whole or not at
# all.

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from typing import Iterator

from . import remote
from .fleet import Ledger


def directory_to_plan(ledger: Ledger, state: str) -> str:
    """A directory that `ledger-rules plan` can read."""
    return remote.mirror(ledger, state) if ledger.is_remote else ledger.path


@contextlib.contextmanager
def directory_to_scan(ledger: Ledger, state: str, first: int, end: int) -> Iterator[str]:
    """A directory from which `ledger-rules scan` can read the events first..<end, while the
    context lasts.
    """
    if not ledger.is_remote:
        yield ledger.path
        return
    with tempfile.TemporaryDirectory(prefix="receipt-ledger-") as directory:
        remote.fetch(ledger, state, directory, first, end)
        yield directory


def install(folder: str, target: str) -> bool:
    """Renames a complete folder to its name; false if another task was faster, whose folder is as
    good.
    """
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
