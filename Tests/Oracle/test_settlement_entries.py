# Hand-worked checks of entries: the worked example, the published month, payments, formats (settlement
# rules, S15).
import pathlib
import random
import tempfile
import unittest

import generate_settlement
import reports
from dates import days_from_text, period_name
from generate_settlement_files import BALANCE_HEADER as HEADER
from generate_settlement_plants import planted_purchases
from generate_settlement_sales import Sales
from settlement_entries import Entries, as_beancount, as_csv, as_hledger, receivable_balances
from settlement_exports import rows_of
from settlement_matching import ledger_lines
from settlement_reports import reconciled
from settlement_stand_in import Signer, StandInLedger
from settlement_support import Imports, line, stated
from settlement_values import micros, month_from_name
from settlement_writing import financial, overview, sale
from test_settlement import PUBLISHED, example_files, example_ledger

P01, P02, P03 = "FY2026-P01", "FY2026-P02", "FY2026-P03"
BRIEF = ("date", "entry", "account", "amount", "currency")
RECEIVABLE, BANK, CONVERSION = "Assets:Apple:Receivable", "Assets:Bank", "Equity:Conversion"
SALES, REFUNDS = "Income:Apple:Sales", "Income:Apple:Refunds"
KEPT, UNSETTLED = "Expenses:Apple:Kept", "Expenses:Apple:Unsettled"
DIFFERENCES, UNSEEN, APPS = "Income:Apple:Differences", "Income:Apple:Unseen", "Income:Apple:Apps"
INPUT, ADJUSTED, WITHHELD = "Liabilities:Tax:Input", "Income:Apple:Adjustments", "Expenses:Tax:Withheld"


def entries_of(lines, made, **options):
    book, parts = stated(lines, made.files)
    return Entries(book, made.files, parts, **options)


def of_kind(entries, *kinds):
    """(entry, account, amount, currency) of these kinds."""
    rows = rows_of(as_csv(entries), "kind", "entry", "account", "amount", "currency")
    return [row[1:] for row in rows if row[0] in kinds]


def published():
    made = Imports()
    for path in sorted(PUBLISHED.iterdir()):
        if path.suffix in (".txt", ".csv"):
            made.add(path.read_bytes(), path.name)
    return made


class WorkedExample(unittest.TestCase):
    def entries(self, *months, **options):
        return entries_of(example_ledger(), example_files(months), **options)

    def test_sales_by_day(self):
        rows = rows_of(as_csv(self.entries(P01, P02, P03)))
        self.assertEqual([row for row in rows if row[2] == "sales"], [
            (day, f"sales {day} EUR", "sales", "", f"App Store | sales {day} EUR", account, amount, "EUR")
            for day, account, amount in (
                ("2025-10-07", RECEIVABLE, "49.95"), ("2025-10-07", SALES, "-49.95"),
                ("2025-10-08", RECEIVABLE, "9.99"), ("2025-10-08", SALES, "-9.99"),
                ("2025-11-20", RECEIVABLE, "-9.99"), ("2025-11-20", REFUNDS, "9.99"),
                ("2025-12-02", RECEIVABLE, "9.99"), ("2025-12-02", SALES, "-9.99"),
            )])

    def test_settlement(self):
        entries = self.entries(P01, P02, P03)
        self.assertEqual(of_kind(entries, "settlement"), [
            (f"settlement {P01} EUR", RECEIVABLE, "-17.03", "EUR"),
            (f"settlement {P01} EUR", KEPT, "16.03", "EUR"),
            (f"settlement {P01} EUR", DIFFERENCES, "1.00", "EUR"),
            (f"settlement {P01} JPY", RECEIVABLE, "955", "JPY"),
            (f"settlement {P01} JPY", KEPT, "545", "JPY"),
            (f"settlement {P01} JPY", UNSEEN, "-1500", "JPY"),
            (f"settlement {P01} USD", RECEIVABLE, "6.99", "USD"),
            (f"settlement {P01} USD", KEPT, "3.00", "USD"),
            (f"settlement {P01} USD", DIFFERENCES, "-9.99", "USD"),
            (f"settlement {P03} EUR", RECEIVABLE, "-4.11", "EUR"),
            (f"settlement {P03} EUR", KEPT, "4.11", "EUR"),
        ])
        rows = rows_of(as_csv(entries), "date", "fiscal_month", "kind")
        self.assertEqual({row[:2] for row in rows if row[2] == "settlement"},
                         {("2025-11-01", P01), ("2025-12-27", P03)})

    def test_what_never_settled_is_unsettled_when_the_third_month_ends(self):
        rows = rows_of(as_csv(self.entries(P01, P02, P03)), "kind", "fiscal_month", *BRIEF)
        self.assertEqual([row[1:] for row in rows if row[0] == "unsettled"], [
            (P01, "2025-12-27", f"unsettled {P01} EUR", RECEIVABLE, "-9.99", "EUR"),
            (P01, "2025-12-27", f"unsettled {P01} EUR", UNSETTLED, "9.99", "EUR"),
        ])

    def test_the_receivable_keeps_what_apple_owes(self):
        self.assertEqual(self.entries(P01, P02, P03).balances("receivable"),
                         {"EUR": micros("28.81"), "JPY": micros("955"), "USD": micros("6.99")})

    def test_without_the_third_report_the_receivable_keeps_what_is_open_too(self):
        found = self.entries(P01, P02)
        self.assertEqual(of_kind(found, "unsettled"), [])
        # 22.93 + 0.00, the open sale and the one of P03.
        self.assertEqual(found.balances("receivable")["EUR"], micros("42.91"))

    def test_by_apple_s_word_alone(self):
        found = self.entries(P01, P02, P03, basis="apple")
        self.assertEqual(of_kind(found, "sales", "unsettled"), [])
        self.assertEqual(of_kind(found, "settlement")[:3], [
            (f"settlement {P01} EUR", RECEIVABLE, "22.93", "EUR"),
            (f"settlement {P01} EUR", KEPT, "16.03", "EUR"),
            (f"settlement {P01} EUR", SALES, "-38.96", "EUR"),
        ])
        self.assertEqual([row for row in of_kind(found, "settlement") if P02 in row[0]], [
            (f"settlement {P02} EUR", REFUNDS, "9.99", "EUR"),
            (f"settlement {P02} EUR", SALES, "-9.99", "EUR")])
        self.assertEqual(found.balances("receivable"),
                         {"EUR": micros("28.81"), "JPY": micros("955"), "USD": micros("6.99")})


