# The reports and their CSV, to the byte (revenue rules, R9).
import re
from dataclasses import dataclass
from fractions import Fraction

import layout
import subscription_reports
from dates import Zone, period_name, time_text
from journal import RETURN, REVERSAL, SALE
from money import amount_text

DIMENSIONS = {
    "period": "period",
    "app": "bundle_id",
    "product": "product_id",
    "country": "country_code",
    "environment": "environment",
    "basis": "price_basis",
    "trust": "trust",
}
REVENUE_COLUMNS = [
    "currency", "units", "gross", "returned_units", "returns", "reversed_units", "reversals",
    "net", "unpriced_units", "trials", "family_shared",
]
JOURNAL_COLUMNS = [
    "date", "line", "environment", "bundle_id", "sale_key", "transaction_id", "product_id",
    "country_code", "user_identifier", "kind", "quantity", "currency", "unit_price", "amount",
    "price_basis", "reason", "position",
]
CONVERSION_COLUMNS = [
    "original_amount", "original_currency", "rate", "rate_date", "rate_position",
]
SALES_COLUMNS = [
    "environment", "bundle_id", "sale_key", "product_id", "kind", "quantity", "sale_date",
    "original_transaction_id", "transaction_ids", "first_position", "country_code",
    "country_position", "user_identifier", "user_position", "user_basis", "currency", "unit_price",
    "price_basis", "price_position", "is_upgraded", "cancelled", "cancellation_positions",
    "reversal_positions", "pending",
]
USERS_COLUMNS = [
    "user_identifier", "receipts", "uploads", "sales", "returns", "trials", "countries", "net",
    "first_seen_at", "last_seen_at",
]
EXCEPTION_COLUMNS = [
    "exception", "environment", "bundle_id", "sale_key", "product_id", "transaction_id",
    "position", "detail", "date", "country_code", "user_identifier",
]
# The columns that are neither text nor lists; `sums` are amounts in several currencies.
CONTENTS = {
    "revenue": {
        **dict.fromkeys(("gross", "returns", "reversals", "net"), "amount"),
        **dict.fromkeys(
            ("units", "returned_units", "reversed_units", "unpriced_units", "trials", "family_shared"),
            "number",
        ),
    },
    "journal": {
        "date": "time", "quantity": "number", "unit_price": "amount", "amount": "amount",
        "original_amount": "amount", "position": "number",
    },
    "sales": {
        "quantity": "number", "sale_date": "time", "first_position": "number",
        "country_position": "number", "user_position": "number", "unit_price": "amount",
        "price_position": "number",
    },
    "users": {
        **dict.fromkeys(("receipts", "uploads", "sales", "returns", "trials"), "number"),
        "net": "sums", "first_seen_at": "time", "last_seen_at": "time",
    },
    "exceptions": {"position": "number", "date": "time"},
    # By month.
    "subscriptions": {"gross": "amount", "mrr": "amount"},
}


class Numeral(str):
    """A cell that is a number: never escaped against spreadsheets."""


@dataclass(frozen=True)
class Options:
    """A report's options; days count from 1970-01-01, both inclusive."""

    by: tuple = ("country",)
    period: str = "month"
    timezone: str = "UTC"
    refunds: str = "event-date"
    environments: tuple | None = ("Production",)
    from_day: int | None = None
    to_day: int | None = None
    reporting_currency: str | None = None
    rates_max_age: int = 35
    # For subscriptions: the moment, as an instant or as a day; by default when the last event was
    # recorded.
    at_ms: int | None = None
    at_day: int | None = None
    # Filters: None is all; a product that ends with * is a prefix.
    apps: tuple | None = None
    products: tuple | None = None
    countries: tuple | None = None
    user: str | None = None
    kinds: tuple | None = None
    # COLUMN, COLUMN:asc or COLUMN:desc.
    sort: str | None = None
    top: int | None = None
    # Rounding, and which rows and columns are shown; an empty list means all columns.
    amounts: str = "exact"
    columns: tuple | None = None
    total: bool = False

    def shows(self, environment):
        return self.environments is None or environment in self.environments

    def shows_sale(self, sale):
        """Whether a sale is within the environments and the filters."""
        return (
            self.shows(sale.key.environment)
            and self._names(sale.key.bundle_id, sale.product_id)
            and (self.countries is None or (sale.country[0] or "ZZ") in self.countries)
            and (self.user is None or sale.user_identifier == self.user)
            and (self.kinds is None or sale.kind in self.kinds)
        )

    def shows_finding(self, finding, sale):
        """The same for an exception; one without a sale has no kind, but its upload's country and user."""
        if sale is not None:
            return self.shows_sale(sale)
        if self.kinds is not None or not self._names(finding.bundle_id, finding.product_id):
            return False
        upload = finding.upload
        if upload is None:
            return self.countries is None and self.user is None
        is_in = self.countries is None or (upload.country_code or "ZZ") in self.countries
        return is_in and (self.user is None or upload.user_identifier == self.user)

    def _names(self, bundle_id, product_id):
        if self.apps is not None and bundle_id not in self.apps:
            return False
        return self.products is None or any(
            product_id.startswith(name[:-1]) if name.endswith("*") else product_id == name
            for name in self.products
        )

    def holds(self, day):
        after = self.from_day is None or day >= self.from_day
        return after and (self.to_day is None or day <= self.to_day)

    def deciding_ms(self, line):
        """The instant that decides a line's period."""
        return line.sale.date_ms if self.refunds == "sale-date" else line.date_ms


