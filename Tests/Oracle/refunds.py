# What is refunded of a sale, and the lines that say so (revenue rules, R8 and R12).
from dataclasses import dataclass

from signed import ALL, NONE, Share

RETURN, REVERSAL = "Return", "Reversal"


@dataclass
class RefundLine:
    """A Return or Reversal, and what is refunded after it.

    `is_assumed`: a reply told of the refund, and not how much. `is_advanced`: made by amounts, not by
    a share.
    """

    name: str
    date_ms: int
    reason: str
    position: int
    share: Share
    advanced_micros: int
    is_assumed: bool = False
    is_advanced: bool = False

    def units_after(self, before, quantity):
        """R12: how many units are returned once this line stands."""
        if self.share.is_units and not self.is_advanced:
            return int(self.share.part * quantity)
        return before if self.name == RETURN else 0


def _latest(known_ms, ms):
    return ms if known_ms is None else max(known_ms, ms)


class Refunds:
    """The refunds of one sale, by statements of both kinds, given in position order."""

    def __init__(self):
        self.lines = []
        self.share = NONE
        # Advanced Commerce: micros refunded by date.
        self.advanced = {}
        self.has_signed = self.has_advanced = False
        # Times of statements: the newest, the newest that showed a cancellation, the last that reversed.
        self.newest_ms = self.shown_ms = self.reversed_ms = None
        # The shares of revocation dates (to the second) that signed statements told.
        self.known = {}

    @property
    def is_refunded(self):
        return self.share.part > 0 or sum(self.advanced.values()) > 0

    def positions(self, name):
        return [line.position for line in self.lines if line.name == name]

    def _add(self, name, date_ms, reason, position, **marks):
        advanced = sum(self.advanced.values())
        self.lines.append(
            RefundLine(name, date_ms, reason, position, self.share, advanced, **marks)
        )

    # Replies.

    def take_reply(self, reply_ms, cancellation, is_upgraded, verification):
        """R8, and R12 "Replies beside signed statements"; the names of the exceptions met.

        `cancellation`: (date, reason) of the first row that shows one.
        """
        before_ms = self.newest_ms
        if self.has_signed and (reply_ms is None or reply_ms < before_ms):
            return []
        if reply_ms is not None:
            self.newest_ms = _latest(self.newest_ms, reply_ms)
        if cancellation is None:
            self._reverse_by_reply(reply_ms, verification)
            return []
        if not is_upgraded:
            self._return_by_reply(reply_ms, before_ms, cancellation, verification.position)
        if reply_ms is not None and (self.is_refunded or not self.has_signed):
            self.shown_ms = _latest(self.shown_ms, reply_ms)
        return ["upgrade_credit_unknown"] if is_upgraded else []

    def _return_by_reply(self, reply_ms, before_ms, cancellation, position):
        date_ms, reason = cancellation
        second = date_ms // 1000
        if not self.is_refunded:
            # A new Return needs a reply newer than what reversed.
            if self.reversed_ms is not None:
                if reply_ms is None or reply_ms <= self.reversed_ms:
                    return
            share = self.known.get(second, ALL)
            is_assumed = second not in self.known
        else:
            returned = {line.date_ms // 1000 for line in self.lines if line.name == RETURN}
            is_other = self.has_signed and second not in self.known and second not in returned
            if not is_other or reply_ms <= before_ms:
                return
            share, is_assumed = ALL, True
        if share.part > self.share.part:
            self.share = share
            self._add(RETURN, date_ms, reason, position, is_assumed=is_assumed)

    def _reverse_by_reply(self, reply_ms, verification):
        if not self.is_refunded or None in (reply_ms, self.shown_ms):
            return
        if reply_ms > self.shown_ms:
            self.share, self.advanced = NONE, {}
            self.reversed_ms = reply_ms
            self._add(REVERSAL, verification.occurred_at_ms, "", verification.position)

    # Signed statements.

    def take_signed(self, statement, quantity, is_upgraded, position):
        """R12: Returns, Advanced Commerce, Upgrades; the names of the exceptions met."""
        self.has_signed = True
        if self.newest_ms is not None and statement.signed_ms < self.newest_ms:
            return []
        self.newest_ms = statement.signed_ms
        if statement.is_advanced:
            return self._take_advanced(statement, position)
        if is_upgraded and statement.percentage is None:
            if statement.revocation_ms is not None and self.is_refunded:
                self.shown_ms = _latest(self.shown_ms, statement.signed_ms)
            return ["upgrade_credit_unknown"]
        if not self.has_advanced:
            self._take_share(statement, statement.share(quantity), position)
        return []

    def _take_share(self, statement, share, position):
        date_ms = statement.revocation_ms
        if date_ms is not None:
            self.known[date_ms // 1000] = share
            if share.part > 0:
                self.shown_ms = _latest(self.shown_ms, statement.signed_ms)
            assumed = self._assumed_line()
            if assumed is not None and assumed.date_ms // 1000 == date_ms // 1000:
                self.share = assumed.share = share
                assumed.is_assumed = False
                return
        before, self.share = self.share, share
        if share.part > before.part:
            self._add(RETURN, date_ms, statement.reason, position)
        elif share.part < before.part:
            self._reverse_by_signed(statement, position)

    def _assumed_line(self):
        """The sale's last line, where it is a Return whose share is assumed."""
        last = self.lines[-1] if self.lines else None
        return last if last is not None and last.is_assumed else None

    def _reverse_by_signed(self, statement, position, **marks):
        self.reversed_ms = statement.signed_ms
        self._add(REVERSAL, statement.signed_ms, "", position, **marks)

    def _take_advanced(self, statement, position):
        self.has_advanced = True
        found, wanted = [], {}
        for date_ms, micros in statement.advanced_refunds():
            if date_ms is None or micros is None:
                found.append("refund_amount_unknown")
            else:
                wanted[date_ms] = wanted.get(date_ms, 0) + micros
        self.known |= {date_ms // 1000: NONE for date_ms in wanted}
        if sum(wanted.values()) > 0:
            self.shown_ms = _latest(self.shown_ms, statement.signed_ms)
        self._settle_assumed(wanted)
        for date_ms in sorted(wanted):
            if wanted[date_ms] > self.advanced.get(date_ms, 0):
                self.advanced[date_ms] = wanted[date_ms]
                self._add(RETURN, date_ms, statement.reason, position, is_advanced=True)
        is_less = any(wanted.get(date, 0) < micros for date, micros in self.advanced.items())
        self.advanced = wanted
        if is_less or self.share.part > 0:
            self.share = NONE
            self._reverse_by_signed(statement, position, is_advanced=True)
        return found

    def _settle_assumed(self, wanted):
        """An assumed Return takes the amount of its date."""
        assumed = self._assumed_line()
        if assumed is None:
            return
        same = {d: m for d, m in wanted.items() if d // 1000 == assumed.date_ms // 1000}
        if same:
            self.advanced = self.advanced | same
            self.share = assumed.share = NONE
            assumed.advanced_micros = sum(self.advanced.values())
            assumed.is_assumed, assumed.is_advanced = False, True
