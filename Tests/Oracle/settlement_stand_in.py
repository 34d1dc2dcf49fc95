# A ledger that does what ledgerctl does with settlement, by the oracle itself, and a signer, for tests.
import base64
import copy
import json
import pathlib
import subprocess

import settlement_reports
from compare_settlement_reports import ENDINGS
from dates import time_text
from generate_settlement_sales import BUNDLES
from log import read_log
from reports import Options, csv_text, report
from settlement import Files, Refusal
from settlement_entries import receivable_balances
from settlement_exports import WITH_SETTLEMENT, text_of
from settlement_files import event_data, read_file
from settlement_matching import ledger_lines
from settlement_proceeds import money
from settlement_values import Refused
from signing import unsigned

FAMILY = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
RECEIPT = "11111111-2222-5333-8444-555555555555"
AT = "2026-11-01T00:00:00.000Z"


class StandInLedger:
    """Does what ledgerctl does with settlement, by the oracle itself; a fault changes it."""

    HELP = """REPORT the report: revenue, journal, sales, exceptions, reconcile, proceeds, payout or entries

        --by LIST any of period, seller, --with-settlement, --basis, --paid-on, --accounts, --timezone, --in,
        --environment, --format FORMAT csv, hledger or beancount
        """

    def __init__(self, directory, changes_report=lambda name, text: text, changes_events=lambda data: None,
                 accepts=None, help_text=HELP):
        self.directory = str(directory)
        self.events = []
        self.files, self.read = Files(), (None, None, None)
        self.changes_report, self.changes_events = changes_report, changes_events
        self.accepts, self.help_text = accepts, help_text

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
        if arguments[-1] == "--help":
            text = self.help_text if arguments[0] == "export" else "settlement map"
            return subprocess.CompletedProcess(arguments, 0, text.encode(), b"")
        _, _, command, *rest = arguments
        try:
            if command == "export":
                self._export(*rest)
            elif rest[0] == "map":
                sku, product = rest[1].split("=")
                self._append("settlement.mapped", {"sku": sku} | ({"product_id": product} if product else {}))
            else:
                self._import(rest[1:])
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

    def book(self):
        return read_log(self.lines())

    def _read(self, lines):
        """(the book of a log, its parts), read once while it stays as it is."""
        if self.read[0] != lines:
            book = read_log(lines)
            self.read = lines, book, settlement_reports.reconciled(list(ledger_lines(book)), book.files)
        return self.read[1:]

    def _export(self, name, _, path, *words):
        formats = {ending: name for name, ending in ENDINGS.items()}
        options, words = {"--format": formats.get(pathlib.Path(path).suffix, "csv")}, list(words)
        while words:
            word = words.pop(0)
            options[word] = None if word in (WITH_SETTLEMENT, "--check") else words.pop(0)
        end = int(options.pop("--as-of", len(self.events)))
        book, parts = self._read(self.lines()[: end + 1])
        chosen = {"month": options.get("--month"), "product": options.get("--product"),
                  "country": options.get("--country")}
        if "--class" in options:
            chosen["classes"] = options["--class"].split(",")
        if name == "reconcile":
            text = settlement_reports.reconcile(parts, **chosen)
        elif name == "exceptions":
            text = settlement_reports.exceptions(book.files)
        elif name == "revenue":
            shown = Options(by=("period",), period="day", timezone=options["--timezone"])
            text = csv_text(*report(name, book, shown))
        elif "--check" in options:
            balances = receivable_balances(book.files, parts)
            text = csv_text(["currency", "balance"], [
                [currency, money(micros, currency)] for currency, micros in sorted(balances.items())])
        else:
            text = text_of(name, options, book, parts)
        pathlib.Path(path).write_bytes(self.changes_report(name, text).encode())


class Signer:
    """Makes objects that only the oracle accepts."""

    def __call__(self, orders):
        return unsigned(orders)

    def root_sha256(self):
        return None
