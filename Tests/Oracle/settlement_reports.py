# The reconciliation, its identity, and the exceptions of settlement as CSV (settlement rules, S11, S12).
from collections import Counter

from reports import EXCEPTION_COLUMNS, Numeral, csv_text, number
from settlement_matching import (
    CLASSES, Matching, apple_cells, ledger_cells, line_rank, price_rank, sign_of,
)
from settlement_values import amount_text, month_name

COLUMNS = [
    "fiscal_month", "class", "line", "product_id", "ledger_country", "apple_country",
    "ledger_currency", "apple_currency", "ledger_price", "apple_price", "ledger_month",
    "transaction_month", "ledger_units", "candidates", "ledger_amount", "apple_units",
    "apple_amount", "difference", "positions", "rows",
]
MOST_LISTED = 20
# A unit stays open for so many months after its own.
OPEN_MONTHS = 2


class Part:
    """A row of the report: units of a ledger's cell, of Apple's, or of both."""

    def __init__(self, name, units, ledger=None, apple=None, rounding=None):
        self.name, self.ledger, self.apple = name, ledger, apple
        side = ledger or apple
        self.line, self.product = side.line, side.product
        self.month = apple.month if apple else ledger.month
        self.ledger_units = None if ledger is None else 0 if rounding is not None else units
        self.apple_units = None if apple is None else units
        self.ledger_amount = rounding
        if ledger is not None and rounding is None:
            self.ledger_amount = ledger.amount(units)
        self.apple_amount = None if apple is None else apple.amount(units)

    @property
    def difference(self):
        """(micros, currency); None where there is none."""
        amounts = self.ledger_amount, self.apple_amount
        if self.name == "currency_differs" or amounts == (None, None):
            return None
        currency = self.apple.currency if self.apple else self.ledger.currency
        return (self.apple_amount or 0) - (self.ledger_amount or 0), currency

    @property
    def order(self):
        ledger, apple = self.ledger, self.apple
        here = (b"", b"", -1, -1)
        if ledger is not None:
            here = (ledger.country.encode(), ledger.currency.encode(), price_rank(ledger.price),
                    ledger.month)
        there = (-1, b"", b"", -1)
        if apple is not None:
            transacted = -1 if apple.transacted is None else apple.transacted
            there = (transacted, apple.country.encode(), apple.currency.encode(), apple.price)
        return (self.month, CLASSES.index(self.name), line_rank(self.line), self.product.encode(),
                *here, *there)

    def cells(self):
        ledger, apple = self.ledger, self.apple
        difference = self.difference
        transacted = apple.transacted if apple else None
        return [
            month_name(self.month),
            self.name,
            self.line,
            self.product,
            ledger.country if ledger else "",
            apple.country if apple else "",
            ledger.currency if ledger else "",
            apple.currency if apple else "",
            _money(ledger.price, ledger.currency) if ledger else "",
            _money(apple.price, apple.currency) if apple else "",
            month_name(ledger.month) if ledger else "",
            "" if transacted is None else month_name(transacted),
            number(self.ledger_units),
            number(ledger.units if ledger else None),
            _money(self.ledger_amount, ledger.currency) if ledger else "",
            number(self.apple_units),
            _money(self.apple_amount, apple.currency) if apple else "",
            "" if difference is None else _money(*difference),
            _listed([str(position) for position in sorted(ledger.positions)]) if ledger else "",
            _listed([f"{digest[:8]}:{row}" for digest, row in sorted(apple.rows)]) if apple else "",
        ]


def _money(micros, currency):
    return Numeral("" if micros is None else amount_text(micros, currency))


def _listed(texts):
    rest = len(texts) - MOST_LISTED
    return " ".join(texts[:MOST_LISTED]) + (f" +{rest}" if rest > 0 else "")


def reconciled(lines, files):
    """S11, S12: all parts in order; ArithmeticError if they do not add up. `lines`: those of S8."""
    ledger, apple = ledger_cells(lines), apple_cells(files)
    parts = [
        Part(name, units, one, other)
        for (one, other, name), units in Matching(ledger, apple).taken.items()
    ]
    for cell in apple:
        if cell.left:
            name = "missing_here" if cell.price else "free"
            parts.append(Part(name if cell.is_in_app else "not_in_app", cell.left, apple=cell))
    for cell in ledger:
        if cell.left:
            parts.append(Part(_class_of_rest(cell, files), cell.left, cell))
        rest = cell.amounts - (cell.amount(cell.units) or 0)
        if rest:
            parts.append(Part("rounding", 0, cell, rounding=rest))
    parts.sort(key=lambda part: part.order)
    _check_identity(parts, lines, files)
    return parts


def _class_of_rest(cell, files):
    if cell.price == 0:
        return "free"
    if not files.is_reported(cell.month):
        return "not_reported"
    months = range(cell.month, cell.month + OPEN_MONTHS + 1)
    return "missing_there" if all(map(files.is_complete, months)) else "open"


def _check_identity(parts, lines, files):
    """S12: units and amounts of both sides by currency and line, and the way from one to the other."""
    journal, stated, here, there, more, less = (Counter() for _ in range(6))
    for line in lines:
        journal[line.currency, line.line, "units"] += line.units
        journal[line.currency, line.line, "amount"] += line.amount or 0
    for _, _, row in files.counting_rows():
        line = "Return" if row.is_return else "Sale"
        stated[row.currency, line, "units"] += sign_of(line) * row.units
        stated[row.currency, line, "amount"] += row.gross
    for part in parts:
        own, others = Counter(), Counter()
        if part.ledger is not None:
            own[part.ledger.currency, part.line, "units"] += part.ledger_units
            own[part.ledger.currency, part.line, "amount"] += part.ledger_amount or 0
        if part.apple is not None:
            others[part.apple.currency, part.line, "units"] += part.apple_units
            others[part.apple.currency, part.line, "amount"] += part.apple_amount
        for key in own.keys() | others.keys():
            here[key] += own[key]
            there[key] += others[key]
            more[key] += max(0, others[key] - own[key])
            less[key] += max(0, own[key] - others[key])
    for key in journal.keys() | stated.keys() | here.keys() | there.keys():
        if (here[key], there[key]) != (journal[key], stated[key]):
            raise ArithmeticError(f"the parts do not add up: {key}")
        if journal[key] + more[key] - less[key] != stated[key]:
            raise ArithmeticError(f"the differences do not add up: {key}")


def reconcile(parts, month=None, classes=None, product=None, country=None):
    """The CSV of the parts that are chosen; a country of either side."""
    body = [
        part.cells()
        for part in parts
        if (month is None or month_name(part.month) == month)
        and (classes is None or part.name in classes)
        and (product is None or part.product == product)
        and (country is None or country in {s.country for s in (part.ledger, part.apple) if s})
    ]
    return csv_text(COLUMNS, body)


def exceptions(files):
    """The rows of settlement in `export exceptions`, as CSV."""
    body = []
    for position, name, detail in files.findings():
        row = dict.fromkeys(EXCEPTION_COLUMNS, "")
        row |= {"exception": name, "position": number(position), "detail": detail}
        body.append(list(row.values()))
    return csv_text(EXCEPTION_COLUMNS, sorted(body, key=lambda r: (int(r[6]), [c.encode() for c in r])))
