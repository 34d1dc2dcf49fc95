# The layout of a report's rows: amounts rounded to minor units, rows of totals, selected columns.
from fractions import Fraction

from money import MICROS, MINOR_DIGITS, amount_text

# The columns in rows of totals, for these reports; the others have no totals.
TOTALLED = {
    "revenue": (
        "units", "gross", "returned_units", "returns", "reversed_units", "reversals", "net",
        "unpriced_units", "trials", "family_shared",
    ),
    "journal": ("quantity", "amount"),
}
# Lines are rounded one by one.
BY_LINE = ("journal", "sales", "subscriptions")


def micros(text):
    return int(Fraction(text) * MICROS)


def unit(code):
    """The minor unit of a currency in micros."""
    return MICROS // 10 ** MINOR_DIGITS.get(code, 0)


def half_even(amount, code):
    # A Fraction is rounded half to even.
    return round(Fraction(amount, unit(code))) * unit(code)


def by_largest_remainder(amounts, code):
    """All rounded down, then as many up as the total needs, the largest remainders first."""
    step = unit(code)
    floors = [amount // step for amount in amounts]
    missing = round(Fraction(sum(amounts), step)) - sum(floors)
    ranking = sorted(range(len(amounts)), key=lambda place: (-(amounts[place] % step), place))
    for place in ranking[:missing]:
        floors[place] += 1
    return [floor * step for floor in floors]


def rounded(name, columns, body, contents, number):
    """The rows with their amounts rounded: each column and currency by itself, in the report's own order.

    Net of revenue follows from the rounded figures.
    """
    body = [list(row) for row in body]
    for place, column in enumerate(columns):
        if contents.get(column) == "amount" and column != "net":
            currency = columns.index(currency_column(column))
            _round_amounts(body, place, currency, name in BY_LINE, number)
        if contents.get(column) == "sums":
            _round_sums(body, place)
    if name == "revenue":
        for row in body:
            _compute_net(columns, row, number)
    return body


def currency_column(column):
    return "original_currency" if column == "original_amount" else "currency"


def _compute_net(columns, row, number):
    code = row[columns.index("currency")]
    if code:
        gross, returns, reversals = (
            micros(row[columns.index(name)]) for name in ("gross", "returns", "reversals")
        )
        row[columns.index("net")] = number(amount_text(gross - returns + reversals, code))


def _round_amounts(body, place, currency, is_by_line, number):
    groups = {}
    for row in body:
        if row[place] and row[currency]:
            groups.setdefault(row[currency], []).append(row)
    for code, rows in groups.items():
        amounts = [micros(row[place]) for row in rows]
        if is_by_line:
            amounts = [half_even(amount, code) for amount in amounts]
        else:
            amounts = by_largest_remainder(amounts, code)
        for row, amount in zip(rows, amounts, strict=True):
            row[place] = number(amount_text(amount, code))


def _round_sums(body, place):
    """With several currencies: a text, unlike the amount of one."""
    sums = []
    for row in body:
        words = row[place].split()
        sums.append({code: micros(text) for text, code in zip(words[::2], words[1::2], strict=True)})
    for code in {code for row in sums for code in row}:
        rows = [row for row in sums if code in row]
        amounts = by_largest_remainder([row[code] for row in rows], code)
        for row, amount in zip(rows, amounts, strict=True):
            row[code] = amount
    for row, shown in zip(body, sums, strict=True):
        row[place] = " ".join(f"{amount_text(shown[code], code)} {code}" for code in sorted(shown))


def totals(name, columns, body, contents, number, is_minor):
    """A row for each currency, and one for rows without a currency, from the exact rows; the first cell
    is blank."""
    currency = columns.index("currency")
    groups = {}
    for row in body:
        groups.setdefault(row[currency], []).append(row)
    rows = []
    for code in sorted(groups):
        total = [number("")] * len(columns)
        total[currency] = code
        for column in TOTALLED[name]:
            place = columns.index(column)
            if contents[column] == "number":
                total[place] = number(sum(int(row[place]) for row in groups[code]))
            elif code:
                amount = sum(micros(row[place]) for row in groups[code] if row[place])
                amount = half_even(amount, code) if is_minor else amount
                total[place] = number(amount_text(amount, code))
        if is_minor and name == "revenue":
            _compute_net(columns, total, number)
        rows.append(total)
    return rows


def selected(columns, rows, names):
    """The columns named, in their order."""
    places = [columns.index(name) for name in names]
    return list(names), [[row[place] for place in places] for row in rows]
