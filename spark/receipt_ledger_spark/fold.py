# Folding: all events of a component go to one partition, each partition through one run of
# `ledger-rules fold`.

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np
import pyarrow as pa
from pyspark import SparkFiles, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from . import errors, streams
from .errors import Failure
from .plan import Plan
from .rules import NAME, Program, json_of, run
from .scan import DECLARATION, Scanned
from .tables import Table

DECLARATIONS = "declarations.txt"
# The row with which each partition says how many events it folded.
_COUNT = -1
_SCHEMA = pa.schema([("number", pa.int32()), ("cells", pa.list_(pa.string()))])


def task_of(plans: Sequence[Plan], reports: List[Dict[str, Any]]) -> Dict[str, Any]:
    """The task file, but for the place of the declarations and the time of the last event."""
    return {
        "ledgers": [{"origin": plan.origin, "name": plan.ledger.name} for plan in plans],
        "declarations": DECLARATIONS,
        "moment_ms": None,
        "reports": reports,
    }


def write_task(folder: str, task: Dict[str, Any]) -> str:
    """Writes the file of --task; returns its path."""
    path = os.path.join(folder, "task.json")
    with open(path, "x", encoding="utf-8") as file:
        json.dump(task, file, ensure_ascii=False)
    return path


def described(program: Program, task: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The tables of a task: their columns and what their cells are."""
    with tempfile.TemporaryDirectory(prefix="receipt-ledger-") as folder:
        try:
            said = json_of(
                program.path, ["fold", "--task", write_task(folder, task), "--describe"])
        except Failure as failure:
            if failure.code != errors.USAGE:
                raise
            raise errors.usage("parse arguments", "options", failure.cause) from None
    try:
        for table in said["tables"]:
            Table.of(table)
        return list(said["tables"])
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"{NAME} fold --describe", "output", f"another form: {error}") from None


def write_declarations(folder: str, scanned: Scanned) -> str:
    """Writes the events that concern every partition, in order; returns the file's path."""
    ordered = scanned.of(DECLARATION).orderBy("at_ms", "ledger", "position")
    table = ordered.select("ledger", "position", f.lit("").alias("digest"), "line").toArrow()
    path = os.path.join(folder, DECLARATIONS)
    streams.write(open(path, "xb"), table.to_batches())
    return path


def fold(
    spark: SparkSession, program: str, task: Dict[str, Any], described: List[Dict[str, Any]],
    scanned: Scanned, roots: DataFrame, partitions: int,
) -> DataFrame:
    """Folds all events: the rows of all tables, as the table's number and its cells."""
    columns = [[(name, pa.string()) for name in table["columns"]] for table in described]
    events = scanned.events().join(roots, "component", "left")
    ordered = (
        events.withColumn("root", f.coalesce("root", "component"))
        .repartition(partitions, "root")
        .sortWithinPartitions("at_ms", "ledger", "position")
        .select("ledger", "position", "digest", "line")
    )

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from _rows(program, task, columns, batches)
        except Failure as failure:
            raise failure.marked() from None
        except OSError as error:
            raise Failure("fold", "scratch folder", str(error)).marked() from None

    folded = ordered.mapInArrow(work, "number int, cells array<string>").persist(
        StorageLevel.DISK_ONLY)
    counts = folded.where(f.col("number") == _COUNT).select("cells").collect()
    count = sum(int(row.cells[0]) for row in counts)
    if count != scanned.sum("events"):
        raise Failure("fold", "events", f"{scanned.sum('events')} were read and {count} folded")
    return folded


def _rows(
    program: str, task: Dict[str, Any], columns: List[List[Tuple[str, pa.DataType]]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """On an executor: folds one partition, which may be empty."""
    with tempfile.TemporaryDirectory(prefix="receipt-ledger-fold-") as folder:
        path = write_task(folder, {**task, "declarations": SparkFiles.get(DECLARATIONS)})
        arguments = ["fold", "--task", path, "--scratch", folder]
        with run(SparkFiles.get(program), arguments) as process:
            streams.write(process.stdin, batches)
            reader = streams.Reader(process.stdout, columns, quoted=True)
            for number, rows in reader:
                for batch in rows.to_batches():
                    yield _batch(number, batch.columns)
    yield _batch(_COUNT, [pa.array([str(reader.end["events"])])])


def _batch(number: int, columns: List[pa.Array]) -> pa.RecordBatch:
    """Rows of a table, row by row."""
    rows, width = len(columns[0]), len(columns)
    order = np.arange(rows * width).reshape(width, rows).T.ravel()
    cells = pa.concat_arrays(columns).take(order)
    offsets = np.arange(0, rows * width + 1, width, dtype=np.int32)
    return pa.RecordBatch.from_arrays(
        [pa.repeat(pa.scalar(number, pa.int32()), rows),
         pa.ListArray.from_arrays(offsets, cells)], schema=_SCHEMA)
