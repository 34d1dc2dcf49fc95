# A payment overview: its lists, their rows and payments (settlement rules, S6).
import re
from dataclasses import dataclass

from settlement_text import OVERVIEW_FIRST, csv_cells, filled, is_overview_header, lowered
from settlement_values import (
    MONTH_NAMES, Refused, amount_text, integer, is_rate, letters, micros, month_from_words,
)

UNITS, BALANCE, EARNED, OWED = "units sold", "balance", "earned", "total owed"
RATE, PROCEEDS, BANK = "exchange rate", "proceeds", "bank account currency"
AMOUNTS = [BALANCE, EARNED, "pre-tax subtotal", "input tax", "adjustments", "withholding tax", OWED]
ADDENDS = [BALANCE, EARNED, "input tax", "adjustments", "withholding tax"]
# The order of a localised header.
ORDER = ["region (currency)", UNITS, *AMOUNTS, RATE, PROCEEDS, BANK]
NEEDED = [EARNED, OWED, BANK]
PAYMENT = re.compile(r"(\S+)\s+([A-Za-z]{3})", re.ASCII)


@dataclass
class PaymentRow:
    """One currency of a region; amounts in micros, by column name; `region`: the whole first cell."""

    number: int
    region: str
    currency: str
    units: int
    amounts: dict
    rate: str
    proceeds: int | None
    bank: str

    @property
    def owed_difference(self):
        return self.amounts[OWED] - sum(self.amounts[name] for name in ADDENDS)


@dataclass
class PaymentList:
    rows: list
    payment: tuple | None = None

    def pays(self, row):
        return self.payment is not None and row.proceeds is not None


def month_of_title(lines):
    """The number of the month in brackets in the first line; None if there is none."""
    line = next(line for line in lines if any(csv_cells(line) or [line]))
    match = re.search(rf"\(({'|'.join(MONTH_NAMES)}),\s*([0-9]{{4}})\)", line, re.ASCII)
    if match is None:
        return None
    number = month_from_words(match[1], int(match[2]))
    if number is None:
        raise Refused("no fiscal month", 1)
    return number


def _header(line, number):
    """The name of each column."""
    names = lowered(filled(csv_cells(line)))
    if not OVERVIEW_FIRST & set(names):
        return ORDER if len(names) == len(ORDER) else [name for name in ORDER if name != BALANCE]
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        raise Refused("a name that stands twice", number)
    names = [ORDER[0] if name in OVERVIEW_FIRST else name for name in names]
    if RATE not in names or PROCEEDS not in names:
        raise Refused("an estimate", number)
    for name in NEEDED:
        if name not in names:
            raise Refused(f"a column is missing: {name}", number)
    return names


def _row(names, row, place, line):
    if any(row[len(names) :]):
        raise Refused("a cell beyond the header", line)
    found = dict(zip(names, row))

    def read(name, reader, empty):
        text = found.get(name, "")
        value = reader(text) if text else empty
        if text and value is None:
            raise Refused(f"unreadable: {name}", line)
        return value

    region = re.search(r"\(([A-Za-z]{3})\)$", row[0], re.ASCII)
    if region is None:
        raise Refused("a row without a currency", line)
    return PaymentRow(
        place,
        row[0],
        region[1].upper(),
        read(UNITS, integer, 0),
        {name: read(name, micros, 0) for name in AMOUNTS},
        read(RATE, _rate, ""),
        read(PROCEEDS, micros, None),
        read(BANK, lambda text: letters(text, 3), ""),
    )


def _rate(text):
    """The digits as they stand, without commas and a plus sign."""
    return text.replace(",", "").lstrip("+") if is_rate(text) else None


def _payment(row):
    """The payment in a line behind a list; None if there is none."""
    for cell in row:
        match = PAYMENT.fullmatch(cell)
        if match and micros(match[1]) is not None:
            return micros(match[1]), match[2].upper()
    return None


def read_lists(lines):
    """The lists of numbered lines from the first header on, checked against their payments."""
    lists, names, is_open, count = [], None, False, 0
    for number, line in lines:
        row = csv_cells(line)
        if row is None:
            raise Refused("an open quote", number)
        if is_overview_header(line):
            names, is_open = _header(line, number), True
            lists.append(PaymentList([]))
            continue
        if not lists:
            raise Refused("an overview without a list")
        is_open = is_open and row[0] != ""
        if is_open:
            count += 1
            lists[-1].rows.append(_row(names, row, count, number))
        elif lists[-1].payment is None:
            lists[-1].payment = _payment(row)
    if not count:
        raise Refused("a report without rows")
    for one in lists:
        _check_payment(one)
    return lists


def _check_payment(one):
    paid = [row for row in one.rows if row.proceeds is not None]
    if one.payment is None:
        return
    amount, currency = one.payment
    if sum(row.proceeds for row in paid) != amount or {row.bank for row in paid} - {currency}:
        raise Refused("the payment differs")


def owed_findings(lists, month):
    """(exception, detail) of the rows whose owed is not its sum; `month`: its name."""
    for one in lists:
        for row in one.rows:
            if row.owed_difference:
                difference = amount_text(row.owed_difference, row.currency)
                yield "owed_disagrees", f"{month} {row.currency} {difference}"
