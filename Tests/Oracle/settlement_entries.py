# The entries of an accounting system, from the ledger, Apple's reports and payments (settlement rules, S15).
from dataclasses import dataclass

from dates import Zone, period_name
from journal import RETURN, REVERSAL, SALE
from reports import Numeral, csv_text
from settlement_overview import OWED
from settlement_proceeds import money, overviews, payment_day
from settlement_reports import OPEN_MONTHS
from settlement_values import amount_text, month_name, month_span

COLUMNS = ["date", "entry", "kind", "fiscal_month", "description", "account", "amount", "currency"]
KINDS = ("sales", "settlement", "unsettled", "payment")
PAYEE = "App Store"
ACCOUNTS = {
    "receivable": "Assets:Apple:Receivable",
    "bank": "Assets:Bank",
    "sales": "Income:Apple:Sales",
    "refunds": "Income:Apple:Refunds",
    "apps": "Income:Apple:Apps",
    "unseen": "Income:Apple:Unseen",
    "differences": "Income:Apple:Differences",
    "kept": "Expenses:Apple:Kept",
    "unsettled": "Expenses:Apple:Unsettled",
    "withheld": "Expenses:Tax:Withheld",
    "input_tax": "Liabilities:Tax:Input",
    "adjustments": "Income:Apple:Adjustments",
    "conversion": "Equity:Conversion",
}
ACCOUNT_OF_CLASS = {
    **dict.fromkeys(("unpriced_here", "price_differs", "currency_differs", "country_differs"), "differences"),
    "missing_here": "unseen", "not_in_app": "apps", "free": "apps",
}
ACCOUNT_OF_COLUMN = {"input tax": "input_tax", "adjustments": "adjustments", "withholding tax": "withheld"}


@dataclass(frozen=True)
class Entry:
    """`month`: None for sales; `of`: a currency, or the number of an overview's row."""

    day: int
    kind: str
    month: int | None
    of: str | int

    @property
    def when(self):
        return period_name(self.day, "day") if self.month is None else month_name(self.month)

    @property
    def name(self):
        return f"{self.kind} {self.when} {self.of}"

    @property
    def description(self):
        return f"{PAYEE} | {self.name}"

    @property
    def order(self):
        return self.day, KINDS.index(self.kind), self.when, self.of


class Entries:
    """Makes the entries; `accounts` replaces some of the names, `paid_on` the days of payments by month."""

    def __init__(self, book, files, parts, timezone="UTC", basis="ledger", paid_on=None, accounts=None):
        self._files, self._parts = files, parts
        self._accounts = ACCOUNTS | (accounts or {})
        self._paid_on = paid_on or {}
        self._sums = {}
        if basis == "ledger":
            self._add_sales(book, Zone(timezone))
            self._add_differences()
            self._add_unsettled()
        else:
            self._add_gross()
        self._add_shares()
        self._add_payments()

    def _post(self, entry, account, currency, micros):
        """Adds to one posting of an entry."""
        sums = self._sums.setdefault(entry, {})
        key = self._accounts[account], currency
        sums[key] = sums.get(key, 0) + micros

    def _move(self, entry, currency, micros, debit, credit):
        self._post(entry, debit, currency, micros)
        self._post(entry, credit, currency, -micros)

    def _add_sales(self, book, zone):
        for line in book.lines():
            is_shown = line.sale.key.environment == "Production" and line.sale.is_paid
            if not is_shown or not line.currency:
                continue
            entry = Entry(zone.day(line.date_ms), "sales", None, line.currency)
            account = {SALE: "sales", RETURN: "refunds", REVERSAL: "refunds"}[line.name]
            self._move(entry, line.currency, line.amount_micros, "receivable", account)

    def _settlement(self, month, currency):
        return Entry(month_span(month)[1], "settlement", month, currency)

    def _add_differences(self):
        for part in self._parts:
            account = ACCOUNT_OF_CLASS.get(part.name)
            if part.apple is None or account is None:
                continue
            if part.name == "currency_differs":
                stated = [(part.apple_amount, part.apple.currency),
                          (-part.ledger_amount, part.ledger.currency)]
            else:
                stated = [part.difference]
            for micros, currency in stated:
                self._move(self._settlement(part.month, currency), currency, micros, "receivable", account)

    def _add_gross(self):
        for month, _, row in self._files.counting_rows():
            account = ("refunds" if row.is_return else "sales") if row.is_in_app else "apps"
            entry = self._settlement(month, row.currency)
            self._move(entry, row.currency, row.gross, "receivable", account)

    def _add_shares(self):
        for month, _, row in self._files.counting_rows():
            entry = self._settlement(month, row.currency)
            if row.currency == row.share_currency:
                self._move(entry, row.currency, row.gross - row.share, "kept", "receivable")
            else:
                self._move(entry, row.currency, row.gross, "conversion", "receivable")
                self._move(entry, row.share_currency, row.share, "receivable", "conversion")

    def _add_unsettled(self):
        accounts = {"missing_there": "unsettled", "rounding": "differences"}
        for part in self._parts:
            if part.name not in accounts or part.ledger_amount is None:
                continue
            month = part.ledger.month
            if part.name == "rounding" and not is_settled(self._files, month):
                continue
            currency = part.ledger.currency
            entry = Entry(month_span(month + OPEN_MONTHS)[1], "unsettled", month, currency)
            self._move(entry, currency, part.ledger_amount, accounts[part.name], "receivable")

    def _add_payments(self):
        for month, overview in overviews(self._files):
            day = self._paid_on.get(month, payment_day(month))
            for one in overview.lists:
                for row in filter(one.pays, one.rows):
                    self._add_payment(Entry(day, "payment", month, row.number), row)

    def _add_payment(self, entry, row):
        for column, account in ACCOUNT_OF_COLUMN.items():
            self._move(entry, row.currency, row.amounts[column], "receivable", account)
        self._move(entry, row.currency, row.amounts[OWED], "conversion", "receivable")
        self._move(entry, row.bank, row.proceeds, "bank", "conversion")

    def postings(self):
        """(entry, [(account, currency, micros)]) in order; without postings of 0 and entries of none."""
        for entry in sorted(self._sums, key=lambda entry: entry.order):
            found = [(*key, micros) for key, micros in self._sums[entry].items() if micros]
            _check_balance(entry, found)
            if found:
                yield entry, sorted(found, key=lambda one: [text.encode() for text in one[:2]])

    def balances(self, account):
        """{currency: micros} of an account by its name here; none of 0."""
        found = {}
        for _, postings in self.postings():
            for name, currency, micros in postings:
                if name == self._accounts[account]:
                    found[currency] = found.get(currency, 0) + micros
        return {currency: micros for currency, micros in found.items() if micros}


