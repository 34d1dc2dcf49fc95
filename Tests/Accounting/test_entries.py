# Entries of many sales in accounting programs: hledger and Beancount take them, and count what the CSV and
# the revenue say. The published month leaves nothing to receive.
#
# LEDGERCTL names the program, ENTRY_SALES how many sales there are, ENTRY_SEED which.
import os
import pathlib
import re
import tempfile
import unittest
from decimal import Decimal

import accounting
from accounting import ENDINGS, balances_of_csv, check, export, rows, sums

SALES = int(os.environ.get("ENTRY_SALES", "2000"))
SEED = int(os.environ.get("ENTRY_SEED", "1"))
PAID_ON = "FY2026-P02=2026-01-05,FY2026-P01=2026-01-05"
# Two accounts become one; of the other names each is one that its program reads, though not an obvious one.
ACCOUNTS = {
    "hledger": """\
bank = Assets:1200 Bank (EUR), main = all
unseen = Income:Apple:Sales
kept = Expenses:Provision & Steuern | "Apple" 30 %
conversion = Währungen
""",
    "beancount": """\
bank = Assets:1200:Giro-1
unseen = Income:Apple:Sales
kept = Expenses:Übrige-Kosten
conversion = Equity:Wechsel-換算
""",
}
# Journals that have postings of their own to an account of the entries.
OWN = {
    "hledger": """\
account Assets:Bank
account Equity:Start
commodity 1000.00 EUR

2025-01-01 * Start
  Assets:Bank  10.00 EUR
  Equity:Start

include entries.journal
""",
    "beancount": """\
2025-01-01 open Assets:Bank
2025-01-01 open Equity:Start

2025-01-01 * "Start"
  Assets:Bank  10.00 EUR
  Equity:Start

include "entries.beancount"
""",
}
CASES = [
    [*basis, *paid_on, *accounts]
    for basis in ([], ["--basis", "apple"])
    for paid_on in ([], ["--paid-on", PAID_ON])
    for accounts in ([], ["--accounts"])
] + [["--timezone", "America/St_Johns"]]


def needs(test, format):
    program = accounting.PROGRAMS[format]
    if not accounting.is_installed(program):
        test.skipTest(f"{program} is not installed")


class EntriesOfSales(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"seed {SEED}, {SALES} sales", flush=True)
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.ledger = accounting.ledger_of_sales(cls.folder, SEED, SALES)
        for format, text in ACCOUNTS.items():
            (cls.folder / f"{format}.txt").write_text(text, encoding="utf-8")

    def entries(self, ending, *options):
        return export(self.ledger, self.folder / f"entries{ending}", "entries", *options)

    def expect_counted(self, format):
        """The format's program takes the entries of every case, and its balances are the sums of the CSV."""
        needs(self, format)
        for case in CASES:
            options = [*case, self.folder / f"{format}.txt"] if "--accounts" in case else case
            with self.subTest(options=" ".join(case)):
                path = self.entries(ENDINGS[format], *options)
                self.assertEqual(check(format, path), (0, ""))
                expected = balances_of_csv(self.entries(".csv", *options))
                self.assertGreater(len(expected), 30)
                self.assertEqual(accounting.BALANCES_OF[format](path), expected)

    def test_hledger_takes_all_forms_and_counts_what_the_csv_says(self):
        self.expect_counted("hledger")

    def test_beancount_takes_all_forms_and_counts_what_the_csv_says(self):
        self.expect_counted("beancount")

    def test_every_entry_adds_up_to_0_in_each_currency_to_the_last_digit(self):
        for case in CASES:
            if "--accounts" not in case:
                self.assertEqual(accounting.unbalanced(self.entries(".csv", *case)), {}, case)

    def test_accounts_by_day_are_the_revenue_by_day(self):
        needs(self, "hledger")
        for zone in ("UTC", "America/St_Johns", "Pacific/Apia"):
            place = ["--timezone", zone]
            path = self.entries(".journal", *place)
            revenue = [row for row in rows(export(
                self.ledger, self.folder / "revenue.csv", "revenue", "--by", "period", "--period", "day",
                *place)) if row["currency"]]
            for account, expected, query in (
                ("Income:Apple:Sales", lambda row: -Decimal(row["gross"]), []),
                ("Income:Apple:Refunds", lambda row: Decimal(row["returns"]) - Decimal(row["reversals"]), []),
                ("Assets:Apple:Receivable", lambda row: Decimal(row["net"]), ["note:^sales "]),
            ):
                with self.subTest(zone=zone, account=account):
                    of_days = sums(((row["period"], row["currency"]), expected(row)) for row in revenue)
                    self.assertTrue(of_days)
                    self.assertEqual(accounting.days_of_hledger(path, account, *query), of_days)

    def test_a_program_refuses_what_is_not_declared_or_does_not_add_up(self):
        for format, pattern, replacement in (
            ("hledger", r"account Income:Apple:Sales\n", ""),
            ("hledger", r"commodity EUR\n.*\n", ""),
            # A millionth; Beancount tolerates half of the last digit that an entry has.
            ("hledger", r"(Income:Apple:Sales  \S+) (\S+)\n", r"\1 \2\n  Equity:Conversion  0.000001 \2\n"),
            ("beancount", r"open Income:Apple:Sales\n", "open Income:Apple:Others\n"),
            ("beancount", r"(Income:Apple:Sales  \S+) (\S+)\n", r"\1 \2\n  Equity:Conversion  0.01 \2\n"),
        ):
            with self.subTest(format=format, pattern=pattern):
                needs(self, format)
                text = self.entries(ENDINGS[format]).read_text(encoding="utf-8")
                changed, count = re.subn(pattern, replacement, text, count=1)
                self.assertEqual(count, 1)
                path = self.folder / f"changed{ENDINGS[format]}"
                path.write_text(changed, encoding="utf-8")
                status, message = check(format, path)
                self.assertNotEqual(status, 0)
                self.assertIn(path.name, message)

    def test_a_journal_of_ones_own_includes_the_entries(self):
        for format, own in OWN.items():
            with self.subTest(format=format):
                needs(self, format)
                path = self.entries(ENDINGS[format])
                expected = accounting.BALANCES_OF[format](path)
                expected["Assets:Bank", "EUR"] += 10
                expected["Equity:Start", "EUR"] = Decimal(-10)
                if format == "beancount":
                    # It takes one `open` of an account.
                    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
                    path.write_text("".join(line for line in lines if " open Assets:Bank\n" not in line))
                own_path = self.folder / f"own{ENDINGS[format]}"
                own_path.write_text(own, encoding="utf-8")
                self.assertEqual(check(format, own_path), (0, ""))
                self.assertEqual(accounting.BALANCES_OF[format](own_path), expected)


@unittest.skipUnless(accounting.PUBLISHED.is_dir(), "no ../shared/fixtures here")
class EntriesOfAPublishedMonth(unittest.TestCase):
    def test_the_bank_has_what_apple_paid_and_nothing_is_left_to_receive(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            ledger = accounting.published_ledger(folder)
            for format, ending in ENDINGS.items():
                for basis in ("ledger", "apple"):
                    with self.subTest(format=format, basis=basis):
                        needs(self, format)
                        path = export(ledger, folder / f"month{ending}", "entries", "--basis", basis)
                        self.assertEqual(check(format, path), (0, ""))
                        self.assertEqual(
                            {key: amount for key, amount in accounting.BALANCES_OF[format](path).items()
                             if key[0].startswith("Assets:")},
                            {("Assets:Bank", "EUR"): Decimal("234.58")})


if __name__ == "__main__":
    unittest.main()
