# Folding: all events of a component go to one partition, each partition through one run of
# `ledger-rules fold`.

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Dict, Iterator, List, Sequence

import pyarrow as pa
from pyspark import SparkFiles, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from . import errors, streams, tables
from .errors import Failure
from .plan import Plan
from .rules import NAME, Program, json_of, run
from .scan import Scanned
from .tables import Column, Table

DECLARATIONS = "declarations.txt"
# The row with which each partition says how many events it folded, as a table.
_COUNT = Table("count", (Column("events", "integer"),))


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
    table = scanned.declarations.select(["ledger", "position", "line"])
    table = table.add_column(2, "digest", pa.array([""] * len(table), pa.string()))
    path = os.path.join(folder, DECLARATIONS)
    streams.write(open(path, "xb"), table.to_batches())
    return path


def fold(
    spark: SparkSession, program: str, task: Dict[str, Any], described: Sequence[Table],
    scanned: Scanned, roots: DataFrame, partitions: int,
) -> DataFrame:
    """Folds all events: the rows of all tables, in one frame."""
    kinds = [*described, _COUNT]
    slots = tables.slots(kinds)
    events = scanned.events().join(roots, "component", "left")
    ordered = (
        events.withColumn("root", f.coalesce("root", "component"))
        .repartition(partitions, "root")
        .sortWithinPartitions("at_ms", "ledger", "position")
        .select("ledger", "position", "digest", "line")
    )

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from _rows(program, task, kinds, slots, batches)
        except Failure as failure:
            raise failure.marked() from None
        except OSError as error:
            raise Failure("fold", "scratch folder", str(error)).marked() from None

    folded = ordered.mapInArrow(work, tables.frame_schema(slots)).persist(StorageLevel.DISK_ONLY)
    counts = tables.typed(_COUNT, len(described), folded, []).collect()
    count = sum(row.events for row in counts)
    if count != scanned.sum("events"):
        raise Failure("fold", "events", f"{scanned.sum('events')} were read and {count} folded")
    return folded


def _rows(
    program: str, task: Dict[str, Any], kinds: Sequence[Table], slots: Sequence[str],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """On an executor: folds one partition, which may be empty."""
    names = [ledger["name"] for ledger in task["ledgers"]]
    with tempfile.TemporaryDirectory(prefix="receipt-ledger-fold-") as folder:
        path = write_task(folder, {**task, "declarations": SparkFiles.get(DECLARATIONS)})
        arguments = ["fold", "--task", path, "--scratch", folder]
        with run(SparkFiles.get(program), arguments) as process:
            streams.write(process.stdin, batches)
            reader = streams.Reader(
                process.stdout, [table.cells() for table in kinds[:-1]], quoted=True)
            for number, rows in reader:
                for batch in rows.to_batches():
                    yield tables.frame_rows(number, kinds[number], batch.columns, slots, names)
    yield tables.frame_rows(
        len(kinds) - 1, _COUNT, [pa.array([reader.end["events"]], pa.int64())], slots, names)