@unittest.skipUnless(PUBLISHED.is_dir(), "the published reports are missing")
class PublishedMonth(unittest.TestCase):
    MONTH = "FY2014-P12"

    def test_three_payments_reach_the_bank_and_nothing_is_owed(self):
        for basis in ("ledger", "apple"):
            found = entries_of([], published(), basis=basis)
            self.assertEqual(of_kind(found, "payment"), [
                (f"payment {self.MONTH} 1", RECEIVABLE, "-33.15", "CHF"),
                (f"payment {self.MONTH} 1", BANK, "26.53", "EUR"),
                (f"payment {self.MONTH} 1", CONVERSION, "33.15", "CHF"),
                (f"payment {self.MONTH} 1", CONVERSION, "-26.53", "EUR"),
                (f"payment {self.MONTH} 2", RECEIVABLE, "-206.89", "EUR"),
                (f"payment {self.MONTH} 2", BANK, "206.89", "EUR"),
                (f"payment {self.MONTH} 3", RECEIVABLE, "-179", "JPY"),
                (f"payment {self.MONTH} 3", BANK, "1.16", "EUR"),
                (f"payment {self.MONTH} 3", CONVERSION, "-1.16", "EUR"),
                (f"payment {self.MONTH} 3", CONVERSION, "142", "JPY"),
                (f"payment {self.MONTH} 3", WITHHELD, "37", "JPY"),
            ])
            self.assertEqual(found.balances("bank"), {"EUR": micros("234.58")})
            self.assertEqual(found.balances("receivable"), {})

    def test_apps_are_sold_apart(self):
        for basis in ("ledger", "apple"):
            self.assertEqual(of_kind(entries_of([], published(), basis=basis), "settlement"), [
                (f"settlement {self.MONTH} {currency}", account, amount, currency)
                for currency, amounts in (("CHF", ("33.15", "17.85", "-51.00")),
                                          ("EUR", ("206.89", "132.94", "-339.83")),
                                          ("JPY", ("179", "76", "-255")))
                for account, amount in zip((RECEIVABLE, KEPT, APPS), amounts)])

    def test_the_day_is_the_expected_one_or_the_one_named(self):
        day = {month_from_name(self.MONTH): days_from_text("2014-11-03")}
        for paid_on, expected in (({}, "2014-10-30"), (day, "2014-11-03"),
                                  ({month_from_name(P01): 20_000}, "2014-10-30")):
            rows = rows_of(as_csv(entries_of([], published(), paid_on=paid_on)), "kind", "date")
            self.assertEqual({row[1] for row in rows if row[0] == "payment"}, {expected})


