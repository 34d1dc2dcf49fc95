# The commands that read an output: `csv` and `total`, by the program that knows how cells are
# written. The rows that they print pass through the driver.

from __future__ import annotations

import contextlib
import sys
import tempfile
from typing import Any, BinaryIO, Dict, Iterator, Optional, Tuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from . import errors, output, streams, tables
from .fold import write_task
from .rules import Program, run
from .session import session
from .tables import Table


def csv(program: Program, master: Optional[str], out: str, kind: str, stream: BinaryIO) -> None:
    """Writes a table as `ledgerctl export --format csv` writes its rows."""
    with _opened(master, out, kind) as (content, table, number, rows):
        _write(program, content["task"], number, table, rows, stream)


def total(program: Program, master: Optional[str], out: str, stream: BinaryIO) -> None:
    """Writes the totals of revenue by currency, as CSV."""
    with _opened(master, out, "revenue") as (content, table, number, rows):
        report = content["task"]["reports"][number]
        task = {**content["task"], "reports": [
            {"kind": "revenue", "filters": {**report["filters"], "by": []}}]}
        summed = Table("revenue", tuple(
            column for column in table.columns
            if column.content != "text" or column.name == "currency"))
        sums = rows.groupBy("currency").agg(*[
            f.sum(column.name).alias(column.name) for column in summed.columns
            if column.content != "text"])
        _write(program, task, 0, summed, sums.orderBy("currency"), stream)


@contextlib.contextmanager
def _opened(
    master: Optional[str], out: str, kind: str
) -> Iterator[Tuple[Dict[str, Any], Table, int, DataFrame]]:
    with session(master, "read output") as spark:
        content = output.manifest(spark, out)
        for number, described in enumerate(content["described"]):
            if described["kind"] == kind:
                table = Table.of(described).shown()
                yield content, table, number, output.read(spark, out, table)
                return
        raise errors.usage("read output", out, f"it has no table '{kind}'")


def _write(
    program: Program, task: Dict[str, Any], number: int, table: Table, rows: DataFrame,
    stream: BinaryIO,
) -> None:
    names = [ledger["name"] for ledger in task["ledgers"]]
    batches = tables.cells(table, rows, names).toArrow().to_batches()
    with tempfile.TemporaryDirectory(prefix="receipt-ledger-") as folder:
        path = write_task(folder, task)
        sys.stdout.flush()
        arguments = ["csv", "--task", path, "--report", str(number)]
        with run(program.path, arguments, output=stream) as process:
            streams.write(process.stdin, batches)
