# Data packages that `export --package` writes, judged by frictionless, which knows nothing of this program.
#
# LEDGERCTL names the program.
import csv
import decimal
import json
import unittest

try:
    import frictionless
except ImportError:
    frictionless = None

from shop import Shop

REPORTS = [
    "revenue", "revenue --by period,product,basis,trust", "journal", "sales", "exceptions",
    "receipts", "users", "subscriptions", "subscriptions --by month", "journal --environment all",
    "journal --include-pending --columns date,sale_key,amount,currency",
    "journal --csv-delimiter ';' --csv-decimal ,",
    "journal --csv-delimiter tab --csv-dates spreadsheet --timezone Europe/Berlin",
    "sales --csv-delimiter '|'", "revenue --amounts minor",
]


@unittest.skipIf(frictionless is None, "frictionless is not installed")
class PackageTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shop = Shop()

    @classmethod
    def tearDownClass(cls):
        cls.shop.close()

    def fresh(self, name):
        folder = self.shop.folder / name
        folder.mkdir()
        return folder

    def package(self, folder):
        return json.loads((folder / "datapackage.json").read_text())

    def assertValid(self, folder):
        with frictionless.system.use_context(trusted=True):
            report = frictionless.validate(str(folder / "datapackage.json"))
        self.assertTrue(report.valid, report.flatten(["rowNumber", "fieldName", "type", "note"]))

    def test_every_report_is_what_its_package_says(self):
        folder = self.fresh("all")
        for number, words in enumerate(REPORTS):
            self.shop.export(f"{words} -o all/{number}.csv --package")
        resources = self.package(folder)["resources"]
        self.assertEqual([r["path"] for r in resources], [f"{n}.csv" for n in range(len(REPORTS))])
        self.assertValid(folder)

    def test_the_rows_that_frictionless_reads_are_those_of_json(self):
        folder = self.fresh("rows")
        for form in ("", "--csv-delimiter ';' --csv-decimal ,"):
            self.shop.export(f"journal -o rows/journal.csv --package {form}")
            package = frictionless.Package(str(folder / "datapackage.json"))
            rows = package.get_resource("journal").read_rows()
            whole = json.loads(self.shop.export("journal --format json"))
            self.assertEqual(len(rows), len(whole["rows"]))
            for row, expected in zip(rows, whole["rows"]):
                if expected["amount"] is not None:
                    self.assertEqual(row["amount"], decimal.Decimal(expected["amount"]))
                self.assertEqual(row["position"], expected["position"])
                self.assertEqual(row["date"].isoformat()[:19], expected["date"][:19])

    def test_a_changed_byte_is_found(self):
        folder = self.fresh("changed")
        self.shop.export("sales -o changed/sales.csv --package")
        path = folder / "sales.csv"
        path.write_bytes(path.read_bytes().replace(b"coins", b"coinz"))
        self.assertFalse(frictionless.validate(str(folder / "datapackage.json")).valid)

    def test_a_report_replaces_itself_and_leaves_the_rest(self):
        folder = self.fresh("again")
        self.shop.export("sales -o again/sales.csv --package")
        self.shop.export("users -o again/users.csv --package")
        path = folder / "datapackage.json"
        own = json.loads(path.read_text())
        own["licenses"] = [{"name": "internal"}]
        path.write_text(json.dumps(own))
        self.shop.export("sales --environment all -o again/sales.csv --package")
        now = self.package(folder)
        self.assertEqual([r["name"] for r in now["resources"]], ["sales", "users"])
        self.assertEqual(now["resources"][1], own["resources"][1])
        self.assertNotEqual(now["resources"][0]["hash"], own["resources"][0]["hash"])
        self.assertEqual(now["licenses"], [{"name": "internal"}])
        self.assertValid(folder)

    def test_equal_events_give_equal_bytes(self):
        folder = self.fresh("equal")
        self.shop.export("journal -o equal/journal.csv --package")
        first = (folder / "datapackage.json").read_bytes()
        (folder / "datapackage.json").unlink()
        self.shop.export("journal -o equal/journal.csv --package")
        self.assertEqual((folder / "datapackage.json").read_bytes(), first)

    def test_names_that_differ_only_in_what_names_may_not_hold_stay_apart(self):
        folder = self.fresh("names")
        self.shop.export("sales -o 'names/a b.csv' --package")
        self.shop.export("users -o 'names/a-b.csv' --package")
        self.shop.export("users -o 'names/Ünïcode.csv' --package")
        names = [r["name"] for r in self.package(folder)["resources"]]
        self.assertEqual(names, ["a-b", "a-b-2", "-n-code"])
        self.assertValid(folder)

    def test_another_file_is_not_touched(self):
        folder = self.fresh("foreign")
        for text in ('{"name":"mine","resources":[]}', "no json", "[]", '{"receipt_ledger":{}}'):
            (folder / "datapackage.json").write_text(text)
            done = self.shop.export("sales -o foreign/sales.csv --package", check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("not a data package that this program wrote", done.stderr)
            self.assertEqual((folder / "datapackage.json").read_text(), text)
            self.assertFalse((folder / "sales.csv").exists())

    def test_the_package_of_another_ledger_is_refused(self):
        folder = self.fresh("other")
        self.shop.export("sales -o other/sales.csv --package")
        self.shop.sh("ledgerctl init second --origin example.com/second")
        done = self.shop.export("users --ledger second -o other/users.csv --package", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("another ledger", done.stderr)
        self.assertEqual([r["name"] for r in self.package(folder)["resources"]], ["sales"])

    def test_wrong_usage(self):
        for words, message in (
                ("sales --package", "requires --output FILE"),
                ("sales -o x.json --package", "describes CSV"),
                ("journal -o x.csv --total --package", "--total"),
                ("sales --format csv -o datapackage.json --package", "has this name")):
            done = self.shop.export(words, check=False)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(message, done.stderr)

    def test_every_column_has_a_description_and_the_header_is_the_fields(self):
        folder = self.fresh("fields")
        for number, words in enumerate(REPORTS):
            self.shop.export(f"{words} -o fields/{number}.csv --package")
        for resource in self.package(folder)["resources"]:
            fields = resource["schema"]["fields"]
            with open(folder / resource["path"], newline="") as file:
                header = next(csv.reader(file, delimiter=resource["dialect"]["delimiter"]))
            self.assertEqual([field["name"] for field in fields], header)
            for field in fields:
                self.assertTrue(field.get("description"), field)


if __name__ == "__main__":
    unittest.main()