def is_settled(files, month):
    """Whether what a month's sales were is known for good."""
    return all(map(files.is_complete, range(month, month + OPEN_MONTHS + 1)))


def _check_balance(entry, postings):
    sums = {}
    for _, currency, micros in postings:
        sums[currency] = sums.get(currency, 0) + micros
    if any(sums.values()):
        raise ArithmeticError(f"{entry.name} does not sum to 0")


def receivable_balances(files, parts):
    """S15: what the receivable keeps, {currency: micros}: what is open, and what Apple owes."""
    found = {}

    def add(currency, micros):
        found[currency] = found.get(currency, 0) + micros

    for part in parts:
        is_pending = part.name == "rounding" and not is_settled(files, part.ledger.month)
        if part.ledger_amount is not None and (part.name in ("open", "not_reported") or is_pending):
            add(part.ledger.currency, part.ledger_amount)
    for _, _, row in files.counting_rows():
        add(row.share_currency, row.share)
    for _, overview in overviews(files):
        for one in overview.lists:
            for row in filter(one.pays, one.rows):
                owed = row.amounts["balance"] + row.amounts["earned"] + row.owed_difference
                add(row.currency, -owed)
    return {currency: micros for currency, micros in found.items() if micros}


# The formats.


def as_csv(entries):
    body = []
    for entry, postings in entries.postings():
        month = "" if entry.month is None else month_name(entry.month)
        for account, currency, micros in postings:
            body.append([
                Numeral(period_name(entry.day, "day")), entry.name, entry.kind, month,
                entry.description, account, money(micros, currency), currency,
            ])
    return csv_text(COLUMNS, body)


def as_hledger(entries):
    found = list(entries.postings())
    accounts, currencies = _named(found)
    lines = [f"account {account}" for account in accounts]
    for currency in currencies:
        lines += [f"commodity {currency}", f"  format 1000.000000 {currency}"]
    return _text(lines, found, lambda entry: entry.description)


def as_beancount(entries):
    found = list(entries.postings())
    accounts, _ = _named(found)
    first = period_name(found[0][0].day, "day") if found else ""
    lines = [f"{first} open {account}" for account in accounts]
    return _text(lines, found, lambda entry: f'"{PAYEE}" "{entry.name}"')


def _named(found):
    """The accounts and the currencies of postings, each sorted as bytes."""
    postings = [one for _, postings in found for one in postings]
    return (sorted({one[place] for one in postings}, key=str.encode) for place in (0, 1))


def _text(directives, found, described):
    lines = [*directives, ""] if directives else []
    for entry, postings in found:
        lines.append(f"{period_name(entry.day, 'day')} * {described(entry)}")
        lines += [f"  {account}  {amount_text(micros, currency)} {currency}"
                  for account, currency, micros in postings]
        lines.append("")
    return "".join(f"{line}\n" for line in lines)
