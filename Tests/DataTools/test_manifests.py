# The columns in a report's manifest: names, types and meanings.
#
# LEDGERCTL names the program.
import csv
import datetime
import decimal
import json
import unittest

from shop import ShopTests

REPORTS = [
    "revenue", "revenue --by period,product,basis,trust", "journal", "sales", "exceptions",
    "receipts", "users", "subscriptions", "subscriptions --by month", "journal --environment all",
    "journal --include-pending --columns date,sale_key,amount,currency",
    "journal --csv-delimiter ';'", "journal --csv-delimiter tab --timezone Europe/Berlin",
    "sales --csv-delimiter '|'", "revenue --amounts minor",
]

# How a cell of each type is read; a cell of another type raises an error.
READERS = {
    "string": str,
    "integer": int,
    "number": decimal.Decimal,
    "datetime": lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00")),
    "boolean": {"true": True, "false": False}.__getitem__,
}
JSON_TYPES = {
    "string": (str, list), "integer": int, "number": str, "datetime": str, "boolean": bool,
}


class ManifestTests(ShopTests):
    def manifest(self, words, file):
        self.shop.export(f"{words} -o {file} --manifest")
        return (self.shop.folder / f"{file}.manifest.json").read_bytes()

    def test_every_column_has_a_type_and_a_meaning_and_the_header_is_the_names(self):
        for words in REPORTS:
            with self.subTest(words=words):
                said = json.loads(self.manifest(words, "report.csv"))
                delimiter = said["filters"].get("csv_delimiter", ",")
                with open(self.shop.folder / "report.csv", newline="") as file:
                    rows = list(csv.reader(file, delimiter=delimiter))
                columns = said["columns"]
                self.assertEqual([column["name"] for column in columns], rows[0])
                for column in columns:
                    self.assertTrue(column["meaning"], column)
                for row in rows[1:]:
                    for column, cell in zip(columns, row, strict=True):
                        if cell:
                            READERS[column["type"]](cell)

    def test_the_values_of_json_have_the_types_of_the_manifest(self):
        for words in REPORTS:
            if "--csv" in words:
                continue
            with self.subTest(words=words):
                columns = json.loads(self.manifest(words, "report.json"))["columns"]
                rows = json.loads((self.shop.folder / "report.json").read_text())["rows"]
                for row in rows:
                    self.assertEqual(list(row), [column["name"] for column in columns])
                    for column in columns:
                        value = row[column["name"]]
                        if value is not None:
                            self.assertIsInstance(value, JSON_TYPES[column["type"]], column)

    def test_equal_events_give_equal_bytes(self):
        first = self.manifest("journal", "equal.csv")
        self.assertEqual(self.manifest("journal", "equal.csv"), first)

    def test_the_option_of_before_names_its_successor(self):
        done = self.shop.export("sales -o sales.csv --package", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--manifest", done.stderr)
        self.assertFalse((self.shop.folder / "sales.csv").exists())


if __name__ == "__main__":
    unittest.main()
