# Reading the parts of ledgers: one task a part, whose rows Spark keeps on its disks; and the time
# before which all ledgers are known.

from __future__ import annotations

import bisect
import contextlib
import json
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkFiles, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from . import copies, errors, streams
from .errors import DAMAGE, Failure
from .fleet import Ledger
from .plan import Part, Plan
from .rules import NAME, run

EVENT, EDGE, DECLARATION, RECEIPT, SUMMARY = range(5)
_COLUMNS = {
    EVENT: ("position", "at_ms", "component", "uuid", "receipt", "line"),
    EDGE: ("component", "nodes"), DECLARATION: ("position", "at_ms", "line"),
    RECEIPT: ("receipt", "digest"), SUMMARY: ("line",),
}
# The tables of a scan.
_TABLES = (EVENT, EDGE, DECLARATION, RECEIPT)
_SCHEMA = pa.schema([
    ("part", pa.int32()), ("ledger", pa.int64()), ("what", pa.int32()), ("position", pa.int64()),
    ("at_ms", pa.int64()), ("component", pa.int64()), ("nodes", pa.list_(pa.int64())),
    ("uuid", pa.string()), ("receipt", pa.string()), ("digest", pa.string()),
    ("line", pa.binary())])
_SPARK_SCHEMA = ("part int, ledger long, what int, position long, at_ms long, component long, "
                 "nodes array<long>, uuid string, receipt string, digest string, line binary")


class Task(NamedTuple):
    """A part of a ledger; `number` is that of the ledger in the order of origins."""

    ledger: Ledger
    number: int
    part: Part
    copy: Any
    # What was recorded at this time or later is not for the fold.
    before_ms: Optional[int] = None
    has_receipts: bool = False


class Scanned(NamedTuple):
    """The rows of all parts, the summary of each, and the declarations in order."""

    rows: DataFrame
    summaries: Dict[int, Dict[str, Any]]
    declarations: pa.Table

    def of(self, what: int) -> DataFrame:
        return self.rows.where(f.col("what") == what)

    def sum(self, member: str) -> int:
        return sum(each[member] for each in self.summaries.values())

    def moment_ms(self, is_fleet: bool) -> Optional[int]:
        """When the last event was recorded. Of a fleet: the last but for declarations, which may
        be copies of others as notifications may.
        """
        if not self.summaries:
            return None
        last = max(each["last_event_at_ms"] for each in self.summaries.values())
        if not is_fleet:
            return last
        unique = max(each["last_unique_at_ms"] for each in self.summaries.values())
        if unique == last:
            return last
        firsts = self.of(EVENT).where("length(uuid) > 0").groupBy("uuid").agg(
            f.min("at_ms").alias("at_ms"))
        found = firsts.agg(f.max("at_ms").alias("at_ms")).first()
        return max(unique, (found and found.at_ms) or 0)

    def events(self) -> DataFrame:
        """The events, each with the digest of its receipt if it lacks it and others have it."""
        events = self.of(EVENT)
        if self.sum("without_digest") == 0:
            return events.withColumn("digest", f.lit(""))
        keys = ["ledger", "receipt"]
        wanted = events.where("length(receipt) > 0").select(*keys).distinct()
        known = self.of(RECEIPT).join(wanted, keys).groupBy(*keys).agg(
            f.min("digest").alias("digest"))
        found = events.drop("digest").join(f.broadcast(known), keys, "left")
        return found.withColumn("digest", f.coalesce("digest", f.lit("")))

    def check_unchanged(self) -> None:
        """An erasure that rewrites a ledger while lost rows are read again would mix two scans."""
        if _known(self.rows)[0] != self.summaries:
            raise Failure("scan", "ledgers", "one was rewritten meanwhile; run again")


def common_time_ms(spark: SparkSession, program: str, plans: Sequence[Plan]) -> int:
    """The smallest of the ledgers' newest times: before it, all ledgers are known."""
    for plan in plans:
        if plan.size == 0:
            raise errors.usage(
                "scan", plan.ledger.name,
                "it has no events; --until says up to which time the others are read")
    rows = _read(spark, program, {
        number: Task(plan.ledger, number, Part(plan.size - 1, plan.size), plan.copy)
        for number, plan in enumerate(plans)})
    found = min(each["last_event_at_ms"] for each in _known(rows)[0].values())
    rows.unpersist()
    return int(found)


def scan(
    spark: SparkSession, program: str, plans: Sequence[Plan], before_ms: Optional[int]
) -> Scanned:
    """Reads all parts, and checks that they make up the planned histories."""
    tasks = [Task(plan.ledger, number, part, plan.copy, before_ms)
             for number, plan in enumerate(plans) for part in plan.parts]
    rows = _read(spark, program, dict(enumerate(tasks)))
    summaries, declarations = _known(rows)
    for number, plan in enumerate(plans):
        _check_chain(plan, [(task.part, summaries[part]) for part, task in enumerate(tasks)
                            if task.number == number])
    again = _needing_receipts(tasks, summaries)
    if again:
        # The fold compares what older programs did not.
        with_receipts = _read(
            spark, program, {part: tasks[part]._replace(has_receipts=True) for part in again})
        rows = rows.where(~f.col("part").isin(again)).union(with_receipts)
        summaries, declarations = _known(rows)
    return Scanned(rows, summaries, declarations)