class Settlement(unittest.TestCase):
    # The ledger's line, Apple's row, and the postings of P01 by currency of the entry.
    OWN = {"price": "9.99", "share": "5.88"}
    CASES = {
        "a price that differs": (line("2025-10-10", "8.99"), sale(1, **OWN), [
            ("EUR", RECEIVABLE, "-3.11", "EUR"), ("EUR", KEPT, "4.11", "EUR"),
            ("EUR", DIFFERENCES, "-1.00", "EUR")]),
        "another currency: an entry in each": (line("2025-10-10", "8.99", "USD"), sale(1, **OWN), [
            ("EUR", RECEIVABLE, "5.88", "EUR"), ("EUR", KEPT, "4.11", "EUR"),
            ("EUR", DIFFERENCES, "-9.99", "EUR"),
            ("USD", RECEIVABLE, "-8.99", "USD"), ("USD", DIFFERENCES, "8.99", "USD")]),
        "another country": (line("2025-10-10", country="FR"), sale(1, **OWN), [
            ("EUR", RECEIVABLE, "-4.11", "EUR"), ("EUR", KEPT, "4.11", "EUR")]),
        "a share in another currency": (
            line("2025-10-10", "39.99", "PLN", "PL"),
            sale(1, "39.99", "PLN", "PL", Partner_Share="6.00", Extended_Partner_Share="6.00",
                 Partner_Share_Currency="USD"),
            [("PLN", RECEIVABLE, "-39.99", "PLN"), ("PLN", RECEIVABLE, "6.00", "USD"),
             ("PLN", CONVERSION, "39.99", "PLN"), ("PLN", CONVERSION, "-6.00", "USD")]),
        "an app": (line("2025-10-10", "0"), sale(1, **OWN, kind="1F"), [
            ("EUR", RECEIVABLE, "5.88", "EUR"), ("EUR", KEPT, "4.11", "EUR"), ("EUR", APPS, "-9.99", "EUR")]),
        "free, with a share": (line("2025-10-10", "0"), sale(1, "0", share="0.10"), [
            ("EUR", RECEIVABLE, "0.10", "EUR"), ("EUR", KEPT, "-0.10", "EUR")]),
        "a Return that nobody saw here": (line("2025-10-10", "0"), sale(-1, **OWN, flag="R"), [
            ("EUR", RECEIVABLE, "-5.88", "EUR"), ("EUR", KEPT, "-4.11", "EUR"),
            ("EUR", UNSEEN, "9.99", "EUR")]),
    }

    def test_differences_and_shares(self):
        for situation, (here, there, expected) in self.CASES.items():
            with self.subTest(situation):
                made = Imports()
                made.add(financial(P01, there))
                self.assertEqual(of_kind(entries_of([here], made), "settlement"), [
                    (f"settlement {P01} {of}", *posting) for of, *posting in expected])

    def test_rounding_is_posted_once_three_months_are_complete(self):
        for months, expected in (((P01, P02), []), ((P01, P02, P03), [
                (f"unsettled {P01} EUR", RECEIVABLE, "-0.000001", "EUR"),
                (f"unsettled {P01} EUR", DIFFERENCES, "0.000001", "EUR")])):
            made = Imports()
            made.add(financial(P01, sale(3, "3.333333", share="2.00")))
            for month in months[1:]:
                made.add(financial(month, sale(1, "1.00", product="other")))
            found = entries_of([line("2025-10-10", "3.333333", units=3, amount="10.00")], made)
            self.assertEqual(of_kind(found, "unsettled"), expected)


class Payments(unittest.TestCase):
    def test_taxes_and_adjustments_have_accounts_of_their_own(self):
        made = Imports()
        row = "Euro-Zone (EUR),1,0.50,5.88,5.88,0.30,-0.20,-1.00,5.48,0.90000,4.93,CHF"
        made.add(overview("October, 2025", row, ",,", ',,"4.93" CHF', columns=HEADER), name="report.csv")
        self.assertEqual(of_kind(entries_of([], made), "payment"), [
            (f"payment {P01} 1", RECEIVABLE, "-6.38", "EUR"), (f"payment {P01} 1", BANK, "4.93", "CHF"),
            (f"payment {P01} 1", CONVERSION, "-4.93", "CHF"), (f"payment {P01} 1", CONVERSION, "5.48", "EUR"),
            (f"payment {P01} 1", WITHHELD, "1.00", "EUR"), (f"payment {P01} 1", ADJUSTED, "0.20", "EUR"),
            (f"payment {P01} 1", INPUT, "-0.30", "EUR"),
        ])

    def test_in_one_currency_conversion_has_the_difference_alone(self):
        made = Imports()
        row = "Euro-Zone (EUR),1,0,5.88,5.88,0,0,0,5.88,1.00000,5.87,EUR"
        made.add(overview("October, 2025", row, ",,", ',,"5.87" EUR', columns=HEADER), name="report.csv")
        self.assertEqual(of_kind(entries_of([], made), "payment"), [
            (f"payment {P01} 1", RECEIVABLE, "-5.88", "EUR"), (f"payment {P01} 1", BANK, "5.87", "EUR"),
            (f"payment {P01} 1", CONVERSION, "0.01", "EUR")])

    def test_what_is_carried_is_no_payment(self):
        made = Imports()
        row = "Euro-Zone (EUR),1,0,5.88,5.88,0,0,0,5.88,1.00000,5.88,EUR"
        made.add(overview("October, 2025", row, columns=HEADER), name="report.csv")
        self.assertEqual(of_kind(entries_of([], made), "payment"), [])

    def test_the_tenth_row_comes_after_the_second(self):
        made = Imports()
        rows = [f"Region {at} (EUR),1,0,1.00,1.00,0,0,0,1.00,1.00000,1.00,EUR" for at in range(1, 12)]
        made.add(overview("October, 2025", *rows, ",,", ',,"11.00" EUR', columns=HEADER), name="report.csv")
        found = [row[0] for row in of_kind(entries_of([], made), "payment")][::2]
        self.assertEqual(found, [f"payment {P01} {at}" for at in range(1, 12)])


