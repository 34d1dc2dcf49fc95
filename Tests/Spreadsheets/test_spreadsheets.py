# Excel files, read back by two other programs: openpyxl, and LibreOffice without a window.
"""Each report's figures, times and texts must be those of its JSON. LEDGERCTL names the program."""

import csv
import datetime
import decimal
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
import zoneinfo

try:
    import openpyxl
except ImportError:
    openpyxl = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Oracle"))

from compare import Ledger  # noqa: E402
from generate_cases import write_cases  # noqa: E402

LEDGERCTL = os.environ.get("LEDGERCTL")
SOFFICE = shutil.which("soffice")
UTC = datetime.timezone.utc

# Each report with its options, and the zone of its times.
REPORTS = [
    ("revenue", "UTC"),
    ("revenue --by period --period day --timezone America/St_Johns", "America/St_Johns"),
    ("revenue --by period,country --environment all --timezone Europe/Berlin", "Europe/Berlin"),
    ("revenue --by product,basis,trust --in EUR --environment all", "UTC"),
    ("revenue --by product,basis,trust --in EUR --environment all --amounts exact", "UTC"),
    ("revenue --by period --period week", "UTC"),
    ("revenue --from 1990-01-01 --to 1990-01-02", "UTC"),
    ("journal --environment all --include-pending --timezone Europe/Berlin", "Europe/Berlin"),
    ("journal --in USD --timezone Australia/Lord_Howe", "Australia/Lord_Howe"),
    ("journal --in USD --amounts exact", "UTC"),
    ("sales --environment all --timezone Asia/Kolkata", "Asia/Kolkata"),
    ("exceptions --environment all", "UTC"),
    ("receipts --environment all", "UTC"),
    ("users --environment all", "UTC"),
    ("journal --environment all --columns date,sale_key,amount,currency --sort amount --top 3", "UTC"),
    ("revenue --by product,country --kind regular --environment all", "UTC"),
    ("subscriptions --environment all", "UTC"),
    ("subscriptions --by month --environment all", "UTC"),
    ("subscriptions --by month --in EUR --environment all --amounts exact", "UTC"),
]
# As LibreOffice shows cells: commas, quotes, UTF-8, the first line, English, as shown, all sheets.
SHOWN = "csv:Text - txt - csv (StarCalc):44,34,76,1,,1033,false,true,false,false,false,-1"
EXACT = "_exact"
AMOUNTS = {
    "gross", "returns", "reversals", "net", "unit_price", "amount", "original_amount", "price", "mrr",
}
ROUNDED = ("revenue", "journal", "sales", "users", "subscriptions")


def unescaped(text):
    """A text as Excel shows it; openpyxl leaves its escapes as they are."""
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda match: chr(int(match[1], 16)), text)


def local(text, zone):
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment.astimezone(zoneinfo.ZoneInfo(zone)).replace(tzinfo=None)


def plain(value):
    """A value of JSON as a text cell has it."""
    if isinstance(value, list):
        return " ".join(str(part) for part in value)
    return "" if value is None else str(value)


# A report of Apple's: spaces are tabs, underscores spaces.
APPLE_REPORT = """\
Start_Date End_Date Vendor_Identifier Quantity Partner_Share Extended_Partner_Share Partner_Share_Currency \
Sales_or_Return Product_Type_Identifier Country_Of_Sale Customer_Price Customer_Currency
09/28/2025 11/01/2025 pro.month 2 5.88 11.76 EUR S IAY DE 9.99 EUR
"""