def _read(spark: SparkSession, program: str, tasks: Dict[int, Task]) -> DataFrame:
    parts = sorted(tasks)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                try:
                    yield from _part_rows(parts[index], tasks[parts[index]], program)
                except Failure as failure:
                    raise failure.of(tasks[parts[index]].ledger.name).marked() from None
                except OSError as error:
                    raise Failure("scan", tasks[parts[index]].ledger.name,
                                  str(error)).marked() from None

    numbers = spark.range(0, len(parts), 1, max(len(parts), 1))
    return numbers.mapInArrow(work, _SPARK_SCHEMA).persist(StorageLevel.DISK_ONLY)


def _part_rows(part: int, task: Task, program: str) -> Iterator[pa.RecordBatch]:
    """On an executor: the rows of a part, and last its summary."""
    first, end = task.part
    place = (contextlib.nullcontext(task.ledger.path) if task.copy is None
             else copies.directory(task.ledger, first, end, task.copy))
    with place as directory:
        arguments = ["scan", "--directory", directory, "--from", str(first), "--to", str(end),
                     *(["--receipts"] if task.has_receipts else []),
                     *([] if task.before_ms is None else ["--before", str(task.before_ms)])]
        with run(SparkFiles.get(program), arguments, feeds=False) as process:
            reader = streams.Reader(process.stdout, [
                [(name, _type(name)) for name in _COLUMNS[what]] for what in _TABLES],
                quoted=False)
            for what, rows in reader:
                for batch in rows.to_batches():
                    columns = _grouped(*batch.columns) if what == EDGE else batch.columns
                    yield _batch(part, task.number, what, columns)
            summary = reader.end
    if summary.get("first") != first or summary.get("end") != end:
        raise Failure(f"{NAME} scan", directory, "it read other events than those asked for")
    text = json.dumps({**summary, "part": part, "crc32": reader.crc}).encode()
    yield _batch(part, task.number, SUMMARY, [pa.array([text], pa.binary())])


def _type(name: str) -> pa.DataType:
    """Of a column of the program."""
    return pa.int64() if name == "nodes" else _SCHEMA.field(name).type


def _grouped(components: pa.Array, nodes: pa.Array) -> List[pa.Array]:
    """Each component once, with its nodes: fewer rows."""
    labels = components.to_numpy()
    order = np.argsort(labels, kind="stable")
    labels = labels[order]
    starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
    ends = np.append(starts, len(labels)).astype(np.int32)
    return [pa.array(labels[starts]), pa.ListArray.from_arrays(ends, nodes.take(order))]


def _batch(part: int, ledger: int, what: int, columns: List[pa.Array]) -> pa.RecordBatch:
    rows = len(columns[0])
    found = {"part": part, "ledger": ledger, "what": what}
    arrays: Dict[str, pa.Array] = {
        name: pa.repeat(pa.scalar(value, _SCHEMA.field(name).type), rows)
        for name, value in found.items()}
    arrays.update(zip(_COLUMNS[what], columns))
    return pa.RecordBatch.from_arrays(
        [arrays.get(field.name, pa.nulls(rows, field.type)) for field in _SCHEMA],
        schema=_SCHEMA)


def _known(rows: DataFrame) -> Tuple[Dict[int, Dict[str, Any]], pa.Table]:
    """What the driver keeps: the summaries of parts, and the declarations."""
    found = rows.where(f.col("what").isin(SUMMARY, DECLARATION)).select(
        "part", "what", "ledger", "position", "at_ms", "line").toArrow()
    summaries = found.filter(pc.equal(found["what"], SUMMARY)).select(["part", "line"])
    declarations = found.filter(pc.equal(found["what"], DECLARATION)).sort_by(
        [(name, "ascending") for name in ("at_ms", "ledger", "position")])
    return {row["part"]: json.loads(row["line"]) for row in summaries.to_pylist()}, declarations


def _check_chain(plan: Plan, scanned: Sequence[Tuple[Part, Dict[str, Any]]]) -> None:
    """Each part's tree continues the previous one's, and the last has the planned root."""
    frontier: List[str] = []
    for part, summary in scanned:
        if summary["frontier_before"] != frontier:
            raise Failure(
                "scan", plan.ledger.name,
                f"the events from {part.first} on do not continue those before them", DAMAGE)
        frontier = summary["frontier_after"]
    if scanned and scanned[-1][1]["root_after"] != plan.root:
        raise Failure(
            "scan", plan.ledger.name, f"the events up to {plan.size} do not have the root of its "
            "head", DAMAGE)


def _needing_receipts(tasks: Sequence[Task], summaries: Dict[int, Dict[str, Any]]) -> List[int]:
    """The parts with receipts that events of other parts need."""
    needed: Dict[int, List[int]] = {}
    for part, summary in summaries.items():
        needed.setdefault(tasks[part].number, []).extend(summary["receipts_needed"])
    found = []
    for part, task in enumerate(tasks):
        positions = sorted(needed[task.number])
        at = bisect.bisect_left(positions, task.part.first)
        if at < len(positions) and positions[at] < task.part.end:
            found.append(part)
    return found
