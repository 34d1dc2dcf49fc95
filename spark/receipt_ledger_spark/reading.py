# The commands that read an output: `csv` and `total`, by the program that knows how cells are
# written.

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any, BinaryIO, Dict, Iterator, List, Tuple

import pyarrow as pa
import pyarrow.parquet as pq

from . import errors, exchange, manifest, output, tables
from .errors import Failure
from .exchange import Batch
from .rules import Program, Run, with_stdin, write_task
from .tables import AMOUNT, Table


def csv(program: Program, folder: str, kind: str, stream: BinaryIO) -> None:
    """Writes a table as `ledgerctl export --format csv` writes its rows."""
    content = manifest.read(folder)
    table, number = _table(content, folder, kind)
    names = [entry["name"] for entry in content["task"]["ledgers"]]
    paths = [os.path.join(folder, name) for name in output.files_of(folder)
             if name.startswith(f"{kind}/")]
    batches = _batches(table, number, paths, names)
    _write(program, content["task"], number, batches, stream)


def total(program: Program, folder: str, stream: BinaryIO) -> None:
    """Writes the totals of revenue by currency, as CSV."""
    content = manifest.read(folder)
    table, number = _table(content, folder, "revenue")
    report = content["task"]["reports"][number]
    task = {**content["task"], "reports": [
        {"kind": "revenue", "filters": {**report["filters"], "by": []}}]}
    keys = {"currency"} | {column.name for column in table.columns if column.content != "text"}
    summed = Table("revenue", tuple(c for c in table.columns if c.name in keys))
    rows = content["tables"]["revenue"]["by_currency"]
    _write(program, task, 0, iter([_totals(summed, rows)] if rows else []), stream)


def _totals(table: Table, rows: Dict[str, Dict[str, Any]]) -> Batch:
    arrays = []
    for column, field in zip(table.columns, table.schema()):
        if column.content == "text":
            arrays.append(pa.array([code or None for code in rows], field.type))
            continue
        # A row without a currency has no amounts.
        texts = [None if row[column.name] is None else str(row[column.name])
                 for row in rows.values()]
        values = pa.array(texts, pa.string())
        arrays.append(values.cast(AMOUNT if column.content == "amount" else field.type))
    batch = pa.RecordBatch.from_arrays(arrays, schema=table.schema())
    return Batch(0, tables.cells(table, batch, []))


def _table(content: Dict[str, Any], folder: str, kind: str) -> Tuple[Table, int]:
    for number, described in enumerate(content["described"]):
        if described["kind"] == kind:
            return Table.of(described).shown(), number
    raise errors.usage("read output", folder, f"it has no table '{kind}'")


def _batches(
    table: Table, number: int, paths: List[str], names: List[str]
) -> Iterator[Batch]:
    columns = [field.name for field in table.fields()]
    for path in paths:
        try:
            for batch in pq.ParquetFile(path).iter_batches(batch_size=8192, columns=columns):
                yield Batch(number, tables.cells(table, batch, names))
        except (OSError, pa.ArrowException) as error:
            raise Failure(
                "read output", path, f"it cannot be read: {type(error).__name__}",
                errors.DAMAGE) from None


def _write(
    program: Program, task: Dict[str, Any], number: int, batches: Iterator[Batch],
    stream: BinaryIO,
) -> None:
    with tempfile.TemporaryDirectory(prefix="receipt-ledger-") as folder:
        path = os.path.join(folder, "task.json")
        declarations = os.path.join(folder, "declarations")
        exchange.write_file(declarations, [], {})
        write_task(path, {**task, "declarations": declarations})
        sys.stdout.flush()
        arguments = ["csv", "--task", path, "--report", str(number)]
        with Run(program.path, arguments, output=stream) as run:
            with_stdin(run, batches)
            try:
                run.finish()
            except Failure as failure:
                if failure.cause == "broken pipe":
                    raise BrokenPipeError from None
                raise