class Formats(unittest.TestCase):
    def entries(self, **options):
        made = Imports()
        made.add(financial(P01, sale(1, "9.99", share="5.88")))
        return entries_of([], made, **options)

    def test_hledger(self):
        self.assertEqual(as_hledger(self.entries(accounts={"unseen": "Income:Other apps"})), (
            f"account {RECEIVABLE}\naccount {KEPT}\naccount Income:Other apps\n"
            "commodity EUR\n  format 1000.000000 EUR\n\n"
            f"2025-11-01 * App Store | settlement {P01} EUR\n"
            f"  {RECEIVABLE}  5.88 EUR\n  {KEPT}  4.11 EUR\n  Income:Other apps  -9.99 EUR\n\n"))

    def test_beancount(self):
        self.assertEqual(as_beancount(self.entries()), (
            f"2025-11-01 open {RECEIVABLE}\n2025-11-01 open {KEPT}\n2025-11-01 open {UNSEEN}\n\n"
            f'2025-11-01 * "App Store" "settlement {P01} EUR"\n'
            f"  {RECEIVABLE}  5.88 EUR\n  {KEPT}  4.11 EUR\n  {UNSEEN}  -9.99 EUR\n\n"))

    def test_two_names_with_one_account_are_one_posting(self):
        self.assertEqual(of_kind(self.entries(accounts={"kept": "A:B", "unseen": "A:B"}), "settlement"), [
            (f"settlement {P01} EUR", "A:B", "-5.88", "EUR"),
            (f"settlement {P01} EUR", RECEIVABLE, "5.88", "EUR")])

    def test_without_events_there_is_nothing(self):
        found = entries_of([], Imports())
        self.assertEqual((as_hledger(found), as_beancount(found)), ("", ""))


class Drawn(unittest.TestCase):
    """Of a drawn year in each form."""

    def test_entries_balance_sales_are_the_revenue_and_the_receivable_is_what_the_rules_say(self):
        seed = random.randrange(1 << 32)
        print(f"entries: seed {seed}")
        book = self._book(seed)
        sold = list(ledger_lines(book))
        for mode in (*generate_settlement.MODES, generate_settlement.MIXED):
            made, files = generate_settlement.Reports(seed, mode, sold), Imports()
            for name, text in (made.files() | made.overviews()).items():
                files.add(text, name)
            book.files = files.files
            parts = reconciled(sold, files.files)
            entries = Entries(book, files.files, parts, "Asia/Kolkata")
            with self.subTest(mode=mode, seed=seed):
                self.assertEqual(entries.balances("receivable"), receivable_balances(files.files, parts))
                self.assertEqual(self._sales(entries), self._revenue(book, "Asia/Kolkata"))
                self.assertEqual(
                    Entries(book, files.files, parts, basis="apple").balances("receivable"),
                    receivable_balances(files.files, [part for part in parts if part.ledger is None]))

    def _book(self, seed):
        sales = Sales(seed)
        lines = sales.orders.resolve(sales.lines(120, planted_purchases()), Signer())
        with tempfile.TemporaryDirectory() as temporary:
            path = pathlib.Path(temporary, "sales.ndjson")
            path.write_text("".join(one + "\n" for one in lines), encoding="utf-8")
            ledger = StandInLedger(temporary)
            ledger.fill([path])
        return ledger.book()

    def _sales(self, entries):
        return {(period_name(entry.day, "day"), currency): amount
                for entry, postings in entries.postings() if entry.kind == "sales"
                for account, currency, amount in postings if account == RECEIVABLE}

    def _revenue(self, book, zone):
        _, body = reports.revenue(book, reports.Options(by=("period",), period="day", timezone=zone))
        return {(row[0], row[1]): micros(row[8]) for row in body if row[1] and micros(row[8])}


if __name__ == "__main__":
    unittest.main()
