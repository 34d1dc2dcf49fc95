# Folding: all events of a component go to one partition, each partition through one run of
# `ledger-rules fold`.
#
# Each task writes its rows to Parquet files in a folder of its own and tells only their names. A
# task that runs twice, or is killed, leaves a folder that nobody reads.

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from . import errors, exchange
from . import session as sessions
from . import tables
from .errors import Failure
from .exchange import Batch
from .plan import Plan
from .row_groups import RowGroups
from .rules import NAME, Program, Run, json_of, with_stdin, write_task
from .session import Session
from .state import Scanned

DECLARATIONS = "declarations.exchange"
# A row group of Parquet gets at least this much of typed rows.
_GROUP_BYTES = 4 << 20
# Labels and their roots take some 40 bytes each in every executor.
_BROADCAST_ROWS_MAX = 2_000_000


class Folded(NamedTuple):
    """What the fold of a partition gave: its folder, its rows by table, how many events."""

    folder: str
    rows: List[int]
    events: int

    def table(self, number: int) -> str:
        return os.path.join(self.folder, f"{number}.parquet")


class Job(NamedTuple):
    """What each task needs besides its events."""

    program: str
    task: Dict[str, Any]
    tables: List[Dict[str, Any]]
    names: List[str]
    folder: str
    scratch: Optional[str]


def task_of(
    plans: Sequence[Plan], moment_ms: Optional[int], reports: List[Dict[str, Any]]
) -> Dict[str, Any]:
    """The task file, but for the place of the declarations."""
    return {
        "ledgers": [{"id": plan.id, "name": plan.ledger.name} for plan in plans],
        "declarations": DECLARATIONS,
        "moment_ms": moment_ms,
        "reports": reports,
    }


def described(program: Program, task: Dict[str, Any], scratch: str) -> List[Dict[str, Any]]:
    """The tables of a task: their columns and what their cells are."""
    path = os.path.join(scratch, "describe.json")
    write_task(path, task)
    try:
        said = json_of(program.path, ["fold", "--task", path, "--describe"])
    except Failure as failure:
        if failure.code != errors.USAGE:
            raise
        raise errors.usage("parse arguments", "options", failure.cause) from None
    try:
        found = list(said["tables"])
        for table in found:
            tables.Table.of(table)
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"{NAME} fold --describe", "output", f"another form: {error}") from None
    return found


