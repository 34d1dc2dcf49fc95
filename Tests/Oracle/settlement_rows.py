# The rows of a detailed or financial report, and the totals behind them (settlement rules, S3, S4).
import re
from dataclasses import dataclass

from currencies import MINOR_DIGITS
from settlement_text import DETAILED, cells, filled, is_blank, lowered
from settlement_values import Refused, day, integer, letters, micros

QUANTITY, SHARE, EXTENDED = "quantity", "partner share", "extended partner share"
SHARE_CURRENCY, COUNTRY = "partner share currency", "country of sale"
TYPE, PRICE, CURRENCY = "product type identifier", "customer price", "customer currency"
FLAGS, PRODUCTS = ("sales or return", "sale or return"), ("vendor identifier", "sku")
TRANSACTED, SETTLED = "transaction date", "settlement date"
STARTS, ENDS = "start date", "end date"
REQUIRED = [QUANTITY, SHARE, EXTENDED, SHARE_CURRENCY, FLAGS, TYPE, COUNTRY, PRICE, CURRENCY, PRODUCTS]
LIST_COLUMNS = {COUNTRY, SHARE_CURRENCY, QUANTITY, EXTENDED}
TOTALS = {"Total_Rows": integer, "Total_Amount": micros, "Total_Units": integer}
IN_APP = ("IA", "FI")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a report, read; `settled` and `transacted` only in a detailed one."""

    number: int
    is_return: bool
    is_in_app: bool
    product: str
    country: str
    currency: str
    price: int
    units: int
    unit_share: int
    share: int
    share_currency: str
    transacted: int | None
    settled: int | None
    # The month's first and last day, in a financial report.
    span: tuple | None

    @property
    def gross(self):
        return self.units * self.price

    @property
    def disagrees_in_sign(self):
        return self.units > 0 if self.is_return else self.units < 0

    @property
    def disagrees_in_share(self):
        return self.share != self.units * self.unit_share


class Columns:
    """Where the header of a report has what is read."""

    def __init__(self, header, kind, line=0):
        names = lowered(filled(cells(header)))
        self.count = len(names)
        named = [name for name in names if name]
        if len(set(named)) < len(named):
            raise Refused("a name that stands twice", line)
        wanted = [*REQUIRED, *([TRANSACTED, SETTLED] if kind == DETAILED else [STARTS, ENDS])]
        self._at = {}
        for name in wanted:
            # Of two names for one column the first one that stands.
            choices = (name,) if isinstance(name, str) else name
            found = next((choice for choice in choices if choice in names), None)
            if found is None:
                raise Refused(f"a column is missing: {choices[0]}", line)
            self._at[choices[0]] = names.index(found)
        self.kind = kind

    def row(self, text, number, line=0):
        """The row, or a refusal."""
        row = cells(text)
        if any(row[self.count :]):
            raise Refused("a cell beyond the header", line)

        def read(name, reader):
            at = self._at[name]
            value = reader(row[at]) if at < len(row) else None
            if value is None:
                raise Refused(f"unreadable: {name}", line)
            return value

        is_detailed = self.kind == DETAILED
        return Row(
            number,
            read(FLAGS[0], {"S": False, "R": True}.get),
            read(TYPE, _text).startswith(IN_APP),
            read(PRODUCTS[0], _text),
            read(COUNTRY, _country),
            read(CURRENCY, _currency),
            abs(read(PRICE, micros)),
            read(QUANTITY, integer),
            abs(read(SHARE, micros)),
            read(EXTENDED, micros),
            read(SHARE_CURRENCY, _currency),
            read(TRANSACTED, day) if is_detailed else None,
            read(SETTLED, day) if is_detailed else None,
            None if is_detailed else (read(STARTS, day), read(ENDS, day)),
        )


def _text(cell):
    return cell or None


def _country(cell):
    return letters(cell, 2)


def _currency(cell):
    return letters(cell, 3)


def total_of(line):
    """(name, number) of a line such as `Total_Rows`, tab or colon, 4; the number is None if unreadable.

    None for another line."""
    row = filled(cells(line))
    if not row:
        return None
    match = re.fullmatch(r"(Total_(?:Rows|Amount|Units))(?::(.*))?", row[0], re.DOTALL)
    if match is None:
        return None
    name, rest = match[1], row[1:]
    if match[2] is not None:
        rest = [match[2].strip(" "), *rest]
    return name, TOTALS[name](rest[0]) if len(rest) == 1 else None


def begins_totals(line):
    return total_of(line) is not None or _begins_list(line)


def _begins_list(line):
    return lowered(cells(line)[:1]) == [COUNTRY]


class Totals:
    """What a report says of its rows; `check` refuses the report that says something else."""

    def __init__(self, rows):
        self._units = {}
        for row in rows:
            sums = self._units.setdefault((row.country, row.share_currency), [0, 0, 0])
            sums[0] += row.units
            sums[1] += max(0, row.units)
            sums[2] += row.share
        self._count = len(rows)
        self.is_unread = False
        self.has_list = self.has_total = False

    def check(self, lines, columns):
        """Checks numbered lines from the first total on."""
        header, listed = None, set()
        for number, line in lines:
            if is_blank(line):
                continue
            total = total_of(line)
            if total is not None:
                self._check_total(*total, number)
            elif _begins_list(line) and not self.has_list:
                names = lowered(filled(cells(line)))
                header = names if LIST_COLUMNS <= set(names) else ()
                self.has_list = True
                self.is_unread |= not header
            elif header is None or _is_row(columns, line):
                raise Refused("a row after a total", number)
            else:
                self._take(header, listed, line, number)
        if header and listed != self._units.keys():
            raise Refused("the list by country differs")

    def _check_total(self, name, stated, line):
        if stated is None:
            raise Refused(f"unreadable: {name}", line)
        units = [sum(sums[index] for sums in self._units.values()) for index in (0, 1)]
        currencies = {currency for _, currency in self._units}
        share = sum(sums[2] for sums in self._units.values())
        right = {"Total_Rows": [self._count], "Total_Units": units,
                 "Total_Amount": [share] if len(currencies) == 1 else [stated]}
        if stated not in right[name]:
            raise Refused(f"{name} differs", line)
        self.has_total |= name != "Total_Units"

    def _take(self, header, listed, line, number):
        """A line of a list by country; one of a list that lacks a column, or of no country, is not read."""
        row = cells(line)
        if len(row) < 2 or not header or _country(row[0]) is None or _currency(row[1]) is None:
            self.is_unread = True
            return
        row += [""] * (len(header) - len(row))
        found = {name: row[header.index(name)] for name in LIST_COLUMNS}
        key = _country(found[COUNTRY]), _currency(found[SHARE_CURRENCY])
        units, share = integer(found[QUANTITY]), micros(found[EXTENDED])
        if None in (*key, units, share) or any(row[len(header) :]):
            raise Refused("unreadable: the list by country", number)
        if key in listed or key not in self._units:
            raise Refused("the list by country differs", number)
        listed.add(key)
        net, positive, amount = self._units[key]
        if units not in (net, positive) or share != amount:
            raise Refused("the list by country differs", number)


def _is_row(columns, line):
    """Whether a line behind the totals reads as a row."""
    try:
        columns.row(line, 0)
    except Refused:
        return False
    return True


def row_findings(rows, span, digest8):
    """S3: (exception, detail) of the rows, currencies apart."""
    for row in rows:
        where = f"{digest8}:{row.number}"
        if row.disagrees_in_sign:
            yield "sign_disagrees", where
        if row.disagrees_in_share:
            yield "share_disagrees", where
        if row.settled is not None and not span[0] <= row.settled <= span[1]:
            yield "settled_outside", where


def unknown_currencies(codes):
    return sorted({code for code in codes if code and code not in MINOR_DIGITS})
