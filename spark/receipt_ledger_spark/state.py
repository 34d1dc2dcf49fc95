# What scans leave in --state for later runs: a folder for each part that was read.
#
# STATE/scan/<ledger id>/<first>-<end>-<identity>/ holds events.parquet, edges.parquet,
# declarations.parquet and summary.json; with `-receipts` at its end, also receipts that events of
# other parts need. A folder is there complete or not at all.

from __future__ import annotations

import json
import os
import shutil
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from .errors import Failure
from .plan import Part, Plan
from .rules import Program


class Scanned(NamedTuple):
    """A part that was read: its folder and its summary."""

    ledger_id: str
    part: Part
    folder: str
    summary: Dict[str, Any]

    def table(self, name: str) -> str:
        return os.path.join(self.folder, f"{name}.parquet")


def folder_of_ledger(state: str, plan: Plan) -> str:
    return os.path.join(state, "scan", plan.id)


def folder_of(state: str, plan: Plan, part: Part, has_receipts: bool = False) -> str:
    name = f"{part.first:020d}-{part.end:020d}-{part.identity[:32]}"
    suffix = "-receipts" if has_receipts else ""
    return os.path.join(folder_of_ledger(state, plan), name + suffix)


def is_old(folder: str, program: Program) -> bool:
    """Whether another version of ledger-rules made a folder, or its summary cannot be read."""
    if not os.path.isdir(folder):
        return False
    try:
        with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
            return json.load(file).get("program_version") != program.version
    except (OSError, ValueError):
        return True


def read(state: str, plan: Plan, part: Part, has_receipts: bool = False) -> Scanned:
    """A part that was read."""
    folder = folder_of(state, plan, part, has_receipts)
    path = os.path.join(folder, "summary.json")
    try:
        with open(path, encoding="utf-8") as file:
            return Scanned(plan.id, part, folder, json.load(file))
    except (OSError, ValueError) as error:
        raise Failure("read state", path, f"{error}; remove the folder and run again") from None


def known_ranges(state: str, plan: Plan) -> List[Tuple[int, int]]:
    """The first and last positions of all parts of a ledger that were read."""
    found = []
    for name in os.listdir(folder_of_ledger(state, plan)):
        parts = name.split("-")
        if len(parts) == 3 and parts[0].isdigit() and parts[1].isdigit():
            found.append((int(parts[0]), int(parts[1])))
    return found


def prune(state: str, plans: Sequence[Plan]) -> None:
    """Removes parts that no later run will ask for: of ledgers as of their ends, all but those of
    this run.
    """
    for plan in plans:
        if plan.ledger.head is not None:
            continue
        planned = {os.path.basename(folder_of(state, plan, part, has_receipts))
                   for part in plan.parts for has_receipts in (False, True)}
        parent = folder_of_ledger(state, plan)
        for name in os.listdir(parent):
            if name not in planned:
                shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