def write_declarations(path: str, plans: Sequence[Plan], scanned: Sequence[Scanned]) -> None:
    """The events that concern every partition, in order."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    ids = pa.array([plan.id for plan in plans], pa.string())
    table = pa.concat_tables([pq.read_table(entry.table("declarations")) for entry in scanned])
    index = pc.index_in(table.column("ledger"), ids).cast(pa.int64())
    table = table.set_column(0, "ledger", index)
    table = table.sort_by(
        [("at_ms", "ascending"), ("ledger", "ascending"), ("position", "ascending")])
    batches = [
        Batch(0, [batch.column("ledger"), batch.column("position"), batch.column("line")])
        for batch in table.to_batches(max_chunksize=exchange.ROWS_FLUSHED)
    ]
    exchange.write_file(path, batches, {})


def fold(
    session: Session, job: Job, plans: Sequence[Plan], scanned: Sequence[Scanned], roots: str,
    root_count: int, partitions: int,
) -> List[Folded]:
    """Folds all events."""
    events = _events(session.spark, plans, scanned, roots, root_count)
    ordered = (
        events.repartition(partitions, "root")
        .sortWithinPartitions("at_ms", "ledger", "position")
        .select("ledger", "position", "line")
    )

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        yield from _fold_partition(job, batches)

    try:
        answers = session.map_in_arrow(
            ordered, work, "folded string, failure string").collect()
    except Exception as error:
        raise sessions.failure_of(error, "fold") from None
    for answer in answers:
        if answer.failure is not None:
            raise Failure.parse(answer.failure)
    found = [Folded(*json.loads(answer.folded)) for answer in answers]
    # Without any event, what the declarations give is still to be folded.
    return found or [_fold(job, *map(sessions.shipped, (job.program, DECLARATIONS)), iter(()))]


def _events(
    spark: Any, plans: Sequence[Plan], scanned: Sequence[Scanned], roots: str, root_count: int
) -> Any:
    """All events: the index of their ledger, their position, time and line, and their root."""
    from pyspark.sql import functions as f

    indexes = spark.createDataFrame(
        [(plan.id, number) for number, plan in enumerate(plans)], "id string, number long")
    events = spark.read.schema(
        "ledger string, position long, at_ms long, component long, line binary"
    ).parquet(*[entry.table("events") for entry in scanned])
    events = events.join(f.broadcast(indexes), events.ledger == indexes.id)
    events = events.select(
        f.col("number").alias("ledger"), "position", "at_ms", "component", "line")
    if root_count == 0:
        return events.withColumnRenamed("component", "root")
    found = spark.read.schema("component long, root long").parquet(roots)
    if root_count <= _BROADCAST_ROWS_MAX:
        found = f.broadcast(found)
    events = events.join(found, "component", "left")
    return events.select(
        "ledger", "position", "at_ms", "line", f.coalesce("root", "component").alias("root"))


def _fold_partition(job: Job, batches: Iterator[Any]) -> Iterator[Any]:
    """On an executor: folds one partition. A failure that repeating cannot mend is a row, not an
    exception.
    """
    import pyarrow as pa

    first = next(batches, None)
    if first is None:
        return

    def all_batches() -> Iterator[Batch]:
        yield Batch(0, first.columns)
        for batch in batches:
            yield Batch(0, batch.columns)

    folded: Optional[str] = None
    failure: Optional[str] = None
    try:
        program = sessions.shipped(job.program)
        folded = json.dumps(
            _fold(job, program, sessions.shipped(DECLARATIONS), all_batches()))
    except Failure as error:
        if error.is_transient:
            raise error.marked() from None
        failure = error.text()
        for _ in batches:  # Spark sends all rows before it reads ours.
            pass
    yield pa.RecordBatch.from_arrays(
        [pa.array([folded], pa.string()), pa.array([failure], pa.string())],
        ["folded", "failure"])


def _fold(job: Job, program: str, declarations: str, batches: Iterator[Batch]) -> Folded:
    folder = os.path.join(job.folder, uuid.uuid4().hex)
    task_folder = tempfile.mkdtemp(prefix="receipt-ledger-fold-", dir=job.scratch)
    try:
        os.makedirs(folder, 0o700)
        task = os.path.join(task_folder, "task.json")
        write_task(task, {**job.task, "declarations": declarations})
        writers = [
            _Writer(os.path.join(folder, f"{number}.parquet"), tables.Table.of(table), job.names)
            for number, table in enumerate(job.tables)
        ]

        def take(batch: Batch) -> None:
            if batch.table >= len(writers):
                raise Failure(f"{NAME} fold", "output", f"there is no table {batch.table}")
            writers[batch.table].add(batch.columns)

        arguments = ["fold", "--task", task, "--scratch", task_folder]
        with Run(program, arguments) as run:
            wait = run.read_batches(take)
            with_stdin(run, batches)
            end = wait()
        for writer in writers:
            writer.close()
        return _checked(Folded(folder, [writer.rows for writer in writers], end["events"]), end)
    except OSError as error:
        raise Failure("fold", folder, str(error)) from None
    finally:
        shutil.rmtree(task_folder, ignore_errors=True)


def _checked(folded: Folded, end: Dict[str, Any]) -> Folded:
    said = [table.get("rows") for table in end["tables"]]
    if said != folded.rows:
        raise Failure(f"{NAME} fold", "output", f"it reported {said} rows and wrote {folded.rows}")
    return folded


class _Writer:
    """A Parquet file of typed rows."""

    def __init__(self, path: str, table: tables.Table, names: List[str]) -> None:
        self.rows = 0
        self._table = table
        self._names = names
        self._groups = RowGroups(path, table.schema(), _GROUP_BYTES)

    def add(self, columns: List[Any]) -> None:
        import pyarrow as pa

        try:
            batch = tables.typed(self._table, columns, self._names)
        except (pa.ArrowException, ValueError) as error:
            # The message of Arrow may show a cell.
            raise Failure(
                f"{NAME} fold", f"table {self._table.kind}",
                f"a cell has another form: {type(error).__name__}", 21) from None
        self.rows += batch.num_rows
        self._groups.add(batch)

    def close(self) -> None:
        self._groups.close()
