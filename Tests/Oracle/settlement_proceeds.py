# What Apple states of shares and payments, and a payment split by groups (settlement rules, S13).
from fractions import Fraction

from currencies import MINOR_DIGITS
from dates import period_name
from money import MICROS
from reports import Numeral, csv_text, number
from sellers import seller
from settlement_matching import line_rank
from settlement_overview import BALANCE, EARNED, OWED
from settlement_values import amount_text, month_name, month_span

PROCEEDS_COLUMNS = [
    "fiscal_month", "seller", "product_id", "country_code", "line", "currency", "share_currency",
    "units", "gross", "share", "kept",
]
PAYOUT_COLUMNS = [
    "fiscal_month", "region", "currency", "units", "balance", "earned", "input_tax", "adjustments",
    "withholding_tax", "owed", "exchange_rate", "effective_rate", "proceeds", "bank_currency", "paid",
    "expected_payment", "latest_payment",
]
SHOWN_AMOUNTS = [BALANCE, EARNED, "input tax", "adjustments", "withholding tax", OWED]
# Days after a month's end.
EXPECTED_DAYS, LATEST_DAYS = 33, 45
RATE_DIGITS = 9
# What a payment is split by, and the columns.
GROUPS = {"seller": "seller", "country": "country_code", "product": "product_id"}


def money(micros, currency):
    return Numeral("" if micros is None else amount_text(micros, currency))


def seller_of(month, report, row):
    return seller(row.country, month, report.region, row.transacted)


def proceeds(files):
    """The CSV of `export proceeds`."""
    sums = {}
    for month, report, row in files.counting_rows():
        line = "Return" if row.is_return else "Sale"
        key = (month, seller_of(month, report, row), files.product_of(row), row.country, line,
               row.currency, row.share_currency)
        units, gross, share = sums.get(key, (0, 0, 0))
        sums[key] = units + row.units, gross + row.gross, share + row.share
    body = []
    for key in sorted(sums, key=_order):
        month, *texts, currency, share_currency = key
        units, gross, share = sums[key]
        kept = gross - share if currency == share_currency else None
        body.append([
            month_name(month), *texts, currency, share_currency, number(str(units)),
            money(gross, currency), money(share, share_currency), money(kept, currency),
        ])
    return csv_text(PROCEEDS_COLUMNS, body)


def _order(key):
    month, *texts, line, currency, share_currency = key
    texts = [text.encode() for text in texts]
    return month, *texts, line_rank(line), currency.encode(), share_currency.encode()


def overviews(files):
    """(month, overview) of all months that have one, ascending."""
    for month in files.months():
        current = files.overview(month)
        if current is not None:
            yield month, current.report


def payout(files):
    """The CSV of `export payout`."""
    body = []
    for month, overview in overviews(files):
        body += [_payout_row(month, row, one.pays(row)) for one in overview.lists for row in one.rows]
    return csv_text(PAYOUT_COLUMNS, body)


def _payout_row(month, row, is_paid):
    return [
        month_name(month), row.region, row.currency, number(str(row.units)),
        *(money(row.amounts[name], row.currency) for name in SHOWN_AMOUNTS),
        Numeral(row.rate), Numeral(effective_rate(row) if is_paid else ""),
        money(row.proceeds, row.bank), row.bank, "true" if is_paid else "false",
        period_name(payment_day(month), "day"), period_name(month_span(month)[1] + LATEST_DAYS, "day"),
    ]


def payment_day(month):
    """The day on which Apple is expected to pay a month."""
    return month_span(month)[1] + EXPECTED_DAYS


def effective_rate(row):
    """Proceeds ÷ owed, to 9 decimals, half to even; empty where nothing is owed."""
    owed = row.amounts[OWED]
    if not owed:
        return ""
    # A Fraction is rounded half to even.
    scaled = round(Fraction(row.proceeds * 10**RATE_DIGITS, owed))
    whole, decimals = divmod(abs(scaled), 10**RATE_DIGITS)
    return f"{'-' if scaled < 0 else ''}{whole}.{decimals:0{RATE_DIGITS}}"


# A payment split by groups.


def split(amount, weights):
    """Whole units by weight: rounded down, then one each to the largest remainders, the first of equals."""
    total = sum(weights)
    floors = [amount * weight // total for weight in weights]
    remainders = [Fraction(amount * weight, total) - floor for weight, floor in zip(weights, floors)]
    ranking = sorted(range(len(weights)), key=lambda place: (-remainders[place], place))
    for place in ranking[: amount - sum(floors)]:
        floors[place] += 1
    return floors


def payment_of(files, month, currency):
    """(whole minor units, bank currency) of what a month's currency was paid; None if it is not split."""
    rows = [(one, row) for one in files.overview(month).report.lists for row in one.rows
            if row.currency == currency]
    if currency in {code for code, *_ in files.untied(month)}:
        return None
    if not all(one.pays(row) and row.amounts[BALANCE] == 0 for one, row in rows):
        return None
    banks = {row.bank for _, row in rows}
    if len(banks) != 1:
        return None
    bank = banks.pop()
    amount, rest = divmod(sum(row.proceeds for _, row in rows), minor_unit(bank))
    return None if rest else (amount, bank)


def minor_unit(currency):
    """In micros; S3: a currency outside the table has 2 minor digits."""
    return MICROS // 10 ** MINOR_DIGITS.get(currency, 2)


def payout_by(files, names):
    """The CSV of `export payout --by`, the names in the order given."""
    body = []
    for month, _ in overviews(files):
        sums = {}
        for report, row in ((r, row) for m, r, row in files.counting_rows() if m == month):
            values = {"seller": seller_of(month, report, row), "country": row.country,
                      "product": files.product_of(row)}
            groups = sums.setdefault(row.share_currency, {})
            group = tuple(values[name] for name in names)
            groups[group] = groups.get(group, 0) + row.share
        found = []
        for currency, groups in sums.items():
            paid = payment_of(files, month, currency)
            if paid is not None and sum(groups.values()):
                found += _split_rows(currency, groups, *paid)
        found.sort(key=lambda row: [cell.encode() for cell in row[: len(names) + 1]])
        body += [[month_name(month), *row] for row in found]
    columns = ["fiscal_month", *(GROUPS[name] for name in names)]
    return csv_text([*columns, "currency", "share", "proceeds", "bank_currency"], body)


def _split_rows(currency, groups, amount, bank):
    ordered = sorted(groups, key=lambda group: [text.encode() for text in group])
    parts = split(amount, [groups[group] for group in ordered])
    for group, part in zip(ordered, parts):
        yield [*group, currency, money(groups[group], currency), money(part * minor_unit(bank), bank), bank]