@unittest.skipUnless(LEDGERCTL, "LEDGERCTL is not set")
@unittest.skipUnless(openpyxl, "openpyxl is not installed")
class Spreadsheets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="ledgerctl-xlsx-")
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name)
        cls.ledger = Ledger(LEDGERCTL, cls.path / "ledger")
        cls.ledger.fill(*write_cases(cls.path, 19, 150, True))

    def export(self, words, *options):
        return self.ledger.run(
            "--ledger", self.ledger.directory, "export", *words.split(), *options)

    def made(self, words, *options):
        """The Excel file of a report, and the report as JSON, with amounts as Excel files have them."""
        path = self.path / "report.xlsx"
        self.export(words, "-o", str(path), *options)
        is_rounded = words.split()[0] in ROUNDED and "--amounts" not in words
        amounts = ("--amounts", "minor") if is_rounded else ()
        return path, json.loads(self.export(words, "--format", "json", *amounts).stdout)

    def check_rows(self, words, zone):
        path, report = self.made(words)
        book = openpyxl.load_workbook(path)
        self.assertEqual(book.sheetnames, [words.split()[0], "About"])
        sheet = book.worksheets[0]
        self.assertEqual(sheet.freeze_panes, "A2")
        rows = list(sheet.iter_rows())
        names = [cell.value for cell in rows[0]]
        self.assertEqual(sheet.auto_filter.ref, sheet.dimensions)
        self.assertEqual(len(rows) - 1, len(report["rows"]))
        for cells, row in zip(rows[1:], report["rows"]):
            found = dict(zip(names, cells))
            self.assertEqual([name for name in names if not name.endswith(EXACT)], list(row))
            for name, value in row.items():
                with self.subTest(words=words, name=name, value=value):
                    self.check_cell(found, name, value, zone)
        return book, report

    def check_cell(self, cells, name, value, zone):
        cell = cells[name]
        self.assertNotEqual(cell.data_type, "f")
        self.assertIsNone(cell.hyperlink)
        if self.is_amount(cells, name):
            self.check_amount(cell, cells.get(name + EXACT), value)
        elif value is None or value == "" or value == []:
            self.assertIsNone(cell.value)
        elif isinstance(value, bool):
            self.assertIs(cell.value, value)
        elif isinstance(value, int):
            self.assertEqual((cell.data_type, cell.value), ("n", value))
        elif name in ("period", "month") and re.fullmatch(r"\d{4}-\d\d(-\d\d)?", value):
            day = value if len(value) == 10 else value + "-01"
            self.assertEqual(cell.value, datetime.datetime.fromisoformat(day))
            self.assertEqual(cell.number_format, "yyyy-mm-dd" if day == value else "yyyy-mm")
        elif re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", plain(value)):
            self.assertEqual(cell.number_format, "yyyy-mm-dd hh:mm:ss")
            difference = abs(cell.value - local(value, zone))
            self.assertLess(difference, datetime.timedelta(milliseconds=2))
        else:
            self.assertIn(cell.data_type, ("s", "inlineStr"))
            self.assertEqual(unescaped(cell.value), plain(value))

    def is_amount(self, cells, name):
        """Whether a column has amounts; those of users are texts."""
        return name + EXACT in cells or name in AMOUNTS and "receipts" not in cells

    def check_amount(self, number, exact, value):
        if value is None:
            self.assertIsNone(number.value)
        if exact is not None:
            self.assertEqual(exact.value, value)
        if value is None:
            return
        self.assertEqual(number.data_type, "n")
        self.assertEqual(float(number.value), float(value))
        decimals = len(value.partition(".")[2])
        self.assertEqual(number.number_format, "#,##0" + ("." + "0" * decimals if decimals else ""))

    def test_openpyxl_reads_each_report_as_it_is_in_json(self):
        for words, zone in REPORTS:
            with self.subTest(words=words):
                self.check_rows(words, zone)

    def test_the_second_sheet_says_what_the_figures_rest_on(self):
        book, report = self.check_rows("revenue --by country --in EUR --environment all", "UTC")
        rows = [[cell.value for cell in row] for row in book["About"].iter_rows()]
        facts = {row[0]: row[1] for row in rows}
        self.assertEqual(facts["Ledger"], report["ledger"]["origin"])
        self.assertEqual(facts["Ledger id"], report["ledger"]["id"])
        self.assertEqual(facts["As of position"], str(report["head"]["size"] - 1))
        self.assertEqual(facts["Root"], report["head"]["root"])
        self.assertEqual(facts["Times on the first sheet are in"], "UTC")
        self.assertEqual(facts["Filter by"], "country")
        self.assertEqual(facts["Filter in"], "EUR")
        self.assertEqual(facts["Rows"], str(len(report["rows"])))
        oldest = report["oldest_rate"]
        self.assertEqual(
            facts["Oldest rate"], f"{oldest['base']} to {oldest['quote']} of {oldest['date']}")
        self.assertEqual(rows[-1][0], report["note"])
        for name, count in report["exceptions"].items():
            self.assertEqual(facts[name], count)
        start = next(n for n, row in enumerate(rows) if row[0] == "Totals by currency")
        names = rows[start]
        for row, total in zip(rows[start + 1:], report["totals"]):
            found = dict(zip(names, row))
            self.assertEqual(row[0], total.pop("currency") or "without currency")
            for name, value in total.items():
                if isinstance(value, str):
                    self.assertEqual(float(found[name]), float(value))
                else:
                    self.assertEqual(found[name], value)

    @unittest.skipUnless(SOFFICE, "LibreOffice is not installed")
    def test_libreoffice_shows_each_report_as_it_is_in_json(self):
        for number, (words, zone) in enumerate(REPORTS):
            with self.subTest(words=words):
                self.check_shown(number, words, zone)

    def check_shown(self, number, words, zone):
        path, report = self.made(words)
        source = path.rename(self.path / f"shown{number}.xlsx")
        profile = (self.path / "profile").as_uri()
        target = self.path / "shown"
        subprocess.run(
            [SOFFICE, f"-env:UserInstallation={profile}", "--headless", "--convert-to", SHOWN,
             "--outdir", str(target), str(source)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        name = words.split()[0]
        text = (target / f"shown{number}-{name}.csv").read_text(encoding="utf-8")
        rows = list(csv.reader(text.splitlines(keepends=True)))
        names = rows[0]
        self.assertEqual(len(rows) - 1, len(report["rows"]))
        for shown, row in zip(rows[1:], report["rows"]):
            found = dict(zip(names, shown))
            for column, value in row.items():
                with self.subTest(words=words, column=column, value=value):
                    self.check_shown_cell(found, column, value, zone)

    def check_shown_cell(self, cells, column, value, zone):
        shown = cells[column]
        if self.is_amount(cells, column):
            self.assertEqual(cells.get(column + EXACT, plain(value)), plain(value))
            if value is not None:
                number = decimal.Decimal(shown.replace(",", ""))
                self.assertEqual(number, decimal.Decimal(value))
        elif isinstance(value, bool):
            self.assertEqual(shown, str(value).upper())
        elif re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", plain(value)):
            difference = datetime.datetime.fromisoformat(shown) - local(value, zone)
            self.assertLessEqual(abs(difference), datetime.timedelta(seconds=1))
        elif column in ("period", "month") and re.fullmatch(r"\d{4}-\d\d", value):
            # LibreOffice writes no month without a day into CSV.
            self.assertEqual(shown, f"{value[5:]}/01/{value[:4]}")
        else:
            # CSV has no carriage return of its own inside a cell, and LibreOffice drops a 0.
            expected = plain(value).replace("\r", "\n").replace("\x00", "")
            self.assertEqual(shown.replace("\r", "\n").replace("\x00", ""), expected)

    def test_a_third_sheet_of_reconcile_leads_from_gross_to_the_bank(self):
        path = self.path / "settled"
        ledger = Ledger(LEDGERCTL, path)
        ledger.run("init", str(path), "--origin", "example.com/settled")
        report = self.path / "85012345_0926_ZZ.txt"
        report.write_text(
            APPLE_REPORT.replace(" ", "\t").replace("_", " ") + "Total_Rows\t1\n", encoding="utf-8")
        place = ("--ledger", str(path))
        ledger.run(*place, "settlement", "import", str(report))
        made = self.path / "reconcile.xlsx"
        ledger.run(*place, "export", "reconcile", "-o", str(made), "--manifest")
        ledger.run(*place, "audit", "report", f"{made}.manifest.json")
        book = openpyxl.load_workbook(made)
        self.assertEqual(book.sheetnames, ["reconcile", "About", "From gross to bank"])
        sheet = book.worksheets[2]
        steps = [tuple(cell.value for cell in row[:2]) for row in sheet.iter_rows(max_row=6)]
        self.assertEqual(steps, [
            ("FY2026-P01, EUR", None), ("Step", "Amount"), ("Without a receipt here", 19.98),
            ("Gross of Apple’s reports", 19.98), ("Kept by Apple: commission and taxes", -8.22),
            ("Share", 11.76)])
        # What the chart stacks: a part that is not seen, then what each step adds, takes, or comes to.
        parts = [tuple(cell.value for cell in row) for row in sheet["M3:P6"]]
        self.assertEqual(parts, [(0, 19.98, 0, 0), (0, 0, 0, 19.98), (11.76, 0, 8.22, 0), (0, 0, 0, 11.76)])
        self.assertEqual(len(sheet._charts), 1)
        self.assertEqual(
            [cell.value for cell in list(sheet.iter_rows())[-1][:8]],
            ["FY2026-P01", "complete", "EUR", None, None, 19.98, None, 2])

    def test_totals_stand_below_the_rows(self):
        words = "revenue --by country --environment all"
        path, report = self.made(words, "--total")
        rows = [[cell.value for cell in row] for row in openpyxl.load_workbook(path).worksheets[0]]
        totals = [dict(zip(rows[0], row)) for row in rows[1 + len(report["rows"]):]]
        self.assertEqual(len(totals), len(report["totals"]))
        for found, total in zip(totals, report["totals"]):
            self.assertEqual(found["country_code"], "total")
            self.assertEqual(found["currency"], total["currency"])
            self.assertEqual(None if total["net"] is None else float(total["net"]), found["net"])
            self.assertEqual(found["units"], total["units"])

    def test_a_query_has_its_rows_and_says_what_they_rest_on(self):
        path = self.path / "query.xlsx"
        sql = "SELECT sale_key, quantity, 0.5 AS half, NULL AS missing FROM sale_view ORDER BY 1, 2"
        place = ("--ledger", self.ledger.directory, "query", sql)
        self.ledger.run(*place, "-o", str(path))
        report = json.loads(self.ledger.run(*place, "--format", "json").stdout)
        book = openpyxl.load_workbook(path)
        rows = [[cell.value for cell in row] for row in book["query"].iter_rows()]
        self.assertEqual(rows[0], ["sale_key", "quantity", "half", "missing"])
        found = [[unescaped(row[0]), *row[1:]] for row in rows[1:]]
        self.assertEqual(found, [list(row.values()) for row in report["rows"]])
        facts = {row[0].value: row[1].value for row in book["About"].iter_rows()}
        self.assertEqual(facts["Root"], report["head"]["root"])

    def test_equal_input_gives_equal_bytes_that_an_audit_makes_again(self):
        first, second = self.path / "first.xlsx", self.path / "second.xlsx"
        for path in (first, second):
            self.export("journal --environment all", "-o", str(path), "--manifest")
        self.assertEqual(first.read_bytes(), second.read_bytes())
        manifest = first.with_name("first.xlsx.manifest.json")
        library = json.loads(manifest.read_text())["spreadsheet_library"]
        self.assertRegex(library, r"^libxlsxwriter \d")
        place = ("--ledger", self.ledger.directory)
        self.ledger.run(*place, "audit", "report", str(manifest))
        data = bytearray(first.read_bytes())
        data[len(data) // 2] ^= 1
        first.write_bytes(data)
        done = self.ledger.run(*place, "audit", "report", str(manifest), allowed=(21,))
        self.assertIn(b"its bytes do not follow from the log", done.stderr)

    def test_a_file_of_other_libraries_is_compared_cell_by_cell(self):
        """They may write the same parts, compressed differently."""
        path = self.path / "earlier.xlsx"
        manifest = path.with_name("earlier.xlsx.manifest.json")
        place = ("--ledger", self.ledger.directory)

        def rewrite(change):
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
                for name, content in whole:
                    info = zipfile.ZipInfo(name)
                    target.writestr(info, change(name, content), zipfile.ZIP_DEFLATED)
            described = dict(said, bytes=path.stat().st_size)
            described["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
            manifest.write_text(json.dumps(described))

        self.export("journal --environment all", "-o", str(path), "--manifest")
        said = json.loads(manifest.read_text())
        self.assertEqual(said["spreadsheet_form"], 3)
        said.update(spreadsheet_library="libxlsxwriter 0.1, zlib 1")
        with zipfile.ZipFile(path) as source:
            whole = [(name, source.read(name)) for name in source.namelist()]
        rewrite(lambda _, content: content)
        done = self.ledger.run(*place, "audit", "report", str(manifest))
        self.assertIn(b": the same cells in another form of Excel files", done.stdout)
        self.assertIn(b"libxlsxwriter 0.1, zlib 1, this program libxlsxwriter ", done.stderr)
        for name in ("xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"):
            rewrite(lambda part, content: content.replace(b">9.99<", b">9.98<").replace(
                b"<t>Ledger<", b"<t>Legend<") if part == name else content)
            done = self.ledger.run(*place, "audit", "report", str(manifest), allowed=(21,))
            self.assertIn(b"its cells do not follow from the log", done.stderr)
        rewrite(lambda _, content: content)
        path.write_bytes(path.read_bytes()[:-1])
        self.ledger.run(*place, "audit", "report", str(manifest), allowed=(21,))

    def test_the_file_is_a_whole_zip_file_and_nothing_else_stays(self):
        folder = self.path / "temporary"
        folder.mkdir()
        path = self.path / "whole.xlsx"
        environment = dict(os.environ, TMPDIR=str(folder))
        subprocess.run(
            [LEDGERCTL, "--ledger", self.ledger.directory, "export", "sales", "-o", str(path)],
            env=environment, stderr=subprocess.DEVNULL, check=True)
        self.assertIsNone(zipfile.ZipFile(path).testzip())
        self.assertEqual(list(folder.iterdir()), [])

    def test_a_terminal_or_a_pipe_gets_no_excel_file(self):
        for arguments in (["--format", "xlsx"], ["--format", "xlsx", "-o", "-"]):
            done = self.ledger.run("export", "revenue", *arguments, allowed=(2,))
            self.assertEqual(done.stdout, b"")
            self.assertIn(b"--format xlsx: requires --output FILE", done.stderr)


if __name__ == "__main__":
    unittest.main()
