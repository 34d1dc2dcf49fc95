# The recipes of docs/reports.md, each run as written, and their figures against the program's.
#
# LEDGERCTL names the program.
import base64
import hashlib
import importlib.util
import json
import re
import shutil
import sqlite3
import unittest

from shop import ROOT, ShopTests

PAGE = ROOT / "docs/reports.md"


def recipes():
    """The commands below each bold heading of the section, by the heading's first words."""
    text = PAGE.read_text().split("### Recipes")[1].split("\n## ")[0]
    found = {}
    for title, commands in re.findall(r"\*\*(.*?)\*\*.*?```sh\n(.*?)```", text, re.DOTALL):
        found[title] = commands
    return found


def needs(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class RecipeTests(ShopTests):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.recipes = recipes()

    def run_recipe(self, title):
        found = [commands for name, commands in self.recipes.items() if name.startswith(title)]
        self.assertEqual(len(found), 1, title)
        return self.shop.sh(found[0])

    def nets(self, environment="Production"):
        """The journal's sums by currency, as the program totals them."""
        report = json.loads(
            self.shop.export(f"revenue --environment {environment} --format json"))
        return {total["currency"]: total["net"] for total in report["totals"] if total["currency"]}

    def test_every_recipe_has_a_test(self):
        tested = {"Parquet", "Datasette", "pandas", "Straight"}
        self.assertEqual({re.split(r"[ ,]", title)[0] for title in self.recipes}, tested)

    @needs("duckdb")
    def test_parquet(self):
        printed = self.run_recipe("Parquet")
        sums = dict(re.findall(r"\('(\w+)', Decimal\('([-0-9.]+)'\)\)", printed))
        expected = self.nets("all")
        self.assertEqual(set(sums), set(expected))
        for currency, net in expected.items():
            self.assertEqual(float(sums[currency]), float(net))
        self.assertTrue((self.shop.folder / "journal.parquet").stat().st_size > 0)

    @needs("duckdb", "pyarrow")
    def test_the_parquet_file_has_exact_types_and_all_rows(self):
        import pyarrow.parquet

        self.run_recipe("Parquet")
        table = pyarrow.parquet.read_table(self.shop.folder / "journal.parquet")
        types = {field.name: str(field.type) for field in table.schema}
        self.assertEqual(types["amount"], "decimal128(38, 6)")
        self.assertEqual(types["transaction_id"], "string")
        rows = json.loads(self.shop.export("journal --environment all --format json"))["rows"]
        self.assertEqual(table.num_rows, len(rows))

    @needs("datasette")
    def test_datasette(self):
        if shutil.which("datasette") is None:
            self.skipTest("datasette is not on the path")
        rows = json.loads(self.run_recipe("Datasette"))
        self.assertEqual(len(rows), 2)
        self.assertNotIn("user_identifier", rows[0])
        self.assertRegex(rows[0]["amount"], r"^\d+\.\d\d$")

    @needs("pandas")
    def test_pandas(self):
        printed = self.run_recipe("pandas")
        self.assertIn("9.99", printed)
        sums = {}
        for line in printed.splitlines():
            cells = line.split()
            if len(cells) >= 2 and re.fullmatch(r"[A-Z]{3}", cells[-2]):
                sums[cells[-2]] = sums.get(cells[-2], 0) + round(float(cells[-1]) * 100)
        for currency, net in self.nets().items():
            self.assertEqual(sums[currency], round(float(net) * 100), printed)

    @needs("pandas")
    def test_straight_from_sql_into_pandas(self):
        printed = self.run_recipe("Straight")
        sums = dict(re.findall(r"^([A-Z]{3})\s+(-?\d+)$", printed, re.MULTILINE))
        for currency, net in self.nets("all").items():
            self.assertEqual(int(sums[currency]), round(float(net) * 1_000_000), printed)


class CopyTests(ShopTests):
    """The copies for analysts, read by Python's own SQLite."""

    def test_statements_give_the_same_on_a_full_copy_as_in_the_ledger(self):
        self.shop.sh("ledgerctl export --sqlite full.sqlite")
        connection = sqlite3.connect(self.shop.folder / "full.sqlite")
        views = json.loads(self.shop.sh("ledgerctl query --schema --format json"))["rows"]
        columns = {}
        for row in views:
            columns.setdefault(row["view"], []).append(row["column"])
        for view, names in columns.items():
            sql = f"SELECT {', '.join(names)} FROM {view} ORDER BY {', '.join(names)}"
            answer = json.loads(self.shop.sh(f'ledgerctl query --format json "{sql}"'))
            rows = [tuple(row[name] for name in names) for row in answer["rows"]]
            self.assertEqual(rows, connection.execute(sql).fetchall(), view)

    def test_no_value_that_is_withheld_stands_anywhere_in_an_anonymous_copy(self):
        self.shop.sh("ledgerctl export --sqlite whole.sqlite")
        self.shop.sh("ledgerctl export --sqlite open.sqlite --anonymous")
        whole = sqlite3.connect(self.shop.folder / "whole.sqlite")
        anonymous = sqlite3.connect(self.shop.folder / "open.sqlite")
        content = (self.shop.folder / "open.sqlite").read_bytes()

        def columns(connection):
            tables = connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            return {
                (table, column) for (table,) in tables for (column,) in connection.execute(
                    "SELECT name FROM pragma_table_info(?)", (table,))}

        def values(connection, place):
            table, column = place
            return {value for (value,) in connection.execute(f"SELECT {column} FROM {table}")}

        shared = set()
        for place in columns(anonymous):
            shared |= {str(value) for value in values(anonymous, place)}
        searched = set()
        for place in columns(whole) - columns(anonymous):
            for value in values(whole, place):
                # A short number or word may stand anywhere.
                if not isinstance(value, str) or len(value) < 4 or value in shared:
                    continue
                self.assertNotIn(value.encode(), content, place)
                searched.add(value)
        for expected in ("SECRET-user", "203.0.113.77", "5EC2E700", "SECRET-note", "SECRET7003"):
            self.assertTrue(any(expected in value for value in searched), expected)
        self.assertNotIn(b"SECRET", content)

    def test_no_digest_of_a_line_or_a_receipt_stands_in_an_anonymous_copy(self):
        self.shop.sh("ledgerctl export --sqlite digests.sqlite --anonymous")
        content = (self.shop.folder / "digests.sqlite").read_bytes()
        for line in (self.shop.folder / "shop.ndjson").read_bytes().splitlines():
            for text in (line, json.loads(line)["receipt"].encode()):
                digest = hashlib.sha256(text).digest()
                for form in (digest, digest[:8], digest.hex().encode(), base64.b64encode(digest)):
                    self.assertNotIn(form, content)

    def test_exact_texts_are_the_micros(self):
        self.shop.sh("ledgerctl export --sqlite exact.sqlite --anonymous")
        connection = sqlite3.connect(self.shop.folder / "exact.sqlite")
        rows = connection.execute(
            "SELECT currency, amount_micros, amount FROM journal_view "
            "WHERE currency IS NOT NULL").fetchall()
        self.assertIn(("JPY", 120_000_000, "120"), rows)
        for currency, micros, text in rows:
            self.assertEqual(round(float(text) * 1_000_000), micros, currency)


if __name__ == "__main__":
    unittest.main()
