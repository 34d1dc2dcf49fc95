# Hand-worked checks of what Apple's reports say of single sales (settlement rules, S14).
import unittest

import settlement_facts
import support
from journal import SALE
from reports import Options
from settlement_exports import rows_of
from settlement_facts import Facts
from settlement_matching import ledger_lines
from settlement_reports import reconciled
from settlement_support import Imports, line, stated
from settlement_writing import detailed, financial, sale
from test_settlement import example_files, example_ledger

P01, P02, P03 = "FY2026-P01", "FY2026-P02", "FY2026-P03"
NONE = ("", "", "")
OWN = {"price": "9.99", "share": "5.88"}


def facts_of(lines, made):
    """The three cells of each line of the ledger."""
    book, parts = stated(lines, made.files)
    facts = Facts(parts)
    return [tuple(facts.cells(one)) for one in book.lines()]


class FactsOfSales(unittest.TestCase):
    # The ledger's lines, a month's rows, and the cells of the first line.
    CASES = {
        "all units in one month at one share": (
            [line("2025-10-10")], [(P01, [sale(1, **OWN)])], (P01, "5.88", "EUR")),
        "several units": (
            [line("2025-10-10", units=3)], [(P01, [sale(3, **OWN)])], (P01, "17.64", "EUR")),
        "a Return": (
            [line("2025-10-10", name="Return", units=2)], [(P01, [sale(-2, **OWN, flag="R")])],
            (P01, "-11.76", "EUR")),
        "settled a month later": (
            [line("2025-10-10")], [(P02, [sale(1, **OWN)])], (P02, "5.88", "EUR")),
        "two months at one share: the month is not known": (
            [line("2025-10-10"), line("2025-10-11", position=2)],
            [(P01, [sale(1, **OWN)]), (P02, [sale(1, **OWN)])], ("", "5.88", "EUR")),
        "one unit of two is missing": (
            [line("2025-10-10"), line("2025-10-11", position=2)], [(P01, [sale(1, **OWN)])], NONE),
        "Apple has more": ([line("2025-10-10")], [(P01, [sale(2, **OWN)])], (P01, "5.88", "EUR")),
        "two shares at one price": (
            [line("2025-10-10", units=2)], [(P01, [sale(1, **OWN), sale(1, "9.99", share="8.49")])], NONE),
        "two shares in two months": (
            [line("2025-10-10", units=2)],
            [(P01, [sale(1, **OWN)]), (P02, [sale(1, "9.99", share="8.49")])], NONE),
        "a share in two currencies": (
            [line("2025-10-10", units=2)],
            [(P01, [sale(1, **OWN), sale(1, **OWN, Partner_Share_Currency="USD")])], NONE),
        "a share in another currency": (
            [line("2025-10-10")], [(P01, [sale(1, **OWN, Partner_Share_Currency="USD")])],
            (P01, "5.88", "USD")),
        "a share that disagrees": (
            [line("2025-10-10")], [(P01, [sale(1, **OWN, Extended_Partner_Share="5.87")])], NONE),
        "a sign that disagrees": (
            [line("2025-10-10")], [(P01, [sale(2, **OWN), sale(-1, **OWN)])], NONE),
        "another price": ([line("2025-10-10")], [(P01, [sale(1, "8.99", share="5.88")])], NONE),
        "no price here": ([line("2025-10-10", None)], [(P01, [sale(1, **OWN)])], NONE),
        "another country": ([line("2025-10-10")], [(P01, [sale(1, **OWN, country="FR")])], NONE),
        "a free sale": ([line("2025-10-10", "0")], [(P01, [sale(1, "0", share="0.10")])], NONE),
        "not reported": ([line("2025-10-10")], [(P02, [sale(1, **OWN, country="JP")])], NONE),
        "an amount with a rest": (
            [line("2025-10-10", "3.333333", units=3, amount="10.00")],
            [(P01, [sale(3, "3.333333", share="2.00")])], (P01, "6.00", "EUR")),
    }

    def test_a_line_has_them_only_where_nothing_is_in_doubt(self):
        for situation, (lines, months, expected) in self.CASES.items():
            with self.subTest(situation):
                made = Imports()
                for month, rows in months:
                    made.add(financial(month, *rows))
                self.assertEqual(facts_of(lines, made)[0], expected)

    def test_two_days_of_one_detailed_report_are_one_month(self):
        made = Imports()
        made.add(detailed(P02, sale(1, **OWN, day="10/10/2025"), sale(1, **OWN, day="11/02/2025")))
        lines = [line("2025-10-31"), line("2025-11-01", position=2)]
        self.assertEqual(facts_of(lines, made), [(P02, "5.88", "EUR")] * 2)

    def test_of_the_worked_example_the_return_and_the_last_sale_have_them(self):
        found = facts_of(example_ledger(), example_files([P01, P02, P03]))
        self.assertEqual(found, [NONE] * 7 + [(P02, "-5.88", "EUR"), (P03, "5.88", "EUR")])


class Columns(unittest.TestCase):
    def setUp(self):
        rows = [support.row("pro", "1", "2025-10-10", cancellation_date_ms=str(support.ms("2025-11-10"))),
                support.row("pro", "2", "2025-10-10", is_trial_period="true")]
        self.book = support.book(support.line(*rows, at="2025-10-11", price="9.99", currency="EUR"))
        made = Imports()
        made.add(financial(P01, sale(1, **OWN)))
        made.add(financial(P02, sale(-1, **OWN, flag="R")))
        self.facts = Facts(reconciled(list(ledger_lines(self.book)), made.files))

    def test_the_journal_has_them_at_its_end(self):
        text = settlement_facts.journal(self.book, Options(reporting_currency="EUR"), self.facts)
        columns = ("line", "kind", "original_amount", *settlement_facts.FACT_COLUMNS)
        self.assertEqual(text.split("\n", 1)[0].split(",")[-3:], settlement_facts.FACT_COLUMNS)
        self.assertEqual(rows_of(text, *columns), [
            (SALE, "regular", "9.99", P01, "5.88", "EUR"),
            (SALE, "trial", "0", *NONE),
            ("Return", "regular", "-9.99", P02, "-5.88", "EUR"),
        ])

    def test_a_sale_has_what_its_sale_line_has(self):
        text = settlement_facts.sales(self.book, Options(), self.facts)
        self.assertEqual(rows_of(text, "transaction_ids", "cancelled", *settlement_facts.FACT_COLUMNS), [
            ("1", "true", P01, "5.88", "EUR"), ("2", "false", *NONE)])


if __name__ == "__main__":
    unittest.main()
