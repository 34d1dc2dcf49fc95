# What there is to read: each ledger's identity, head and parts, as `ledger-rules plan` or the
# steps of a copy name them.

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from . import copies, errors
from .errors import Failure
from .fleet import Ledger
from .rules import NAME, Program, json_of


class Part(NamedTuple):
    """A range of events that one task reads."""

    first: int
    end: int


class Plan(NamedTuple):
    """One ledger as of its head."""

    ledger: Ledger
    id: str
    origin: str
    size: int
    root: str
    parts: List[Part]
    copy: Optional[copies.State]

    def described(self) -> Dict[str, Any]:
        """What a manifest says of a ledger."""
        return {"name": self.ledger.name, "id": self.id, "origin": self.origin,
                "size": self.size, "root": self.root}


def plan_all(program: Program, ledgers: Sequence[Ledger]) -> List[Plan]:
    """The plans of all ledgers, in the order of their origins: that order decides between events
    of one time.
    """
    plans = [_of_copy(ledger) if ledger.is_copy else _of_directory(program, ledger)
             for ledger in ledgers]
    plans.sort(key=lambda plan: plan.origin)
    for what in ("id", "origin"):
        known: Dict[str, str] = {}
        for plan in plans:
            name, value = plan.ledger.name, getattr(plan, what)
            if value in known:
                raise errors.usage(
                    "plan", f"{known[value]} and {name}", f"both ledgers have the {what} {value}")
            known[value] = name
    return plans


def _of_directory(program: Program, ledger: Ledger) -> Plan:
    arguments = ["plan", "--directory", ledger.path]
    if ledger.head is not None:
        arguments += ["--size", str(ledger.head.size)]
    try:
        said = json_of(program.path, arguments)
    except Failure as failure:
        raise failure.of(ledger.name) from None
    try:
        parts = [Part(int(part["first"]), int(part["end"])) for part in said["parts"]]
        plan = Plan(ledger, str(said["id"]), str(said["origin"]), int(said["size"]),
                    str(said["root"]), parts, None)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Failure(f"{NAME} plan", ledger.name, "its output has another form") from None
    if ledger.head is not None and plan.root != ledger.head.root:
        raise Failure(
            "plan", ledger.name,
            f"its first {plan.size} events have the root {plan.root}, not {ledger.head.root}: "
            "this is another history", errors.DAMAGE)
    return _checked(plan)


def _of_copy(ledger: Ledger) -> Plan:
    """A part for each closed segment but the last, which goes with what follows it."""
    store = copies.Store(ledger)
    state = copies.state(store)
    identity = json.loads(copies.identity(store, state))
    size, root = ledger.head or (state.size, state.root)
    if size > state.size:
        raise Failure("plan", ledger.name, f"the copy ends at {state.size}, before {size}")
    files = [file for file in state.files if file.first < size]
    segments = [file for file in files if not file.is_tail]
    parts = [Part(file.first, file.end) for file in segments[:-1]]
    if size > 0:
        parts.append(Part(segments[-1].first if segments else 0, size))
    return _checked(
        Plan(ledger, str(identity["id"]), str(identity["origin"]), size, root, parts, state))


def _checked(plan: Plan) -> Plan:
    position = 0
    for part in plan.parts:
        if part.first != position or part.end <= part.first:
            raise Failure("plan", plan.ledger.name, "its parts leave a gap")
        position = part.end
    if position != plan.size:
        raise Failure("plan", plan.ledger.name, "its parts do not reach the head")
    return plan
