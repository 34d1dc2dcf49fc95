# Reading the parts of ledgers: one task a part, whose result is a folder in --state.

from __future__ import annotations

import bisect
import json
import os
import shutil
import uuid
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from . import session as sessions
from . import state, storage
from .errors import Failure
from .exchange import Batch
from .fleet import Ledger
from .plan import Part, Plan
from .row_groups import RowGroups
from .rules import NAME, Program, Run
from .session import Session
from .state import Scanned

TABLES = ("events", "edges", "declarations")
# Rows are gathered up to this many bytes before Parquet gets them.
_GROUP_BYTES = 32 << 20


def scan(
    session: Session, program: Program, plans: Sequence[Plan], folder: str,
    say: Callable[[str], None],
) -> List[Scanned]:
    """Reads what no earlier run has read, and checks that all parts make up the planned
    histories.
    """
    tasks = []
    for plan in plans:
        os.makedirs(state.folder_of_ledger(folder, plan), mode=0o700, exist_ok=True)
        missing = [part for part in plan.parts if _is_missing(program, folder, plan, part, False)]
        tasks += [_task(program, plan, part, folder, False) for part in missing]
        _say_what(plan, missing, folder, say)
    _run(session, tasks)
    found = {}
    for plan in plans:
        found[plan.id] = [state.read(folder, plan, part) for part in plan.parts]
        _check_chain(plan, found[plan.id])
    _add_receipts(session, program, plans, folder, found, say)
    return [entry for plan in plans for entry in found[plan.id]]


def _add_receipts(
    session: Session, program: Program, plans: Sequence[Plan], folder: str,
    found: Dict[str, List[Scanned]], say: Callable[[str], None],
) -> None:
    """Replaces parts by such with all receipts, where events of other parts need one: the fold
    compares what older programs did not.
    """
    tasks, places = [], []
    for plan in plans:
        needed = sorted({position for entry in found[plan.id]
                         for position in entry.summary.get("receipts_needed", [])})
        for place, part in enumerate(plan.parts):
            at = bisect.bisect_left(needed, part.first)
            if at == len(needed) or needed[at] >= part.end:
                continue
            places.append((plan, place))
            if _is_missing(program, folder, plan, part, True):
                say(f"{plan.ledger.name}: reading events {part.first} to {part.end - 1} again, "
                    "with receipts: verifications of an older program need them")
                tasks.append(_task(program, plan, part, folder, True))
    _run(session, tasks)
    for plan, place in places:
        found[plan.id][place] = state.read(folder, plan, plan.parts[place], True)


def _is_missing(
    program: Program, folder: str, plan: Plan, part: Part, has_receipts: bool
) -> bool:
    """Whether a part has yet to be read; what another version read is removed."""
    path = state.folder_of(folder, plan, part, has_receipts)
    if state.is_old(path, program):
        shutil.rmtree(path)
    return not os.path.isdir(path)


def _task(program: Program, plan: Plan, part: Part, folder: str, has_receipts: bool) -> str:
    return json.dumps({
        "program": os.path.basename(program.path), "version": program.version,
        "ledger": list(plan.ledger[:4]), "id": plan.id, "first": part.first, "end": part.end,
        "folder": state.folder_of(folder, plan, part, has_receipts), "state": folder,
        "has_receipts": has_receipts,
    })


def _say_what(
    plan: Plan, missing: Sequence[Part], folder: str, say: Callable[[str], None]
) -> None:
    """Says what is read, what is not, and why."""
    count = len(plan.parts) - len(missing)
    name = plan.ledger.name
    if count:
        say(f"{name}: {count} of {len(plan.parts)} parts were read by an earlier run")
    known = state.known_ranges(folder, plan)
    for part in missing:
        earlier = [end for first, end in known if first == part.first]
        what = f"{name}: reading events {part.first} to {part.end - 1}"
        if not earlier:
            say(what)
        elif part.end in earlier:
            say(f"{what} again: their log file is another one now")
        elif max(earlier) < part.end:
            say(f"{what} again: {part.end - max(earlier)} events were added to the {part.kind}")
        else:
            say(f"{what} again: earlier runs read up to another head")


def _run(session: Session, tasks: List[str]) -> None:
    if not tasks:
        return
    context = session.spark.sparkContext
    rows = context.parallelize([(task,) for task in tasks], len(tasks))
    frame = session.spark.createDataFrame(rows, "task string")
    try:
        answers = session.map_in_arrow(frame, _scan_parts, "failure string").collect()
    except Exception as error:
        raise sessions.failure_of(error, "scan") from None
    for answer in answers:
        if answer.failure is not None:
            raise Failure.parse(answer.failure)


def _scan_parts(batches: Iterator[Any]) -> Iterator[Any]:
    """On an executor: reads parts. A failure that repeating cannot mend is a row, not an
    exception.
    """
    import pyarrow as pa

    for batch in batches:
        for task in batch.column(0).to_pylist():
            failure: Optional[str] = None
            try:
                _scan_part(json.loads(task))
            except Failure as error:
                if error.is_transient:
                    raise error.marked() from None
                failure = error.text()
            yield pa.RecordBatch.from_arrays([pa.array([failure], pa.string())], ["failure"])


