# Imports without ledgerctl, and the ledger's lines, for the tests of settlement.
from types import SimpleNamespace

from dates import DAY_MS, days_from_text
from settlement import Files
from settlement_exports import rows_of
from settlement_files import event_data, read_file
from settlement_matching import LedgerLine, sign_of
from settlement_reports import reconcile, reconciled
from settlement_values import micros, month_of_day


class Imports:
    """Files as an import takes them, with positions from 100 on."""

    def __init__(self):
        self.files, self.position = Files(), 100

    def add(self, text, name="85_ZZ.txt", most=None, replaces=False, **options):
        """Declares the file; returns its report."""
        data = text if isinstance(text, bytes) else text.encode()
        report = read_file(data, name, **options)
        if self.files.admit(report, replaces):
            for event in event_data(report, name, *([] if most is None else [most])):
                self.files.declare(self.position, event)
                self.position += 1
        return report

    def table(self, lines, *columns):
        """The rows of the reconciliation with the ledger's lines."""
        return rows_of(reconcile(reconciled(lines, self.files)), *columns)

    def map(self, sku, product=None):
        self.files.map({"sku": sku} | ({} if product is None else {"product_id": product}))


def line(day, price="9.99", currency="EUR", country="DE", product="pro", units=1, name="Sale",
         position=1, amount=None):
    """A line of the ledger on a day such as `2025-10-07`; `price` None: unpriced."""
    number = days_from_text(day)
    each = None if price is None else micros(price)
    whole = each if each is None else units * each * (-1 if name == "Return" else 1)
    return LedgerLine(month_of_day(number), number, name, product, country,
                      "" if price is None else currency, each, units,
                      micros(amount) if amount else whole, position)


class StandInBook:
    """A book whose journal has these lines, each at noon of the store's day."""

    def __init__(self, lines, files):
        self.files = files
        self._lines = [_journal_line(one) for one in lines]

    def lines(self):
        return self._lines


def _journal_line(one):
    key = SimpleNamespace(environment="Production")
    sale = SimpleNamespace(key=key, kind="regular", is_paid=True, product_id=one.product,
                           country=(one.country, one.position))
    return SimpleNamespace(
        sale=sale, name=one.line, quantity=sign_of(one.line) * one.units, amount_micros=one.amount,
        currency=one.currency, date_ms=one.day * DAY_MS + 20 * 3_600_000, position=one.position)


def stated(lines, files):
    """(a stand-in of the book, the parts of its reconciliation)."""
    return StandInBook(lines, files), reconciled(lines, files)
