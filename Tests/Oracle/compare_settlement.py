# Compares ledgerctl's settlement with the oracle: files, the reconciliation, exceptions, and the reports on
# money (rules S2 to S17).
import csv
import gzip
import io
import json
import random

import generate_settlement
import generate_settlement_sellers
import settlement_reports
from compare_settlement_reports import MAPS, MoneyReports
from generate_settlement_damage import damaged
from generate_settlement_files import File, one_region, paid, refused, taken, title_of
from generate_settlement_plants import PLANTS, planted_purchases
from generate_settlement_sales import Sales
from log import read_log
from settlement import EXCEPTIONS, Files, Refusal
from settlement_files import event_data, read_file
from settlement_matching import ledger_lines
from settlement_values import Refused, month_name
from settlement_writing import COLUMNS, financial, sale

REFUSED, MISUSED = 1, 2
# Causes that a refusal says in these words.
NAMED_CAUSES = ("name the region", "mixed months", "no fiscal month")
# Rows so long that a file becomes several events.
LONG_ROWS, LONG_CELL = 300, 40_000
CUTS, DAMAGED = 25, 60
# Filters of the reconciliation: options, and what they choose.
FILTERS = [
    {"month": "FY2026-P03"}, {"classes": ["missing_there"]}, {"product": "pro.month"},
    {"country": "DE"}, {"month": "FY2026-P04", "classes": ["matched"], "country": "US"},
    {"product": "nobody"},
]
OPTION_NAMES = {"month": "--month", "classes": "--class", "product": "--product", "country": "--country"}