def number(value):
    return Numeral("" if value is None else value)


def amount(micros, currency):
    return Numeral("" if micros is None else amount_text(micros, currency))


def dated_lines(book, options):
    """(line, the line converted, day of the date that decides its period) for the lines selected."""
    zone = Zone(options.timezone)
    for line in book.lines():
        day = zone.day(options.deciding_ms(line))
        if options.shows_sale(line.sale) and options.holds(day):
            yield line, _converted(book, line, options), day


def _converted(book, line, options):
    """R10: without a rate the line stays in its own currency."""
    return book.in_currency(line, options.reporting_currency, options.rates_max_age) or line


class _Sums:
    """One row of the revenue report."""

    def __init__(self):
        self.units = dict.fromkeys((SALE, RETURN, REVERSAL), 0)
        self.micros = dict.fromkeys((SALE, RETURN, REVERSAL), 0)
        self.unpriced_units = self.trials = self.family_shared = 0

    def add(self, line):
        kind = line.sale.kind
        if kind == "trial":
            self.trials += 1
        elif kind == "family_shared":
            self.family_shared += 1
        else:
            # R12: a Return can give back, and a Reversal take, if a later statement replaced a
            # share.
            sign = -1 if line.name == RETURN else 1
            self.units[line.name] += sign * line.quantity
            self.micros[line.name] += sign * (line.amount_micros or 0)
            if line.name == SALE and line.basis == "none":
                self.unpriced_units += line.quantity

    def cells(self, currency):
        def money(micros):
            return amount(micros if currency else None, currency)

        gross, returns, reversals = (self.micros[name] for name in (SALE, RETURN, REVERSAL))
        return [
            currency,
            number(self.units[SALE]),
            money(gross),
            number(self.units[RETURN]),
            money(returns),
            number(self.units[REVERSAL]),
            money(reversals),
            money(gross - returns + reversals),
            number(self.unpriced_units),
            number(self.trials),
            number(self.family_shared),
        ]


def revenue(book, options):
    rows = {}
    for _, line, day in dated_lines(book, options):
        # Only the Sale lines of trials and family shares count, so no other line makes a row.
        if line.name != SALE and line.sale.kind in ("trial", "family_shared"):
            continue
        values = {
            "period": period_name(day, options.period),
            "app": line.sale.key.bundle_id,
            "product": line.sale.product_id,
            "country": line.sale.country[0] or "ZZ",
            "environment": line.sale.key.environment,
            "basis": line.basis,
            "trust": line.sale.trust,
        }
        row = (*(values[name] for name in options.by), line.currency)
        rows.setdefault(row, _Sums()).add(line)
    ordered = sorted(rows, key=lambda row: [cell.encode() for cell in row])
    body = [[*row[:-1], *rows[row].cells(row[-1])] for row in ordered]
    return [DIMENSIONS[name] for name in options.by] + REVENUE_COLUMNS, body


