# What is refunded of a sale, and the lines for it (revenue rules, R8 and R12).
from dataclasses import dataclass, field
from itertools import groupby

from signed import ALL, NONE, Share

RETURN, REVERSAL = "Return", "Reversal"


@dataclass(frozen=True)
class Total:
    """What is refunded: a share of the amount, and Advanced Commerce's micros by date, none of them 0."""

    share: Share = NONE
    amounts: dict = field(default_factory=dict)

    @property
    def is_refunded(self):
        return self.share.part > 0 or bool(self.amounts)

    @property
    def sum(self):
        return sum(self.amounts.values())

    def units(self, quantity, is_whole):
        """R12: how many units are refunded; None if it is not a number of units.

        `is_whole`: whether it is known to be the sale's amount.
        """
        if self.amounts and self.share.part < 1:
            return quantity if is_whole else None
        return int(self.share.part * quantity) if self.share.is_units else None


@dataclass
class RefundLine:
    """A Return or Reversal, and what is refunded before and after it."""

    name: str
    date_ms: int
    reason: str
    position: int
    before: Total
    after: Total
    # A reply reported the refund without its amount.
    is_assumed: bool = False

    def units_after(self, units, quantity, is_whole):
        """R12: how many units are returned afterwards; a Return never lowers the number, a Reversal never
        raises it."""
        target = self.after.units(quantity, is_whole)
        if self.name == RETURN:
            return units if target is None else max(units, target)
        return 0 if target is None else min(units, target)


@dataclass(frozen=True, eq=False)
class ToldByReply:
    """A reply's statement of a sale's cancellation; `asked_ms`: `receipt.request_date_ms`."""

    position: int
    asked_ms: int | None
    occurred_at_ms: int
    cancelled_ms: int | None
    reason: str
    says_upgraded: bool
    place: int = 0
    rank = 0

    @property
    def time_ms(self):
        """R12: without a time that of its cancellation; None comes before all others."""
        return self.cancelled_ms if self.asked_ms is None else self.asked_ms

    @property
    def is_upgraded(self):
        return self.says_upgraded and self.time_ms is not None

    @property
    def reversed_ms(self):
        return self.occurred_at_ms


@dataclass(frozen=True, eq=False)
class ToldBySignature:
    """A signed transaction, the one at index `place` of its event's list."""

    position: int
    place: int
    statement: object
    rank = 1

    @property
    def time_ms(self):
        return self.statement.signed_ms

    @property
    def is_upgraded(self):
        return self.statement.is_upgraded

    @property
    def cancelled_ms(self):
        return self.statement.revocation_ms

    @property
    def reason(self):
        return self.statement.reason

    @property
    def reversed_ms(self):
        return self.statement.signed_ms

    def amounts(self):
        """R12, Advanced Commerce: micros by date, without entries that lack an amount or a date."""
        sums = {}
        for date_ms, micros in self.statement.advanced_refunds():
            if date_ms is not None and micros:
                sums[date_ms] = sums.get(date_ms, 0) + micros
        return sums


def _order(told):
    """R12: by time, of equal times replies first, then by position."""
    time_ms = told.time_ms
    return time_ms is not None, time_ms or 0, told.rank, told.position, told.place