def _scan_part(task: Dict[str, Any]) -> None:
    ledger = Ledger(*task["ledger"])
    target = task["folder"]
    if os.path.isdir(target):
        return
    folder = os.path.join(os.path.dirname(target), f".{uuid.uuid4().hex}")
    os.mkdir(folder, 0o700)
    try:
        with storage.directory_to_scan(
            ledger, task["state"], task["first"], task["end"]
        ) as directory:
            summary = _write(folder, task, directory)
        summary["program_version"] = task["version"]
        with open(os.path.join(folder, "summary.json"), "x", encoding="utf-8") as file:
            json.dump(summary, file)
        storage.install(folder, target)
    except Failure as failure:
        raise Failure(f"{ledger.name}: {failure.operation}", failure.subject, failure.cause,
                      failure.code) from None
    except OSError as error:
        raise Failure("scan", f"{ledger.name}: {target}", str(error)) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(folder: str, task: Dict[str, Any], directory: str) -> Dict[str, Any]:
    import numpy as np

    writers = _writers(folder, task["id"])
    # How many lines have at most 2^n bytes, for the size of batches later on.
    sizes = np.zeros(26, dtype=np.int64)

    def take(batch: Batch) -> None:
        writers[batch.table].add(batch.columns)
        if TABLES[batch.table] == "events":
            lengths = np.diff(np.frombuffer(batch.columns[3].buffers()[1], "<u4"))
            bits = np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
            sizes[:] += np.bincount(np.minimum(bits, 25), minlength=26)

    program = sessions.shipped(task["program"])
    arguments = ["scan", "--directory", directory, "--from", str(task["first"]),
                 "--to", str(task["end"]), *(["--receipts"] if task["has_receipts"] else [])]
    with Run(program, arguments, feeds=False) as run:
        summary = run.read_batches(take)()
    for writer in writers:
        writer.close()
    if summary.get("first") != task["first"] or summary.get("end") != task["end"]:
        raise Failure(f"{NAME} scan", directory, "it read other events than those asked for")
    return {**summary, "line_sizes": sizes.tolist()}


class _Writer:
    """A Parquet file of the tables of a scan."""

    def __init__(self, path: str, schema: Any, ledger_id: Optional[str]) -> None:
        self._schema = schema
        self._ledger_id = ledger_id
        self._groups = RowGroups(
            path, schema, _GROUP_BYTES,
            use_dictionary=["ledger"] if ledger_id is not None else False,
            write_statistics=["position"] if ledger_id is not None else False)

    def add(self, columns: List[Any]) -> None:
        import pyarrow as pa

        if self._ledger_id is not None:
            columns = [pa.repeat(pa.scalar(self._ledger_id), len(columns[0])), *columns]
        if len(columns) != len(self._schema):
            raise Failure(f"{NAME} scan", "output", "its tables have other columns")
        self._groups.add(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._groups.close()


def _writers(folder: str, ledger_id: str) -> List[_Writer]:
    import pyarrow as pa

    whole = [("ledger", pa.string()), ("position", pa.int64()), ("at_ms", pa.int64())]
    schemas = {
        "events": pa.schema([*whole, ("component", pa.int64()), ("line", pa.binary())]),
        "edges": pa.schema([("component", pa.int64()), ("node", pa.int64())]),
        "declarations": pa.schema([*whole, ("line", pa.binary())]),
    }
    return [
        _Writer(os.path.join(folder, f"{name}.parquet"), schemas[name],
                None if name == "edges" else ledger_id)
        for name in TABLES
    ]


def _check_chain(plan: Plan, scanned: Sequence[Scanned]) -> None:
    """Each part's tree continues the previous one's, and the last has the planned root."""
    frontier: List[str] = []
    for entry in scanned:
        if entry.summary["frontier_before"] != frontier:
            raise Failure(
                "scan", plan.ledger.name,
                f"the events from {entry.part.first} on do not continue those before them", 20)
        frontier = entry.summary["frontier_after"]
    if scanned and scanned[-1].summary["root_after"] != plan.root:
        raise Failure(
            "scan", plan.ledger.name, f"the events up to {plan.size} do not have the root of its "
            "head", 20)


def rows_per_batch(scanned: Sequence[Scanned], bytes_max: int = 64 << 20) -> int:
    """How many rows a batch of Arrow may have: even the largest lines together stay below
    `bytes_max`.
    """
    sizes: Dict[int, int] = {}
    for entry in scanned:
        for bits, count in enumerate(entry.summary["line_sizes"]):
            sizes[bits] = sizes.get(bits, 0) + count
    rows, taken = 0, 0
    for bits in sorted(sizes, reverse=True):
        fitting = min((bytes_max - taken) >> bits, sizes[bits])
        rows += fitting
        taken += fitting << bits
        if fitting < sizes[bits]:
            break
    else:
        rows = 8192
    return max(4, min(rows, 8192))