def journal(book, options):
    body = []
    for original, line, _ in dated_lines(book, options):
        sale = line.sale
        body.append(
            [
                time_text(line.date_ms),
                line.name,
                sale.key.environment,
                sale.key.bundle_id,
                sale.key.text,
                sale.shown_transaction_id,
                sale.product_id,
                sale.country[0] or "ZZ",
                sale.user_identifier or "",
                sale.kind,
                number(line.quantity),
                line.currency,
                amount(line.unit_micros, line.currency),
                amount(line.amount_micros, line.currency),
                line.basis,
                line.reason,
                number(line.position),
            ]
        )
        if options.reporting_currency is not None:
            body[-1] += _conversion(book, original, line, options)
    added = CONVERSION_COLUMNS if options.reporting_currency is not None else []
    return JOURNAL_COLUMNS + added, body


def _conversion(book, original, line, options):
    """What a line was before, and the rates that converted it."""
    was = [amount(original.amount_micros, original.currency), original.currency]
    if original.currency == line.currency:
        return [*was, "", "", ""]
    rate, days, positions = book.told_rates(original, options.reporting_currency, options.rates_max_age)
    return [*was, rate, " ".join(period_name(day, "day") for day in days), " ".join(map(str, positions))]


def shown_sales(book, options):
    """The sales selected, in the report's order."""
    zone = Zone(options.timezone)
    for sale in sorted(book.sales, key=lambda sale: sale.key.order):
        if options.shows_sale(sale) and options.holds(zone.day(sale.date_ms)):
            yield sale


def sales(book, options):
    body = []
    for sale in shown_sales(book, options):
        priced = book.priced[sale]
        currency = priced.price.currency if priced.price else ""
        body.append(
            [
                sale.key.environment,
                sale.key.bundle_id,
                sale.key.text,
                sale.product_id,
                sale.kind,
                number(sale.quantity),
                time_text(sale.date_ms),
                sale.original_transaction_id or "",
                " ".join(sorted(sale.aliases, key=str.encode)),
                number(sale.first_position),
                sale.country[0] or "ZZ",
                number(sale.country[1]),
                sale.user_identifier or "",
                number(sale.user.position),
                sale.user.basis,
                currency,
                amount(priced.price.micros if priced.price else None, currency),
                priced.basis,
                number(priced.position),
                "true" if sale.is_upgraded else "false",
                "true" if sale.refunds.is_refunded else "false",
                " ".join(map(str, sale.refunds.positions(RETURN))),
                " ".join(map(str, sale.refunds.positions(REVERSAL))),
                "false",
            ]
        )
    return SALES_COLUMNS, body


def users(book, options):
    """The users that uploads name, and those of the sales shown (R9, R12)."""
    uploads, lines = {}, {}
    for upload in book.uploads:
        if upload.user_identifier is not None:
            uploads.setdefault(upload.user_identifier, []).append(upload)
    for line in book.lines():
        user = line.sale.user_identifier
        if user is not None and options.shows(line.sale.key.environment):
            lines.setdefault(user, []).append(_converted(book, line, options))
    named = sorted(uploads.keys() | lines.keys(), key=str.encode)
    body = [[user, *_user_cells(uploads.get(user, []), lines.get(user, []))] for user in named]
    return USERS_COLUMNS, body


def _user_cells(uploads, lines):
    paid = [line for line in lines if line.sale.is_paid]
    net = {}
    for line in paid:
        if line.currency:
            net[line.currency] = net.get(line.currency, 0) + line.amount_micros
    seen = [upload.occurred_at_ms for upload in uploads]
    return [
        number(len({upload.receipt_id for upload in uploads} - {None})),
        number(len(uploads)),
        number(sum(line.name == SALE for line in paid)),
        number(sum(line.name == RETURN for line in paid)),
        number(sum(line.name == SALE and line.sale.kind == "trial" for line in lines)),
        " ".join(sorted({upload.country_code or "" for upload in uploads} - {""})),
        # A text of several amounts, of which the first may be negative.
        " ".join(f"{amount_text(net[code], code)} {code}" for code in sorted(net)),
        time_text(min(seen)) if seen else "",
        time_text(max(seen)) if seen else "",
    ]


