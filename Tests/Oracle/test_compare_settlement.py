# Checks that a comparison of settlement passes for a faithful program, and fails for each difference.
import base64
import copy
import json
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

import compare
import compare_settlement
import settlement_reports
from compare_settlement import SettlementComparison
from dates import time_text
from generate_settlement_plants import PLANTS
from generate_settlement_sales import BUNDLES
from log import read_log
from settlement import Files, Refusal
from settlement_files import event_data, read_file
from settlement_matching import CLASSES, ledger_lines
from settlement_values import Refused
from signing import unsigned

FAMILY = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
RECEIPT = "11111111-2222-5333-8444-555555555555"
AT = "2026-11-01T00:00:00.000Z"


class StandInLedger:
    """Does what ledgerctl does with settlement, by the oracle itself; a fault changes it."""

    def __init__(self, directory, changes_report, changes_events, accepts):
        self.directory = str(directory)
        self.events = []
        self.files, self.read = Files(), (None, None)
        self.changes_report, self.changes_events = changes_report, changes_events
        self.accepts = accepts

    def fill(self, imports, root_sha256=None):
        self._append("app.registered", {"app_family_id": FAMILY, "name": "App",
                                        "bundle_ids": list(BUNDLES), "products": {}})
        for path in imports:
            for line in path.read_text().splitlines():
                self._take(json.loads(line))

    def _take(self, line):
        about = {"app_family_id": FAMILY, "occurred_at": time_text(line["occurred_at"]), "via": "import"}
        if "signed_transactions" in line:
            payload = line["signed_transactions"][0].split(".")[1]
            one = {"outcome": "valid", "signature": "", "header": {},
                   "payload": json.loads(base64.urlsafe_b64decode(payload + "=="))}
            self._append("transactions.received", about | {
                "upload_id": RECEIPT, "outcome": "valid", "transactions": [one]})
            return
        upload = len(self.events)
        reply = line["verification"]["reply"]
        self._append("receipt.uploaded", {
            "receipt_id": RECEIPT, "style": "unified", "bundle_id": reply["receipt"]["bundle_id"],
            "receipt_sha256": "", **about, "country_code": line["country_code"],
            "metadata": line["metadata"], "receipt": line["receipt"]})
        self._append("receipt.verified", {
            "upload": upload, "authority": "app_store", "outcome": "valid", "status": 0, "attempt": 1,
            "environment": reply["environment"], "endpoint": line["verification"]["endpoint"],
            "occurred_at": about["occurred_at"], "reply": reply})

    def _append(self, kind, data):
        self.events.append({"seq": len(self.events), "type": kind, "v": 1, "at": AT, "data": data})

    def append(self, events, seed):
        for kind, data in events([], seed):
            self._append(kind, json.loads(data))

    def copied(self, directory):
        other = copy.deepcopy(self)
        other.directory = str(directory)
        return other

    def lines(self):
        return [json.dumps(event, separators=(",", ":")).encode() for event in self.events]

    def run(self, *arguments, allowed=None):
        _, _, command, *rest = arguments
        try:
            if command == "settlement":
                self._import(rest[1:])
            else:
                self._export(*rest)
        except (Refused, Refusal) as error:
            return subprocess.CompletedProcess(arguments, 1, b"", str(error).encode())
        except KeyError:
            return subprocess.CompletedProcess(arguments, 2, b"", b"")
        return subprocess.CompletedProcess(arguments, 0, b"", b"")

    def _import(self, words):
        paths = [pathlib.Path(word) for word in words if "/" in word]
        options = dict(zip(words[len(paths) :: 2], words[len(paths) + 1 :: 2]))
        replaces = words[-1] == "--replace"
        options = {name[2:]: value for name, value in options.items()}
        if {"EUR", "Z2", "E1", "FY2012-P13"} & set(options.values()):
            raise KeyError
        files, made = copy.deepcopy(self.files), []
        for path in paths:
            try:
                report = read_file(path.read_bytes(), path.name, **options)
            except Refused as error:
                if self.accepts == error.cause:
                    self._append("settlement.declared", {})
                    continue
                raise
            if files.admit(report, replaces):
                for data in event_data(report, path.name):
                    self.changes_events(data)
                    files.declare(0, data)
                    made.append(data)
        self.files = files
        for data in made:
            self._append("settlement.declared", data)

    def _book(self, lines):
        """The book of a log, read once while it stays as it is."""
        if self.read[0] != lines:
            self.read = lines, read_log(lines)
        return self.read[1]

    def _export(self, report, _, path, *words):
        options = dict(zip(words[::2], words[1::2]))
        end = int(options.pop("--as-of", len(self.events)))
        book = self._book(self.lines()[: end + 1])
        chosen = {"month": options.get("--month"), "product": options.get("--product"),
                  "country": options.get("--country")}
        if "--class" in options:
            chosen["classes"] = options["--class"].split(",")
        if report == "reconcile":
            parts = settlement_reports.reconciled(list(ledger_lines(book)), book.files)
            text = settlement_reports.reconcile(parts, **chosen)
        else:
            text = settlement_reports.exceptions(book.files)
        pathlib.Path(path).write_bytes(self.changes_report(report, text).encode())


