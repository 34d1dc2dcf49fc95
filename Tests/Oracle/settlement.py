# The declared files at a position: which are current, which count, what is complete, whose products their
# rows are, and the exceptions of settlement (settlement rules, S5, S6, S12, S16).
from dataclasses import dataclass

from settlement_files import Report, report_of_events
from settlement_text import OVERVIEW
from settlement_values import Refused, amount_text, month_from_name, month_name

EXCEPTIONS = (
    "sign_disagrees", "share_disagrees", "settled_outside", "totals_unread", "currency_unknown",
    "reports_disagree", "owed_disagrees", "earned_disagrees",
)
WHOLE = ("Z1", "ZZ")


@dataclass(frozen=True)
class Declared:
    """A current file, and the position of the event with which it counts."""

    report: Report
    position: int


class Refusal(Exception):
    """Why an import appends nothing."""


class Files:
    """The files that events declare, in position order."""

    def __init__(self):
        self.current = {}
        # S16: the product of a vendor identifier.
        self._products = {}
        # The parts of sets that are not finished, by what all parts of a set share.
        self._parts = {}

    def declare(self, position, data):
        """An event `settlement.declared`, well-formed in itself."""
        part, parts = data["part"], data["parts"]
        names = ("source_sha256", "kind", "month", "region")
        key = (*(data.get(name) for name in names), parts)
        before = self._parts.pop(key, [])
        if part == 1:
            before = []
        elif len(before) != part - 1:
            return
        before.append(data)
        if part < parts:
            self._parts[key] = before
            return
        report = _joined(before)
        if report is not None:
            self.current[report.identity] = Declared(report, position)

    def map(self, data):
        """S16: an event `settlement.mapped`; without a product it withdraws."""
        self._products.pop(data["sku"], None)
        if "product_id" in data:
            self._products[data["sku"]] = data["product_id"]

    def product_of(self, row):
        return self._products.get(row.product, row.product)

    def admit(self, report, replaces=False):
        """Whether an import appends the report; Refusal if it must not."""
        for one in self.current.values():
            if one.report.digest == report.digest and one.report.identity != report.identity:
                raise Refusal("one file as two")
        known = self.current.get(report.identity)
        if known is None:
            return True
        if known.report.digest == report.digest:
            return False
        if not replaces:
            raise Refusal("another file is current")
        return True

    def months(self):
        return sorted({one.report.month for one in self.current.values()})

    def _of_month(self, month):
        files = [one for one in self.current.values() if one.report.month == month]
        return [one for one in files if one.report.kind != OVERVIEW]

    def overview(self, month):
        return self.current.get((True, month, None))

    def counting(self, month):
        """S5: the files whose rows count."""
        files = self._of_month(month)
        for region in WHOLE:
            whole = [one for one in files if one.report.region == region]
            if whole:
                return whole
        return files

    def counting_rows(self):
        """(month, report, row) of all rows that count, months ascending."""
        for month in self.months():
            for one in self.counting(month):
                for row in one.report.rows:
                    yield month, one.report, row

    def is_reported(self, month):
        return bool(self.counting(month))

    def is_complete(self, month):
        if any(one.report.region in WHOLE for one in self.counting(month)):
            return True
        return self.overview(month) is not None and not list(self.untied(month))

    def untied(self, month):
        """S6, tie: (currency, earned, share) of the currencies that do not."""
        earned, shares = {}, {}
        for one in self.overview(month).report.lists:
            for row in one.rows:
                earned[row.currency] = earned.get(row.currency, 0) + row.amounts["earned"]
        for one in self.counting(month):
            for row in one.report.rows:
                shares[row.share_currency] = shares.get(row.share_currency, 0) + row.share
        for currency in sorted(earned.keys() | shares.keys()):
            pair = earned.get(currency, 0), shares.get(currency, 0)
            if pair[0] != pair[1]:
                yield currency, *pair

    def findings(self):
        """(position, exception, detail), each exception and detail once, at the first position."""
        found = {}
        for one in self.current.values():
            for name, detail in one.report.findings():
                found.setdefault((name, detail), []).append(one.position)
        for month in self.months():
            for position, name, detail in [*self._disagreeing(month), *self._untied_findings(month)]:
                found.setdefault((name, detail), []).append(position)
        return sorted((min(positions), name, detail) for (name, detail), positions in found.items())

    def _untied_findings(self, month):
        overview = self.overview(month)
        if overview is None:
            return
        for currency, earned, share in self.untied(month):
            amounts = f"{amount_text(earned, currency)} {amount_text(share, currency)}"
            yield overview.position, "earned_disagrees", f"{month_name(month)} {currency} {amounts}"

    def _disagreeing(self, month):
        counting = self.counting(month)
        right = _sums([row for one in counting for row in one.report.rows])
        for one in self._of_month(month):
            if one in counting:
                continue
            for key, (units, share) in sorted(_sums(one.report.rows).items()):
                other_units, other_share = right.get(key, (0, 0))
                if (units, share) == (other_units, other_share):
                    continue
                country, currency = key
                shares = f"{amount_text(share, currency)} {amount_text(other_share, currency)}"
                detail = (f"{month_name(month)} {one.report.region} {country} {currency}"
                          f" units {units} {other_units} share {shares}")
                yield one.position, "reports_disagree", detail


def _sums(rows):
    """(units, share) by country and share currency."""
    sums = {}
    for row in rows:
        units, share = sums.get((row.country, row.share_currency), (0, 0))
        sums[row.country, row.share_currency] = units + row.units, share + row.share
    return sums


def _joined(parts):
    """The report of a finished set; None if no import would take these lines."""
    first = parts[0]
    rows = [line for part in parts for line in part["rows"]]
    try:
        return report_of_events(
            first["kind"], first["source_sha256"], month_from_name(first["month"]),
            first.get("region"), first["head"], rows, parts[-1]["totals"],
        )
    except Refused:
        return None
