# What Apple's reports say of single sales, where they say it without doubt (settlement rules, S14).
import reports
from journal import SALE
from reports import Numeral, csv_text
from settlement_matching import ledger_line, sign_of
from settlement_proceeds import money
from settlement_values import month_name

FACT_COLUMNS = ["settlement_month", "proceeds", "proceeds_currency"]
EXACT = ("matched", "settled_later", "settled_earlier")


class Facts:
    """Of each of the ledger's cells that has them: (unit share, its currency, month or None)."""

    def __init__(self, parts):
        taken = {}
        for part in parts:
            if part.ledger is not None and part.name != "rounding":
                taken.setdefault(part.ledger, []).append(part)
        self._facts = {}
        for cell, own in taken.items():
            fact = _fact(own)
            if fact is not None:
                self._facts[cell.key] = fact

    def cells(self, line):
        """The three columns of a line of the journal."""
        found = ledger_line(line)
        fact = None if found is None else self._facts.get(found.cell)
        if fact is None:
            return ["", Numeral(""), ""]
        share, currency, month = fact
        amount = sign_of(found.line) * found.units * share
        return ["" if month is None else month_name(month), money(amount, currency), currency]


def _fact(parts):
    """Of the parts that all units of a cell stand in."""
    if any(part.name not in EXACT or part.apple.has_disagreement for part in parts):
        return None
    shares = set().union(*(part.apple.shares for part in parts))
    if len(shares) > 1:
        return None
    months = {part.month for part in parts}
    return *shares.pop(), months.pop() if len(months) == 1 else None


def journal(book, options, facts):
    """The CSV of `export journal --with-settlement`."""
    columns, body = reports.journal(book, options)
    lines = [line for line, _, _ in reports.dated_lines(book, options)]
    return csv_text(columns + FACT_COLUMNS, [
        row + facts.cells(line) for row, line in zip(body, lines, strict=True)])


def sales(book, options, facts):
    """The CSV of `export sales --with-settlement`: of each sale what its Sale line has."""
    columns, body = reports.sales(book, options)
    own = {line.sale: line for line in book.lines() if line.name == SALE}
    shown = reports.shown_sales(book, options)
    return csv_text(columns + FACT_COLUMNS, [
        row + facts.cells(own[sale]) for row, sale in zip(body, shown, strict=True)])
