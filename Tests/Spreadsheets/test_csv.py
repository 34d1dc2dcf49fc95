# CSV in the form of a German spreadsheet, opened by LibreOffice in its German locale.
"""Numbers are numbers, dates are dates, and no text is a formula. LEDGERCTL names the program."""

import datetime
import decimal
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import zoneinfo

try:
    import openpyxl
except ImportError:
    openpyxl = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOP = ROOT / "Tests/ledgerctlTests/Transcripts/shop.sh"
LEDGERCTL = os.environ.get("LEDGERCTL")
SOFFICE = shutil.which("soffice")

# The shop's history; then a purchase at a quarter of a second, of a product whose name looks like a formula,
# at a price of many digits.
HISTORY = r"""
. "$SHOP"
ledgerctl init shop --origin example.com/shop > init.out
shop_history > shop.ndjson
odd=$(row '=1+1;x' 7007 7007 2019-06-01T09:00:00Z | sed 's/000",/250",/g')
more=',"country_code":"DE","user_identifier":"+49"'
more="$more,\"metadata\":{\"price\":\"1234567.891234\",\"currency\":\"EUR\"}"
line 20 2019-06-01T10:00:00Z "$odd" "$more" >> shop.ndjson
ledgerctl import --register-apps shop.ndjson --ledger shop > import.out
"""

GERMAN = ["--csv-delimiter", ";", "--csv-decimal", ",", "--csv-dates", "spreadsheet"]
COLUMNS = "date,line,sale_key,product_id,user_identifier,quantity,currency,amount"
# Semicolon, double quote, UTF-8, from line 1, columns as they are, German, quoted cells too, special numbers.
FILTER = "Text - txt - csv (StarCalc):59,34,76,1,,1031,false,true"


@unittest.skipUnless(LEDGERCTL, "LEDGERCTL is not set")
@unittest.skipUnless(SOFFICE, "LibreOffice is not installed")
@unittest.skipUnless(openpyxl, "openpyxl is not installed")
class GermanSpreadsheet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ledgerctl-csv-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        programs = str(pathlib.Path(LEDGERCTL).resolve().parent)
        cls.environment = dict(os.environ, SHOP=str(SHOP), PATH=programs + ":" + os.environ["PATH"])
        cls.run_program(["sh", "-ec", HISTORY])

    @classmethod
    def run_program(cls, arguments):
        done = subprocess.run(
            arguments, cwd=cls.path, env=cls.environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{arguments[:3]}: {done.stderr.decode()}")
        return done.stdout

    def export(self, *options):
        return self.run_program([LEDGERCTL, "export", "journal", "--ledger", "shop", *options])

    def opened(self, name):
        """The cells of a CSV file as LibreOffice reads them."""
        profile = (self.path / "profile").as_uri()
        self.run_program([
            SOFFICE, f"-env:UserInstallation={profile}", "--headless", f"--infilter={FILTER}",
            "--convert-to", "xlsx", "--outdir", str(self.path / "opened"), name])
        book = openpyxl.load_workbook(self.path / "opened" / (pathlib.Path(name).stem + ".xlsx"))
        return [list(row) for row in book.active.iter_rows()]

    def check(self, zone, *options):
        self.export("--columns", COLUMNS, "-o", "journal.csv", *GERMAN, *options)
        rows = self.opened("journal.csv")
        expected = json.loads(self.export("--format", "json", *options))["rows"]
        self.assertEqual([cell.value for cell in rows[0]], COLUMNS.split(","))
        self.assertEqual(len(rows) - 1, len(expected))
        for cells, line in zip(rows[1:], expected):
            found = dict(zip(COLUMNS.split(","), cells))
            moment = datetime.datetime.fromisoformat(line["date"].replace("Z", "+00:00"))
            local = moment.astimezone(zone).replace(tzinfo=None)
            self.assertEqual(found["date"].data_type, "d", found["date"].value)
            self.assertLess(abs(found["date"].value - local), datetime.timedelta(milliseconds=2))
            self.assertEqual(found["quantity"].value, line["quantity"])
            if line["amount"] is None:
                self.assertIsNone(found["amount"].value)
            else:
                self.assertEqual(found["amount"].data_type, "n", found["amount"].value)
                amount = decimal.Decimal(repr(found["amount"].value))
                self.assertEqual(amount, decimal.Decimal(line["amount"]))
            for name in ("line", "product_id"):
                self.assertEqual(found[name].data_type, "s")
        return rows

    def test_figures_are_numbers_and_dates_are_dates(self):
        rows = self.check(zoneinfo.ZoneInfo("Europe/Berlin"), "--timezone", "Europe/Berlin")
        self.assertEqual(len(rows), 10)

    def test_the_zone_of_the_report_is_the_zone_of_its_dates(self):
        self.check(zoneinfo.ZoneInfo("UTC"))
        self.check(zoneinfo.ZoneInfo("America/New_York"), "--timezone", "America/New_York")

    def test_what_looks_like_a_formula_stays_text(self):
        self.export("--columns", COLUMNS, "-o", "hostile.csv", *GERMAN)
        last = self.opened("hostile.csv")[-1]
        self.assertEqual([cell.data_type for cell in last[3:5]], ["s", "s"])
        self.assertEqual([cell.value for cell in last[3:5]], ["'=1+1;x", "'+49"])


if __name__ == "__main__":
    unittest.main()