class SettlementComparison:
    """Runs the comparison in a directory; `note(name, differences)` counts what agrees."""

    def __init__(self, note, differences, ledger_in, directory):
        self.note, self.differences = note, differences
        self.ledger_in, self.directory = ledger_in, directory
        # A ledger, and its lines after the last import.
        self._lines = None, []
        self.money = MoneyReports(note, self._note_text, self._export, directory)

    def run(self, seed, count, sign):
        sold = self.sales(seed, count, sign)
        for mode in (*generate_settlement.MODES, generate_settlement.MIXED):
            self.one_form(seed, mode, *sold)
        self.sellers()
        self.odd_files(seed)
        self.damaged_files(seed)

    # Reports of a ledger's own sales.

    def sales(self, seed, count, sign):
        """(a ledger of sales, its book)."""
        sales = Sales(seed)
        path = self.directory / "sales.ndjson"
        lines = sales.orders.resolve(sales.lines(count, planted_purchases()), sign)
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        ledger = self.ledger_in(self.directory / "sales")
        ledger.fill([path], root_sha256=sign.root_sha256())
        return ledger, read_log(ledger.lines())

    def one_form(self, seed, mode, sales, book):
        """Apple's files, in one form, of the sales in a ledger, of which a copy is made."""
        directory = self.directory / mode
        directory.mkdir()
        ledger = sales.copied(directory / "ledger")
        made = generate_settlement.Reports(seed, mode, list(ledger_lines(book)))
        wrong = self._write(directory / "wrong", made.wrong_first())
        right = self._write(directory / "right", made.files() | made.others() | made.overviews())
        self._import(ledger, f"{mode}, files to be replaced", wrong)
        before = ledger.lines()
        self._expect_refusal(ledger, f"{mode}, other files without --replace", right)
        self._import(ledger, f"{mode}, all files", right, "--replace")
        self._import(ledger, f"{mode}, all files again", right, "--replace", appends=False)
        rows = self._compare(ledger, mode, book)
        names = {name for _, name, _ in book.files.findings()}
        self._compare(ledger, f"{mode} before", book, before)
        if mode == generate_settlement.MIXED:
            for words in MAPS if self.money.has_maps(ledger) else ():
                self.money.map(ledger, words)
                self._compare(ledger, f"{mode}, {words}", book)
            return
        self._check_plants(mode, rows)
        self.note(f"{mode}, planted exceptions", [
            f"missing: {name}" for name in sorted(made.planted_exceptions() - names)])

    def _check_plants(self, mode, rows):
        found = {}
        for row in rows:
            name = row["product_id"].removeprefix("plant.")
            if name != row["product_id"]:
                key = row["fiscal_month"], row["class"]
                units = int(row["apple_units"] or row["ledger_units"])
                found.setdefault(name, {})[key] = found.get(name, {}).get(key, 0) + units
        for name, plant in PLANTS.items():
            expected = {(month_name(month), kind): units
                        for (month, kind), units in plant.expected(mode).items()}
            lands = found.get(name, {})
            self.note(f"{mode}, {name}", [] if lands == expected else [f"{expected} expected, {lands} found"])

    def _compare(self, ledger, name, book, lines=None):
        """Compares all reports, as of the end of `lines` if given: the rows of the reconciliation found.

        The book then has the files of that point."""
        point = [] if lines is None else ["--as-of", str(json.loads(lines[-1])["seq"])]
        # Files change no sale, and are no sale's.
        declared = [line for line in lines or ledger.lines()
                    if b'"settlement.declared"' in line or b'"settlement.mapped"' in line]
        book.files = read_log(declared).files
        parts = settlement_reports.reconciled(list(ledger_lines(book)), book.files)
        expected = settlement_reports.reconcile(parts)
        found = self._export(ledger, "reconcile", *point)
        self._note_text(f"{name}, export reconcile", expected, found)
        exceptions = settlement_reports.exceptions(book.files)
        self._note_text(f"{name}, export exceptions", exceptions,
                        _settlement_alone(self._export(ledger, "exceptions", *point)))
        for chosen in FILTERS if lines is None else ():
            options = [word for option, value in chosen.items() for word in
                       (OPTION_NAMES[option], ",".join(value) if isinstance(value, list) else value)]
            self._note_text(f"{name}, export reconcile {' '.join(options)}",
                            settlement_reports.reconcile(parts, **chosen),
                            self._export(ledger, "reconcile", *options))
        self.money.compare(ledger, name, book, parts, point)
        return list(csv.DictReader(io.StringIO(found, newline="")))

    def _note_text(self, name, expected, found):
        self.note(name, self.differences(expected.splitlines(), found.splitlines()) or (
            [] if expected == found else ["the ends of lines differ"]))

    def _export(self, ledger, report, *options, ending=".csv"):
        """The report's text; empty, and noted, if there is none."""
        path = self.directory / f"{report}{ending}"
        path.unlink(missing_ok=True)
        done = ledger.run("--ledger", ledger.directory, "export", report, "--output", str(path), *options,
                          allowed=None)
        if done.returncode != 0 or not path.exists():
            self.note(f"export {report}", [f"exit status {done.returncode}: {_error(done)}"])
            return ""
        return path.read_bytes().decode()

    # Imports.

    def _write(self, directory, texts):
        """The paths of files that hold the texts."""
        directory.mkdir()
        for name, text in texts.items():
            (directory / name).write_bytes(text.encode())
        return [str(directory / name) for name in texts]

    def _command(self, ledger, paths, options):
        """(the import's result, the lines that it appended)."""
        if self._lines[0] is not ledger:
            self._lines = ledger, ledger.lines()
        before = self._lines[1]
        done = ledger.run(
            "--ledger", ledger.directory, "settlement", "import", *paths, *options, allowed=None)
        self._lines = ledger, ledger.lines()
        return done, self._lines[1][len(before):]

    def _import(self, ledger, name, paths, *options, appends=True):
        """The data of the events that the import appended."""
        done, lines = self._command(ledger, paths, options)
        found = [] if done.returncode == 0 else [f"exit status {done.returncode}: {_error(done)}"]
        if bool(lines) != appends:
            found.append("appended nothing" if appends else "appended something")
        self.note(name, found)
        return [json.loads(line)["data"] for line in lines]

    def _expect_refusal(self, ledger, name, paths, *options, word="", status=REFUSED):
        done, lines = self._command(ledger, paths, options)
        found = []
        if done.returncode != status:
            found.append(f"exit status {done.returncode}, not {status}: {_error(done)}")
        if word not in done.stderr.decode(errors="replace"):
            found.append(f"{word!r} is not in: {_error(done)}")
        if lines:
            found.append("appended something")
        self.note(name, found)

    # Files that no sale stands behind.

    def sellers(self):
        """Every country, around the days on which sellers change."""
        directory = self.directory / "sellers"
        directory.mkdir()
        ledger = self.ledger_in(directory / "ledger")
        ledger.fill([])
        paths = self._write(directory / "files", generate_settlement_sellers.files())
        self._import(ledger, "reports of every country", paths)
        self._compare(ledger, "every country", read_log([]))

    def odd_files(self, seed):
        """What is taken and what is refused, one after another, in a ledger of no sales."""
        directory = self.directory / "odd"
        directory.mkdir()
        ledger = self.ledger_in(directory / "ledger")
        ledger.fill([])
        for number, file in enumerate(refused()):
            path = self._place(directory, f"refused-{number}", file)
            word = file.cause if file.cause in NAMED_CAUSES else ""
            self._expect_refusal(ledger, f"refused: {file.situation}", [path], *_options(file), word=word)
        for number, file in enumerate(taken()):
            self._take(ledger, file, self._place(directory, f"taken-{number}", file))
        self._cut_files(ledger, directory, seed)
        self._identities(ledger, directory)
        file = _long_file()
        self._take(ledger, file, self._place(directory, "long", file))
        self._compare(ledger, "odd files", read_log([]))
        ledger.append(lambda *_: list(_sets_of_parts()), seed)
        self._compare(ledger, "sets that are unfinished or in disorder", read_log([]))
        self._finish(ledger, directory, seed)

    def _finish(self, ledger, directory, seed):
        """A set that was interrupted counts once its file is imported again."""
        text = financial("FY2021-P01", *(sale(1, f"{price}.99") for price in range(1, 7)))
        file = File("", text.encode(), name="85_EU.txt")
        first, *_ = event_data(read_file(file.data, file.name), file.name, len(text) // 4)
        ledger.append(lambda *_: [_event(first)], seed)
        self._import(ledger, "an interrupted import again", [self._place(directory, "interrupted", file)])
        self._compare(ledger, "an interrupted import", read_log([]))

    def _place(self, directory, name, file):
        (directory / name).mkdir()
        path = directory / name / file.name
        path.write_bytes(file.data)
        return str(path)

    def _take(self, ledger, file, path):
        """The file is taken, its events hold its lines, and again it appends nothing."""
        events = self._import(ledger, f"taken: {file.situation}", [path], *_options(file))
        expected = _joined(list(event_data(read_file(file.data, file.name, **file.options), file.name)))
        found = _joined(events) if events else None
        self.note(f"events: {file.situation}", [] if found == expected else [
            f"{name}: {str(expected[name])[:200]} expected, {str((found or {}).get(name))[:200]} found"
            for name in expected if (found or {}).get(name) != expected[name]])
        self._import(ledger, f"again: {file.situation}", [path], *_options(file), appends=False)

    def _cut_files(self, ledger, directory, seed):
        """A file that is cut is refused, unless the cut leaves a whole one."""
        source = random.Random(seed)
        data = one_region("FY2012-P04").encode()
        for number, length in enumerate(sorted(source.sample(range(len(data)), CUTS))):
            file = File(f"cut to {length} bytes", data[:length], name="85_EU.txt")
            try:
                read_file(file.data, file.name)
            except Refused:
                path = self._place(directory, f"cut-{number}", file)
                self._expect_refusal(ledger, f"refused: {file.situation}", [path])

    def damaged_files(self, seed):
        """Files with a fault at random are taken or refused as the oracle does it."""
        directory = self.directory / "damaged"
        directory.mkdir()
        ledger = self.ledger_in(directory / "ledger")
        ledger.fill([])
        files = Files()
        for number, file in enumerate(damaged(seed, DAMAGED)):
            path = self._place(directory, f"damaged-{number}", file)
            try:
                report = read_file(file.data, file.name, **file.options)
                is_new = files.admit(report, True)
            except (Refused, Refusal):
                self._expect_refusal(ledger, file.situation, [path], *_options(file), "--replace")
                continue
            for data in self._import(ledger, file.situation, [path], *_options(file), "--replace",
                                     appends=is_new):
                files.declare(0, data)
        self._compare(ledger, "damaged files", read_log([]))

    def _identities(self, ledger, directory):
        """One file as two, another file without --replace, and files that are refused together."""
        month = "FY2012-P04"
        first = File("", one_region(month).encode(), name="85_EU.txt")
        second = File("", financial(month, sale(1, "1.99")).encode(), name="85_EU.txt")
        bad = File("", one_region(month, totals="").encode(), name="85_US.txt")
        title = File("", paid(title=title_of(month)).encode(), name="report.csv")
        untitled = File("", paid("7.77").encode(), name="other.csv")
        paths = [self._place(directory, f"identity-{number}", file)
                 for number, file in enumerate((first, second, bad, title, untitled))]
        self._expect_refusal(ledger, "a good file together with a bad one", [paths[0], paths[2]])
        self._expect_refusal(ledger, "two files of one region in one command", paths[:2])
        self._import(ledger, "a region", paths[:1])
        self._expect_refusal(ledger, "the same file as another region", paths[:1], "--region", "US")
        self._expect_refusal(
            ledger, "the same, with --replace", paths[:1], "--region", "US", "--replace")
        self._expect_refusal(ledger, "another file of the region", paths[1:2])
        self._import(ledger, "another file, with --replace", paths[1:2], "--replace")
        self._expect_refusal(ledger, "the superseded file again", paths[:1])
        self._import(ledger, "the superseded file again, with --replace", paths[:1], "--replace")
        third = financial(month, sale(1, "2.99")).encode()
        regions = [self._place(directory, f"region-{name}", File("", third, name=f"85_{name}.txt"))
                   for name in ("CA", "MX")]
        again = File("", gzip.compress(third, mtime=0), name="86_CA.txt.gz")
        self._expect_refusal(ledger, "one file as two regions in one command", regions)
        self._import(ledger, "one file twice in one command", [regions[0], regions[0]])
        self._import(ledger, "the same, packed", [self._place(directory, "packed", again)], appends=False)
        self._import(ledger, "a superseded file as another region", paths[1:2], "--region", "US")
        for region in ("EUR", "Z2", "E1"):
            self._expect_refusal(
                ledger, f"the region {region}", paths[:1], "--region", region, status=MISUSED)
        self._expect_refusal(
            ledger, "the month FY2012-P13", paths[4:], "--month", "FY2012-P13", status=MISUSED)
        self._import(ledger, "an overview", paths[3:4])
        self._expect_refusal(ledger, "another overview", paths[4:], "--month", month)
        self._import(ledger, "another overview, with --replace", paths[4:], "--month", month, "--replace")
        self._expect_refusal(ledger, "the same overview as another month", paths[4:], "--month", "FY2012-P05")


def _options(file):
    return [word for name, value in file.options.items() for word in (f"--{name}", value)]


def _error(done):
    return done.stderr.decode(errors="replace").strip()[:400]


def _joined(parts):
    """What the events of one file say together; skipped lines around the rows say nothing."""
    whole = dict(parts[0])
    del whole["part"], whole["parts"]
    for name in ("head", "rows", "totals"):
        whole[name] = [line for part in parts for line in part[name]]
    for name in ("head", "totals"):
        whole[name] = [line for line in whole[name] if line.strip(" \t,")]
    whole["numbers"] = [(part["part"], part["parts"]) == (number, len(parts))
                        for number, part in enumerate(parts, start=1)].count(False)
    return whole | {"members": list(parts[0])}


def _settlement_alone(text):
    """The lines of an exceptions report that are settlement's."""
    header, *lines = text.splitlines(keepends=True) or [""]
    return header + "".join(line for line in lines if line.split(",", 1)[0] in EXCEPTIONS)


def _sets_of_parts():
    """Events as no import appends them: sets that lack a part, come in another order, or begin anew."""
    orders = ([0, 1, 2], [0, 1], [1, 2], [0, 2], [1, 0, 2], [0, 0, 1, 2], [0, 1, 0, 2], [0, 1, 2, 0],
              [0, 1, 2, 2], [0, 1, 2, 0, 1, 2], [2, 0, 1])
    for number, order in enumerate(orders):
        rows = [sale(1, f"{price}.99", product=f"set.{number}") for price in range(1, 7)]
        month = f"FY2024-P{number + 1:02}"
        report = read_file(financial(month, *rows).encode(), "85_EU.txt")
        size = sum(len(line) + 1 for line in report.body) // 3
        parts = list(event_data(report, "85_EU.txt", size))
        for place in order:
            yield _event(parts[place])


def _event(data):
    return "settlement.declared", json.dumps(data, separators=(",", ":"))


def _long_file():
    """A file of more than one event."""
    rows = [sale(1, "1.99", product=f"long.{number}") | {"Title": "x" * LONG_CELL}
            for number in range(LONG_ROWS)]
    text = financial("FY2020-P01", *rows, columns=[*COLUMNS, "Title"])
    return File("a file of several events", text.encode(), name="85_EU.txt")
