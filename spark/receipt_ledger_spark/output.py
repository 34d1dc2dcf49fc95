# The tables of an output: written beside it, then renamed; nobody sees half of it.

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from . import errors
from .errors import Failure
from .tables import Table

# Rows of one file; a month with more gets several.
_FILE_ROWS_MAX = 4_000_000
_MONTHS = {"sales": "sale_date", "journal": "date", "exceptions": "date"}


class Workplace(NamedTuple):
    """Folders beside an output: `result` becomes the output, `work` goes."""

    work: str
    result: str


@contextlib.contextmanager
def beside(path: str) -> Iterator[Workplace]:
    """Folders beside `path`, removed at the end; `result` becomes `path` if nothing failed."""
    check_free(path)
    folder = f"{path.rstrip('/')}.partial-{uuid.uuid4().hex[:8]}"
    place = Workplace(os.path.join(folder, "work"), os.path.join(folder, "result"))
    try:
        try:
            os.makedirs(place.work, 0o700)
            os.mkdir(place.result, 0o700)
        except OSError as error:
            raise Failure("write output", path, error.strerror or "it cannot be made") from None
        yield place
        try:
            os.rename(place.result, path)
        except OSError as error:
            raise Failure("write output", path, error.strerror or "it cannot be renamed") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_free(path: str) -> None:
    """Fails if an output is there already."""
    if "://" in path:
        raise errors.usage("write output", path, "an output is a directory")
    if os.path.lexists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise errors.usage("write output", path, "it exists already")


def month_of(table: Table, period: str) -> Optional[str]:
    """An expression for the month of a row, if the table is divided by months."""
    if table.kind in _MONTHS:
        return f"date_format({_MONTHS[table.kind]}, 'yyyy-MM')"
    names = [column.name for column in table.columns]
    if table.kind == "revenue" and "period" in names and period in ("month", "day"):
        return "substring(period, 1, 7)"
    return None


def write(
    frame: Any, table: Table, order: Any, month: Optional[str], rows: int, folder: str
) -> None:
    """Writes a table: a file a month, or as many as it takes."""
    from pyspark.sql import functions as f

    files = max(1, -(-rows // _FILE_ROWS_MAX))
    # The same rows come into the same file in every run.
    salt = f.pmod(f.xxhash64(*order), f.lit(files))
    path = os.path.join(folder, table.kind)
    if month is None:
        sorted_frame = frame.repartition(files, salt).sortWithinPartitions(*order)
        sorted_frame.write.parquet(path)
    else:
        divided = frame.withColumn("month", f.expr(month)).repartition("month", salt)
        divided = divided.sortWithinPartitions("month", *order)
        divided.write.partitionBy("month").parquet(path)
    _tidy(path)


def _tidy(path: str) -> None:
    """Removes the checksums that Hadoop keeps beside files: the manifest has better ones."""
    for folder, _, names in os.walk(path):
        for name in names:
            if name.startswith((".", "_")):
                os.unlink(os.path.join(folder, name))


def files_of(folder: str) -> List[str]:
    """The Parquet files under a folder, relative to it, in order."""
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".parquet"):
                found.append(os.path.relpath(os.path.join(parent, name), folder))
    return sorted(found)


def digests(folder: str, names: List[str]) -> Dict[str, str]:
    """The SHA-256 of files, in hexadecimal."""
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        found = pool.map(lambda name: _digest(os.path.join(folder, name)), names)
        return dict(zip(names, found))


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while True:
            data = file.read(1 << 20)
            if not data:
                return digest.hexdigest()
            digest.update(data)