class Signer:
    """Makes objects that only the oracle accepts."""

    def __call__(self, orders):
        return unsigned(orders)

    def root_sha256(self):
        return None


# A few long rows are enough where no program is held to them.
@mock.patch.object(compare_settlement, "LONG_ROWS", 3)
class FaithfulAndFaulty(unittest.TestCase):
    def verdict(self, mode=None, report=lambda name, text: text, events=lambda data: None, accepts=None):
        """(comparisons that passed, the names of those that failed), of one form, or of files alone."""
        passed, failed = [], []

        def note(name, found):
            (failed if found else passed).append(name)

        with tempfile.TemporaryDirectory() as temporary:
            comparison = SettlementComparison(
                note, compare.differences,
                lambda path: StandInLedger(path, report, events, accepts), pathlib.Path(temporary))
            if mode is None:
                comparison.odd_files(3)
            elif mode == "damaged":
                comparison.damaged_files(3)
            else:
                comparison.one_form(3, mode, *comparison.sales(3, 60, Signer()))
        return passed, failed

    def test_a_faithful_program_passes(self):
        for mode in ("detailed", "single", "regional", "mixed"):
            passed, failed = self.verdict(mode)
            self.assertEqual(failed, [])
            self.assertGreater(len(passed), 13 if mode == "mixed" else 13 + len(PLANTS))
        for mode, least in ((None, 300), ("damaged", 60)):
            passed, failed = self.verdict(mode)
            self.assertEqual(failed, [])
            self.assertGreater(len(passed), least)

    def test_a_wrong_unit_and_another_order_are_differences(self):
        for change in (lambda text: text.replace(",8.99,", ",8.98,", 1),
                       lambda text: text.replace("\n", "\r\n"),
                       lambda text: "".join([*text.splitlines(True)[:1], *text.splitlines(True)[:0:-1]])):
            def changed(name, text, change=change):
                return change(text) if name == "reconcile" else text

            _, failed = self.verdict("single", report=changed)
            self.assertIn("single, export reconcile", failed)

    def test_a_lost_exception_is_a_difference(self):
        _, failed = self.verdict("single", report=lambda name, text: "".join(
            line for line in text.splitlines(True) if not line.startswith("sign_disagrees")))
        self.assertIn("single, export exceptions", failed)

    def test_a_fault_that_lands_in_another_class_is_a_difference(self):
        for name, plant in PLANTS.items():
            for _, expected, _ in plant.lands:
                self.assertIn(expected, CLASSES)
        _, failed = self.verdict("single", report=lambda name, text: text.replace(
            "price_differs", "matched"))
        self.assertIn("single, another_price", failed)

    def test_a_refused_file_that_is_taken_is_a_difference(self):
        _, failed = self.verdict(accepts="cut: no totals")
        self.assertIn("refused: no totals", failed)

    def test_a_line_that_events_lose_is_a_difference(self):
        def loses(data):
            del data["totals"][-1:]

        _, failed = self.verdict(events=loses)
        self.assertIn("events: as Apple writes it (FY2014-P01)", failed)


if __name__ == "__main__":
    unittest.main()
