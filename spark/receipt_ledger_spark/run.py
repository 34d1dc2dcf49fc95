# The command `run`: from ledgers to tables, step by step.

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import pyspark
from pyspark.sql import SparkSession

from . import components, fold, output, reports, scan, tables
from .fleet import Ledger
from .plan import Plan, plan_all
from .reports import Options
from .rules import Program
from .session import session
from .tables import Table

# What one run of the fold takes at a time, unless --partitions says otherwise.
_EVENTS_PER_PARTITION = 50_000
_PARTITIONS_MAX = 100_000


class Request(NamedTuple):
    """What `run` was asked for."""

    ledgers: Sequence[Ledger]
    output: str
    options: Options
    master: Optional[str]
    partitions: Optional[int]


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def run(program: Program, request: Request) -> None:
    """Makes the output."""
    plans = plan_all(program, request.ledgers)
    task = fold.task_of(plans, request.options.of_task())
    described = fold.described(program, task)
    with session(request.master, "run") as spark:
        is_begun = output.check_free(spark, request.output, request.options)
        if is_begun:
            say(f"{request.output}: an earlier run did not finish; its tables are replaced")
        rows = _compute(spark, request, program, plans, task, described)
    counts = ", ".join(f"{count} {kind}" for kind, count in rows.items())
    say(f"{request.output}: {counts}")


def _compute(
    spark: SparkSession, request: Request, program: Program, plans: List[Plan],
    task: Dict[str, Any], described: List[Dict[str, Any]],
) -> Dict[str, int]:
    context = spark.sparkContext
    context.addFile(program.path)
    name = os.path.basename(program.path)
    context.setJobDescription("scan")
    is_fleet = len(plans) > 1
    before_ms = request.options.until_ms()
    if before_ms is None and is_fleet:
        before_ms = scan.common_time_ms(spark, name, plans)
    if before_ms is not None:
        say(f"events before {reports.time_text(before_ms)}")
    scanned = scan.scan(spark, name, plans, before_ms)
    say(f"{scanned.sum('events') + scanned.sum('declarations')} events of {len(plans)} ledgers "
        f"in {len(scanned.summaries)} parts")
    context.setJobDescription("join components")
    roots = components.roots(spark, scanned.of(scan.EDGE))
    partitions = request.partitions or _partitions(plans, context.defaultParallelism)
    # Spark puts small ones together.
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    say(f"folding in {partitions} partitions")
    context.setJobDescription("fold")
    with tempfile.TemporaryDirectory(prefix="receipt-ledger-") as folder:
        context.addFile(fold.write_declarations(folder, scanned))
        task = {**task, "moment_ms": scanned.moment_ms(is_fleet)}
        kinds = [Table.of(each) for each in described]
        folded = fold.fold(spark, name, task, kinds, scanned, roots, partitions)
        scanned.check_unchanged()
        output.begin(spark, request.output, request.options)
        names = [plan.ledger.name for plan in plans]
        for number, table in enumerate(kinds):
            context.setJobDescription(f"write {table.kind}")
            frame = tables.typed(table, number, folded, names)
            frame = tables.merged(table, frame, names)
            output.write(request.output, table.shown(), frame, request.options)
    context.setJobDescription("count")
    rows = output.counts(spark, request.output, [table.shown() for table in kinds])
    output.finish(spark, request.output, {
        "program": {"ledger_rules": program.version, "format_version": program.format_version,
                    "pyspark": pyspark.__version__},
        "ledgers": [plan.described() for plan in plans],
        "before": None if before_ms is None else reports.time_text(before_ms),
        "options": request.options.described(),
        # With this, `csv` reads the tables again.
        "task": task,
        "described": described,
        "rows": rows,
    })
    return rows


def _partitions(plans: Sequence[Plan], parallelism: int) -> int:
    """As many as there are processors, or more if events are many."""
    needed = -(-sum(plan.size for plan in plans) // _EVENTS_PER_PARTITION)
    return min(_PARTITIONS_MAX, max(parallelism, needed))
