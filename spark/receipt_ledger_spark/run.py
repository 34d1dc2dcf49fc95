# The command `run`: from ledgers to tables, step by step.

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from . import components, fold, manifest, merge, output, scan
from . import plan as plans_of
from . import rules
from . import state as states
from .errors import Failure
from .fleet import Ledger
from .plan import Plan
from .reports import Options
from .rules import Program
from .session import Session, check, failure_of
from .tables import Table

# What one run of the fold takes at a time, unless --partitions says otherwise.
_EVENTS_PER_PARTITION = 125_000
_PARTITIONS_MAX = 100_000
# What one task writes of the tables.
_ROWS_PER_PARTITION = 500_000


class Request(NamedTuple):
    """What `run` was asked for."""

    ledgers: Sequence[Ledger]
    output: str
    options: Options
    state: Optional[str] = None
    master: str = "local[*]"
    partitions: Optional[int] = None
    rules: Optional[str] = None
    scratch: Optional[str] = None
    settings: Sequence[str] = ()
    is_verbose: bool = False
    driver_links_max: int = components.DRIVER_LINKS_MAX


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def run(request: Request) -> Dict[str, Any]:
    """Makes the output. Returns its manifest."""
    program = rules.find(request.rules)
    check()
    path = os.path.abspath(request.output)
    with output.beside(path) as place, _state(request.state, place.work) as state:
        plans = plans_of.plan_all(program, request.ledgers, state)
        task = fold.task_of(plans, plans_of.moment_ms(plans), request.options.of_task())
        described = fold.described(program, task, place.work)
        partitions = request.partitions or _partitions(plans)
        session = Session(
            request.master, partitions, 1024, request.scratch, request.settings,
            request.is_verbose)
        with session:
            try:
                _compute(session, request, program, plans, task, described, partitions, state,
                         place)
            except Failure:
                raise
            except Exception as error:
                raise failure_of(error, "run") from None
        tables = [Table.of(table).shown() for table in described]
        manifest.write(
            place.result, _members(request, program, plans, task, described), tables)
        if request.state is not None:
            states.prune(state, plans)
    return manifest.read(path)


def _compute(
    session: Session, request: Request, program: Program, plans: List[Plan],
    task: Dict[str, Any], described: List[Dict[str, Any]], partitions: int, state: str,
    place: output.Workplace,
) -> None:
    session.ship(program.path)
    session.begin("scan")
    scanned = scan.scan(session, program, plans, state, say)
    count = sum(plan.size for plan in plans)
    say(f"{count} events of {len(plans)} ledgers in {len(scanned)} parts")
    declarations = os.path.join(place.work, fold.DECLARATIONS)
    job = fold.Job(
        os.path.basename(program.path), task, described, [plan.ledger.name for plan in plans],
        os.path.join(place.work, "fold"), request.scratch)
    if scanned:
        session.begin("join components")
        roots, root_count = components.roots(
            session.spark, [entry.table("edges") for entry in scanned], place.work,
            request.driver_links_max)
        fold.write_declarations(declarations, plans, scanned)
        session.ship(declarations)
        rows = scan.rows_per_batch(scanned)
        for key in ("spark.sql.execution.arrow.maxRecordsPerBatch",
                    "spark.sql.parquet.columnarReaderBatchSize"):
            session.spark.conf.set(key, str(rows))
        say(f"folding in {partitions} partitions")
        session.begin("fold")
        folded = fold.fold(session, job, plans, scanned, roots, root_count, partitions)
    else:
        folded = []
    _resize(session, partitions, sum(sum(entry.rows) for entry in folded))
    for number, value in enumerate(described):
        table = Table.of(value)
        rows = sum(entry.rows[number] for entry in folded)
        say(f"writing {table.kind}")
        session.begin(f"write {table.kind}")
        frame = merge.frame_of(session.spark, table, number, folded)
        frame = merge.merged(session.spark, table, frame, plans)
        shown = table.shown()
        month = output.month_of(shown, request.options.period)
        output.write(frame, shown, merge.order_of(shown), month, rows, place.result)


def _resize(session: Session, partitions: int, rows: int) -> None:
    """Sets batches and shuffles for tables: their rows are small, and fewer than events."""
    spark = session.spark
    spark.conf.set("spark.sql.parquet.columnarReaderBatchSize", "4096")
    parallel = max(spark.sparkContext.defaultParallelism, -(-rows // _ROWS_PER_PARTITION))
    spark.conf.set("spark.sql.shuffle.partitions", str(min(partitions, parallel)))


def _partitions(plans: Sequence[Plan]) -> int:
    """As many as there are processors, or more if events are many."""
    count = sum(plan.size for plan in plans)
    needed = -(-count // _EVENTS_PER_PARTITION)
    return min(_PARTITIONS_MAX, max(os.cpu_count() or 1, needed))


def _members(
    request: Request, program: Program, plans: Sequence[Plan], task: Dict[str, Any],
    described: List[Dict[str, Any]],
) -> Dict[str, Any]:
    import pyarrow
    import pyspark

    return {
        "program": {"ledger_rules": program.version, "format_version": program.format_version,
                    "pyspark": pyspark.__version__, "pyarrow": pyarrow.__version__},
        "ledgers": [plans_of.described(plan) for plan in plans],
        "options": request.options.described(),
        # With this, `csv` reads the tables again.
        "task": {**task, "declarations": ""},
        "described": described,
    }


@contextmanager
def _state(path: Optional[str], work: str) -> Iterator[str]:
    """The folder of --state, for one run at a time; without it, one that goes with the run."""
    if path is None:
        folder = os.path.join(work, "state")
        os.mkdir(folder, 0o700)
        yield folder
        return
    folder = os.path.abspath(path)
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Failure("open state", path, error.strerror or "it cannot be opened") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Failure("open state", path, "another run uses it", 11) from None
        yield folder
    finally:
        os.close(lock)
