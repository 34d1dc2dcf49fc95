# What there is to read: each ledger's identity, head and parts, as `ledger-rules plan` finds
# them.

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from . import errors, storage
from .errors import Failure
from .fleet import Ledger
from .rules import NAME, Program, json_of


class Part(NamedTuple):
    """A range of events that one task reads. The same identity means the same events."""

    first: int
    end: int
    identity: str
    kind: str
    name: str


class Plan(NamedTuple):
    """One ledger as of its head."""

    ledger: Ledger
    id: str
    origin: str
    size: int
    root: str
    last_event_at_ms: Optional[int]
    parts: List[Part]


def plan_all(program: Program, ledgers: Sequence[Ledger], state: str) -> List[Plan]:
    """The plans of all ledgers, in the order of their ids: that order decides between events of
    one instant.
    """
    plans = [_plan(program, ledger, state) for ledger in ledgers]
    plans.sort(key=lambda plan: plan.id)
    for one, other in zip(plans, plans[1:]):
        if one.id == other.id:
            raise errors.usage(
                "plan", f"{one.ledger.name} and {other.ledger.name}",
                f"both ledgers have the id {one.id}")
    return plans


def _plan(program: Program, ledger: Ledger, state: str) -> Plan:
    directory = storage.directory_to_plan(ledger, state)
    arguments = ["plan", "--directory", directory]
    if ledger.head is not None:
        arguments += ["--size", str(ledger.head.size)]
    try:
        said = json_of(program.path, arguments)
    except Failure as failure:
        raise _named(failure, ledger) from None
    plan = _read(said, ledger)
    if ledger.head is not None and plan.root != ledger.head.root:
        raise Failure(
            "plan", ledger.name,
            f"its first {plan.size} events have the root {plan.root}, not {ledger.head.root}: "
            "this is another history", errors.DAMAGE)
    return plan


def _named(failure: Failure, ledger: Ledger) -> Failure:
    return Failure(f"{ledger.name}: {failure.operation}", failure.subject, failure.cause,
                   failure.code)


def _read(said: Any, ledger: Ledger) -> Plan:
    try:
        parts = [
            Part(int(part["first"]), int(part["end"]), str(part["identity"]), str(part["kind"]),
                 str(part["name"]))
            for part in said["parts"]
        ]
        at = said.get("last_event_at_ms")
        plan = Plan(
            ledger, str(said["id"]), str(said["origin"]), int(said["size"]), str(said["root"]),
            None if at is None else int(at), parts)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Failure(f"{NAME} plan", ledger.name, "its output has another form") from None
    position = 0
    for part in plan.parts:
        if part.first != position or part.end <= part.first or not part.identity.isalnum():
            raise Failure(f"{NAME} plan", ledger.name, "its parts leave a gap")
        position = part.end
    if position != plan.size:
        raise Failure(f"{NAME} plan", ledger.name, "its parts do not reach the head")
    return plan


def moment_ms(plans: Sequence[Plan]) -> Optional[int]:
    """The time of the last event of all: the moment of subscriptions."""
    times = [plan.last_event_at_ms for plan in plans
             if plan.last_event_at_ms is not None and plan.size > 0]
    return max(times, default=None)


def described(plan: Plan) -> Dict[str, Any]:
    """What a manifest says of a ledger."""
    return {"name": plan.ledger.name, "id": plan.id, "origin": plan.origin, "size": plan.size,
            "root": plan.root}
