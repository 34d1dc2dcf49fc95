# Cells of the ledger and of Apple, and what they take of each other (settlement rules, S8 to S11).
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

from dates import Zone
from journal import RETURN, SALE
from settlement_values import month_of_day, month_span

CLASSES = (
    "matched", "settled_later", "settled_earlier", "unpriced_here", "price_differs",
    "currency_differs", "country_differs", "missing_here", "open", "missing_there", "not_reported",
    "free", "not_in_app", "rounding",
)
ZONE = Zone("America/Los_Angeles")
EDGE_DAYS = 2


@dataclass(frozen=True)
class LedgerLine:
    """A line of S8; the price is None where the amount is."""

    month: int
    day: int
    line: str
    product: str
    country: str
    currency: str
    price: int | None
    units: int
    amount: int | None
    position: int

    @property
    def cell(self):
        return self.month, self.line, self.product, self.country, self.currency, self.price


def ledger_lines(book):
    """S8: the lines of a book that are matched."""
    for line in book.lines():
        found = ledger_line(line)
        if found is not None:
            yield found


def ledger_line(line):
    """S8: a line of the journal as it is matched; None if it is not."""
    sale = line.sale
    if sale.key.environment != "Production" or sale.kind not in ("regular", "offer"):
        return None
    units = max(1, abs(line.quantity))
    amount = line.amount_micros
    price = None if amount is None else round(Fraction(abs(amount), units))
    day = ZONE.day(line.date_ms)
    return LedgerLine(
        month_of_day(day), day, RETURN if line.name == RETURN else SALE, sale.product_id,
        sale.country[0] or "ZZ", line.currency, price, units, amount, line.position,
    )


def sign_of(line):
    return -1 if line == RETURN else 1


def line_rank(line):
    return int(line == RETURN)


def price_rank(price):
    """No price first, then as numbers."""
    return -1 if price is None else price


@dataclass(eq=False)
class Cell:
    """Units that nothing tells apart; `left` of them are not taken."""

    month: int
    line: str
    product: str
    country: str
    currency: str
    price: int | None
    units: int = 0
    left: int = 0

    @property
    def key(self):
        return self.month, self.line, self.product, self.country, self.currency, self.price

    def amount(self, units):
        return None if self.price is None else sign_of(self.line) * units * self.price

    @property
    def order(self):
        texts = (text.encode() for text in (self.product, self.country, self.currency))
        return self.month, line_rank(self.line), *texts, price_rank(self.price)


@dataclass(eq=False)
class LedgerCell(Cell):
    early: int = 0
    late: int = 0
    amounts: int = 0
    positions: set = field(default_factory=set)

    def take(self, units, limit=None):
        """Takes units; `limit`: early or late, of which a limited step takes."""
        self.left -= units
        if limit is not None:
            setattr(self, limit, getattr(self, limit) - units)
        # The rest goes first.
        self.early = min(self.early, self.left)
        self.late = min(self.late, self.left)


@dataclass(eq=False)
class AppleCell(Cell):
    """`transacted`: T, the month of the Transaction Date; None in a financial report. `shares`: the unit
    shares of its rows, with their currency; `has_disagreement`: of a row with itself, S3."""

    transacted: int | None = None
    is_in_app: bool = True
    rows: set = field(default_factory=set)
    shares: set = field(default_factory=set)
    has_disagreement: bool = False

    @property
    def order(self):
        month, *rest = super().order
        return month, -1 if self.transacted is None else self.transacted, *rest


def ledger_cells(lines):
    cells = {}
    for one in lines:
        cell = cells.setdefault(one.cell, LedgerCell(*one.cell))
        first, last = month_span(one.month)
        cell.units += one.units
        cell.early += one.units if one.day < first + EDGE_DAYS else 0
        cell.late += one.units if one.day > last - EDGE_DAYS else 0
        cell.amounts += one.amount or 0
        cell.positions.add(one.position)
    for cell in cells.values():
        cell.left = cell.units
    return sorted(cells.values(), key=lambda cell: cell.order)


def apple_cells(files):
    """S9: the cells of the counting rows."""
    cells = {}
    for month, report, row in files.counting_rows():
        line = RETURN if row.is_return else SALE
        transacted = None if row.transacted is None else month_of_day(row.transacted)
        key = (month, line, files.product_of(row), row.country, row.currency, row.price)
        whole = (*key, transacted, row.is_in_app)
        cell = cells.get(whole)
        if cell is None:
            cell = cells[whole] = AppleCell(*key, transacted=transacted, is_in_app=row.is_in_app)
        cell.units += sign_of(line) * row.units
        cell.rows.add((report.digest, row.number))
        cell.shares.add((row.unit_share, row.share_currency))
        cell.has_disagreement |= row.disagrees_in_sign or row.disagrees_in_share
    for cell in cells.values():
        cell.left = cell.units
    return sorted(cells.values(), key=lambda cell: cell.order)


# Pass A of S10: for M and T, the ledger's month that a step looks at and the step's limit; None where the
# step is not for the cell.
STEPS = (
    lambda m, t: (m if t is None else t, None),
    lambda m, t: (m - 1, None) if t is None else (t - 1, "late"),
    lambda m, t: (m + 1 if t is None else t + 1, "early"),
    lambda m, t: (m - 2, None) if t is None else None,
)


def _exact(cell):
    return cell.line, cell.product, cell.country, cell.currency, cell.price


def _by_country(cell):
    return cell.line, cell.product, cell.country


def _by_currency(cell):
    return cell.line, cell.product, cell.country, cell.currency


def _by_price(cell):
    return cell.line, cell.product, cell.currency, cell.price


# The class, what is equal, and which of the ledger's cells the pass is for.
PASSES = (
    ("unpriced_here", _by_country, lambda cell: cell.price is None),
    ("price_differs", _by_currency, lambda cell: True),
    ("currency_differs", _by_country, lambda cell: cell.price is not None),
    ("country_differs", _by_price, lambda cell: True),
)


def _class_of_exact(ledger, apple):
    if ledger.month == apple.month:
        return "matched"
    return "settled_later" if ledger.month < apple.month else "settled_earlier"


class Matching:
    """`taken`: {(ledger's cell, Apple's cell, class): units}; what is left stands in the cells."""

    def __init__(self, ledger, apple):
        self.taken = defaultdict(int)
        self._ledger = [cell for cell in ledger if cell.price != 0]
        self._apple = [c for c in apple if c.is_in_app and c.price != 0 and c.units > 0]
        for look in STEPS:
            self._step(look, _exact, lambda cell: True, _class_of_exact)
        for name, key, is_for in PASSES:
            self._step(STEPS[0], key, is_for, lambda *_, name=name: name)

    def _step(self, look, key, is_for, class_of):
        ledger = defaultdict(list)
        for cell in self._ledger:
            if cell.left and is_for(cell):
                ledger[cell.month, key(cell)].append(cell)
        for one in self._apple:
            seen = look(one.month, one.transacted) if one.left else None
            if seen is None:
                continue
            month, limit = seen
            for cell in ledger.get((month, key(one)), ()):
                units = min(one.left, cell.left if limit is None else getattr(cell, limit))
                if units:
                    one.left -= units
                    cell.take(units, limit)
                    self.taken[cell, one, class_of(cell, one)] += units
