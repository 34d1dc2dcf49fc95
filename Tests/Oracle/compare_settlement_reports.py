# Compares ledgerctl's reports on money with the oracle's, each where its help lists it (rules S13 to S16).
import json
import re

from layout import micros
from settlement_entries import ACCOUNTS, receivable_balances
from settlement_exports import WITH_SETTLEMENT, rows_of, text_of

WITH = {WITH_SETTLEMENT: None}
ZONE = {"--timezone": "America/St_Johns"}
# Two months on one day.
PAID_ON = {"--paid-on": "FY2026-P02=2026-01-05,FY2026-P01=2026-01-05"}
# Each report with its options.
REPORTS = [
    ("proceeds", {}),
    ("payout", {}),
    *(("payout", {"--by": names}) for names in (
        "seller", "country", "country,product", "product,seller,country")),
    *(("entries", options) for options in (
        {}, ZONE, PAID_ON, {"--basis": "ledger"}, {"--basis": "apple"}, {"--basis": "apple"} | PAID_ON,
        {"--format": "hledger"}, {"--format": "beancount"}, {"--format": "hledger", "--basis": "apple"},
        {"--format": "beancount", "--basis": "apple"}, {"--accounts": "accounts"},
        {"--accounts": "accounts", "--format": "hledger"},
    )),
    *((name, WITH | options) for name in ("journal", "sales") for options in (
        {}, {"--environment": "all"})),
    ("journal", WITH | {"--in": "EUR"}),
]
ENDINGS = {"hledger": ".journal", "beancount": ".beancount"}
# Of a file that replaces accounts: two become one.
ACCOUNT_FILE = """\
bank = Assets:Bank:Giro
unseen = Income:Apple:Sales
kept = Expenses:Apple:Commission and tax
"""
# What is mapped in turn, in a ledger that has the planted sales.
MAPS = ["plant.no_receipt=plant.never_settled", "plant.no_receipt=coins", "plant.no_receipt="]


def words_of(options):
    return [word for pair in options.items() for word in pair if word is not None]


class MoneyReports:
    """`export(ledger, report, *words, ending)` writes a report; `note_text` compares two texts."""

    def __init__(self, note, note_text, export, directory):
        self.note, self.note_text, self.export = note, note_text, export
        self.accounts = directory / "accounts.txt"
        self._help = None

    def _listed(self, ledger):
        """The reports of the program's help, with the options that it has."""
        if self._help is None:
            done = [ledger.run(*words, "--help", allowed=None) for words in (("export",), ("settlement",))]
            self._help = [one.stdout.decode(errors="replace") for one in done]
            missing = [" ".join([name, *words_of(options)])
                       for name, options in REPORTS if not self._is_listed(name, options)]
            if missing:
                print("not compared, since the help does not list it:", *missing, sep="\n  ")
            self.accounts.write_text(ACCOUNT_FILE, encoding="ascii")
        return [one for one in REPORTS if self._is_listed(*one)]

    def _is_listed(self, name, options):
        text = self._help[0]
        reports = re.search(r"the report[;:](.*?)(\n\n|\Z)", text, re.DOTALL)
        words = {name: reports[1] if reports else "", **dict.fromkeys(options, text)}
        if "--by" in options:
            words["seller"] = text
        if "--format" in options:
            words[options["--format"]] = text
        return all(re.search(rf"(?<![\w-]){word}(?![\w-])", where) for word, where in words.items())

    def has_maps(self, ledger):
        self._listed(ledger)
        return "settlement map" in self._help[1]

    def compare(self, ledger, name, book, parts, point):
        """Compares all that is listed, as of `point`, and what entries must add up to."""
        found = {}
        for report, options in self._listed(ledger):
            if "--accounts" in options:
                options = options | {"--accounts": str(self.accounts)}
            expected = text_of(report, options, book, parts)
            ending = ENDINGS.get(options.get("--format"), ".csv")
            forms = [options]
            if "--format" in options:
                # The file's ending says it, too.
                forms.append({key: value for key, value in options.items() if key != "--format"})
            for form in forms:
                words = words_of(form)
                text = self.export(ledger, report, *words, *point, ending=ending)
                self.note_text(f"{name}, export {report} {' '.join(words)} to {ending}", expected, text)
                found[(report, ending, *words)] = text
        self._check_sums(ledger, name, book, parts, point, found)

    def _check_sums(self, ledger, name, book, parts, point, found):
        """Sales are the revenue by day, and the receivable keeps what the rules say."""
        entries = found.get(("entries", ".csv", *words_of(ZONE)))
        if not entries:
            return
        text = self.export(ledger, "revenue", "--by", "period", "--period", "day", *words_of(ZONE), *point)
        expected = {row[:2]: micros(row[2]) for row in rows_of(text, "period", "currency", "net") if row[1]}
        sums = {}
        for kind, date, account, amount, currency in rows_of(
                entries, "kind", "date", "account", "amount", "currency"):
            if account == ACCOUNTS["receivable"]:
                for key in [currency, *([(date, currency)] if kind == "sales" else [])]:
                    sums[key] = sums.get(key, 0) + micros(amount)
        balances = receivable_balances(book.files, parts)
        text = self.export(ledger, "entries", "--check", *point)
        self._note_sums(f"{name}, the balance of --check", balances, {
            currency: micros(balance) for currency, balance in rows_of(text, "currency", "balance")})
        expected |= balances
        self._note_sums(f"{name}, what the receivable adds up to", expected, sums)

    def _note_sums(self, name, expected, found):
        keys = [key for key in expected.keys() | found.keys() if expected.get(key, 0) != found.get(key, 0)]
        self.note(name, [
            f"{key}: {expected.get(key, 0)} micros expected, {found.get(key, 0)} found" for key in keys])

    def map(self, ledger, words):
        """Maps an SKU; the event must say so."""
        count = len(ledger.lines())
        done = ledger.run("--ledger", ledger.directory, "settlement", "map", words, allowed=None)
        sku, product = words.split("=")
        expected = {"sku": sku} | ({"product_id": product} if product else {})
        events = [json.loads(line) for line in ledger.lines()[count:]]
        found = [(event["type"], event["v"], event["data"]) for event in events]
        self.note(f"settlement map {words}", [] if found == [("settlement.mapped", 1, expected)] else [
            f"exit status {done.returncode}, {found} found: {done.stderr.decode(errors='replace')[:300]}"])