def exceptions(book, options):
    zone = Zone(options.timezone)
    found = book.findings(
        options.shows,
        options.reporting_currency,
        lambda ms: options.holds(zone.day(ms)),
        options.deciding_ms,
        options.rates_max_age,
    )
    sales = {sale.key: sale for sale in book.sales}
    body = [
        [
            finding.name,
            finding.environment,
            finding.bundle_id,
            finding.sale_key,
            finding.product_id,
            finding.transaction_id,
            number(finding.position),
            finding.detail,
            *_exception_cells(finding, sales.get(finding.subject)),
        ]
        for finding in found
        if options.shows_finding(finding, sales.get(finding.subject))
    ]
    body.sort(key=lambda row: (int(row[6]), [cell.encode() for cell in row]))
    return EXCEPTION_COLUMNS, body


def _exception_cells(finding, sale):
    """Date, country and user: of the sale or its line, else of the event and its upload."""
    if sale is not None:
        date_ms = sale.date_ms if finding.date_ms is None else finding.date_ms
        return [time_text(date_ms), sale.country[0] or "ZZ", sale.user_identifier or ""]
    date = "" if finding.verified_at_ms is None else time_text(finding.verified_at_ms)
    if finding.upload is None:
        return [date, "", ""]
    return [date, finding.upload.country_code or "ZZ", finding.upload.user_identifier or ""]


def subscriptions(book, options):
    by_month = options.by == ("month",)
    report = subscription_reports.by_month if by_month else subscription_reports.rows
    return report(book, options, number)


REPORTS = {
    "revenue": revenue, "journal": journal, "sales": sales, "users": users, "exceptions": exceptions,
    "subscriptions": subscriptions,
}


def report(name, book, options):
    """The columns and rows of a report, in the requested order."""
    columns, body = REPORTS[name](book, options)
    contents = CONTENTS.get(name, {})
    is_minor = options.amounts == "minor"
    totals = []
    if options.total:
        totals = layout.totals(name, columns, body, contents, Numeral, is_minor)
    if is_minor:
        body = layout.rounded(name, columns, body, contents, Numeral)
    if options.sort is not None:
        body = _sorted(name, columns, body, options)
    elif options.top is not None:
        body = body[: options.top]
    names = options.columns or columns
    shown, body = layout.selected(columns, body, names)
    _, totals = layout.selected(columns, totals, names)
    return shown, body + [["total", *row[1:]] for row in totals]


def _sorted(name, columns, body, options):
    """Empty cells last, ties in the report's own order; amounts by currency."""
    column, _, direction = options.sort.partition(":")
    place = columns.index(column)
    content = CONTENTS[name].get(column, "text")
    falls = direction == "desc" or (direction == "" and content != "text")

    def currency(row):
        if content == "amount":
            return row[columns.index(layout.currency_column(column))]
        return row[place].split(" ")[1] if content == "sums" and row[place] else ""

    def value(row):
        if content in ("number", "amount", "sums"):
            return Fraction(row[place].split(" ")[0])
        return row[place].encode()

    groups = {}
    for row in body:
        groups.setdefault(currency(row), []).append(row)
    rows = []
    for code in sorted(groups, key=lambda code: (code == "", code)):
        filled = [row for row in groups[code] if row[place]]
        empty = [row for row in groups[code] if not row[place]]
        rows += sorted(filled, key=value, reverse=falls) + empty
    return rows[: options.top]


def _blanked(column, cell):
    if column == "position" or column.endswith(("_position", "_positions")):
        return ""
    return re.sub(r" at [0-9]+", " at ", cell) if column == "detail" else cell


def without_positions(columns, body):
    """The same rows with blank positions, so that runs with other positions can be compared."""

    def blanked(row):
        return [_blanked(column, cell) for column, cell in zip(columns, row, strict=True)]

    return columns, [blanked(row) for row in body]


# R9: what a text must not begin with; then the full-width = + - @.
RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def cell_text(cell):
    """R9, CSV: a text that a spreadsheet would run gets an apostrophe; quotes where needed."""
    if not isinstance(cell, Numeral) and cell.startswith(RUN_BY_SPREADSHEETS):
        cell = "'" + cell
    return quoted(cell)


def quoted(cell):
    if any(character in cell for character in ',;"\r\n'):
        return '"' + cell.replace('"', '""') + '"'
    return str(cell)


def csv_text(columns, body):
    return "".join(",".join(map(cell_text, row)) + "\n" for row in [columns, *body])