class _Run:
    """The result of R8 and R12 for some statements of a sale, in the order of their time."""

    def __init__(self, statements, quantity):
        self.total = Total()
        # The last statement that changed the total, and whether it left the amount open.
        self.changed_by, self.is_assumed = None, False
        self.has_unknown_credit = False
        # The seconds that each signed statement names, and the share for each of them.
        self.named_by, self._named = {}, {}
        self._quantity = quantity
        self._is_upgraded = self._has_sums = False
        # Among replies, the last that showed a cancellation and the last that reversed; then any
        # statement.
        self._shown_ms = self._reversed_ms = self._newest_ms = None
        self._replied = set()
        self._read_names(statements)
        for told in statements:
            before, assumes = self.total, False
            self._is_upgraded |= told.is_upgraded
            if told.rank == ToldBySignature.rank:
                self._take_signed(told)
            else:
                assumes = self._take_reply(told)
            self._newest_ms = told.time_ms
            if self.total != before:
                self.changed_by, self.is_assumed = told, assumes

    def _read_names(self, statements):
        """R12: dates of signed statements, older or newer; those of Advanced Commerce give no share."""
        is_upgraded, advanced = False, {}
        for told in statements:
            is_upgraded |= told.is_upgraded
            if told.rank != ToldBySignature.rank:
                continue
            statement, date_ms = told.statement, told.cancelled_ms
            if statement.is_advanced:
                dates = [date for date, _ in statement.advanced_refunds() if date is not None]
                advanced |= {date // 1000: NONE for date in dates}
                self.named_by[told] = {date // 1000 for date in dates}
            elif date_ms is not None and not (is_upgraded and statement.percentage is None):
                self._named[date_ms // 1000] = statement.share(self._quantity)
                self.named_by[told] = {date_ms // 1000}
        self._named |= advanced

    def _take_signed(self, told):
        statement = told.statement
        if statement.is_advanced:
            self._has_sums = True
            self.total = Total(NONE, told.amounts())
        elif self._is_upgraded and statement.percentage is None:
            self.has_unknown_credit = True
        elif not self._has_sums:
            self.total = Total(statement.share(self._quantity))

    def _take_reply(self, told):
        """Whether it assumes a share of all."""
        time_ms, assumes = told.time_ms, False
        if told.cancelled_ms is None:
            is_newer = time_ms is not None and (self._shown_ms is None or time_ms > self._shown_ms)
            if self.total.is_refunded and is_newer:
                self.total, self._reversed_ms = Total(), time_ms
            return False
        if self._is_upgraded:
            self.has_unknown_credit = True
        else:
            assumes = self._cancel(time_ms, told.cancelled_ms // 1000)
        self._replied.add(told.cancelled_ms // 1000)
        self._shown_ms = time_ms
        return assumes

    def _cancel(self, time_ms, second):
        is_known = second in self._named
        if self.total.is_refunded:
            # Only a date that was never named is a further refund.
            if is_known or second in self._replied or time_ms <= self._newest_ms:
                return False
        elif self._reversed_ms is not None and time_ms <= self._reversed_ms:
            return False
        share = self._named.get(second, ALL)
        if share.part > self.total.share.part:
            self.total = Total(share, self.total.amounts)
        return not is_known


class Refunds:
    """The refunds of one sale, by statements of both kinds, given in position order."""

    def __init__(self):
        self.lines, self.total = [], Total()
        self._told = []

    def take_reply(self, verification, asked_ms, cancellation, is_upgraded):
        """`cancellation`: (date, reason) of the first row that shows one."""
        date_ms, reason = cancellation or (None, "")
        self._told.append(ToldByReply(
            verification.position, asked_ms, verification.occurred_at_ms, date_ms, reason, is_upgraded))

    def take_signed(self, statement, position):
        self._told.append(ToldBySignature(position, len(self._told), statement))

    @property
    def is_refunded(self):
        return self.total.is_refunded

    def positions(self, name):
        return [line.position for line in self.lines if line.name == name]

    def settle(self, quantity):
        """Makes the lines, event by event; gives (exception, position) of what is not known.

        `quantity`: the one known at the end.
        """
        self.lines, self.total = [], Total()
        found, known = [], []
        for position, told in groupby(self._told, key=lambda one: one.position):
            come = list(told)
            known = sorted(known + come, key=_order)
            run = _Run(known, quantity)
            if run.has_unknown_credit:
                found.append(("upgrade_credit_unknown", position))
            for one in come:
                is_signed = one.rank == ToldBySignature.rank
                if is_signed and any(None in refund for refund in one.statement.advanced_refunds()):
                    found.append(("refund_amount_unknown", position))
            self._book(run, come)
        return found

    def _book(self, run, come):
        """R12: an event's changes of the lines."""
        before, self.total = self.total, run.total
        last = self.lines[-1] if self.lines else None
        if last is not None and last.is_assumed:
            second = last.date_ms // 1000
            if any(second in run.named_by.get(one, ()) for one in come):
                before = self._correct(last, second)
        self._add_difference(before, run.changed_by or come[-1], run.is_assumed, come[-1].position)

    def _correct(self, last, second):
        """R12: an assumed Return gets its date's known amount, in place and once."""
        base, target = last.before, self.total
        dates = {date for date in target.amounts if date // 1000 == second} | base.amounts.keys()
        amounts = {d: max(base.amounts.get(d, 0), target.amounts.get(d, 0)) for d in dates}
        share = max(base.share, target.share, key=lambda one: one.part)
        last.after, last.is_assumed = Total(share, amounts), False
        return last.after

    def _add_difference(self, before, told, is_assumed, position):
        """R12: a decrease as one Reversal, then increases as Returns, each of its date."""
        target = self.total
        if before == target or before.share.part == target.share.part == 1:
            return

        def add(name, date_ms, reason, after, is_assumed=False):
            nonlocal before
            self.lines.append(RefundLine(name, date_ms, reason, position, before, after, is_assumed))
            before = after

        if target.share.part < 1:
            both = before.amounts.keys() & target.amounts.keys()
            amounts = {date: min(before.amounts[date], target.amounts[date]) for date in both}
            less = Total(min(before.share, target.share, key=lambda one: one.part), amounts)
            if less != before:
                add(REVERSAL, told.reversed_ms, "", less)
            for date_ms, micros in sorted(target.amounts.items()):
                if micros > before.amounts.get(date_ms, 0):
                    amounts = before.amounts | {date_ms: micros}
                    add(RETURN, date_ms, told.reason, Total(before.share, amounts))
        if target.share.part > before.share.part:
            add(RETURN, told.cancelled_ms, told.reason, target, is_assumed)
