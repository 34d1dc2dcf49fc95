# Compares ledgerctl's reports with the oracle's, cell by cell and then byte by byte.
import argparse
import csv
import difflib
import io
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

import erasure
import four_ways
import generate_again
import generate_fetched
import generate_malformed
import generate_stories
import generate_subscriptions
import reports
from compare_settlement import SettlementComparison
from generate_cases import DECLARED, write_cases
from log import read_log
from revenue_oracle import add_report_arguments, read_book, report_options
from signing import StandIn

DONE, DONE_WITH_REFUSALS = 0, 3
CONTEXT_LINES = 2
SHOWN_LINES = 40
IMPORTED_PARTS = 3

# Each report with its options, for either command line.
MATRIX = [
    "revenue",
    "revenue --environment all",
    "revenue --environment Sandbox",
    "revenue --environment Production,Sandbox --by environment,app",
    "revenue --environment all --by period,app,product,country,environment,basis,trust",
    "revenue --environment all --by basis,country",
    "revenue --environment all --by product",
    "revenue --environment all --by trust,period",
    "revenue --by period --period year",
    "revenue --by period --period quarter --timezone America/Los_Angeles",
    "revenue --by period,country --period month --timezone Europe/Berlin",
    "revenue --by period --period week --timezone Asia/Kolkata",
    "revenue --by period --period week",
    "revenue --by period --period day --timezone Pacific/Apia",
    "revenue --by period --period day --timezone Australia/Lord_Howe --environment all",
    "revenue --by period,country --period fiscal-month --environment all",
    "revenue --timezone America/Los_Angeles --period fiscal-month --by period",
    "revenue --by period --refunds sale-date",
    "revenue --by period,product --refunds sale-date --period week --timezone America/St_Johns",
    "revenue --by country --from 2025-11-01 --to 2025-12-31",
    "revenue --by period --period day --from 2025-10-26 --to 2025-11-02 --timezone Europe/London",
    "revenue --by period --from 2025-12-01 --to 2026-01-31 --refunds sale-date",
    "revenue --by period --in EUR",
    "revenue --by country,basis --in USD --environment all",
    "revenue --by period --period quarter --in JPY --refunds sale-date",
    "revenue --by product --in KWD --environment all",
    "revenue --by period,basis --in EUR --rates-max-age 3 --environment all",
    "revenue --by product --in USD --rates-max-age 1000",
    "journal",
    "journal --environment all",
    "journal --from 2025-11-15 --to 2026-01-15 --timezone America/New_York",
    "journal --environment all --in EUR",
    "journal --in GBP",
    "journal --in JPY --rates-max-age 0 --environment all",
    "journal --in HRK --rates-max-age 10",
    "sales",
    "sales --environment all",
    "users",
    "users --environment all",
    "users --in EUR",
    "users --in USD --rates-max-age 400 --environment all",
    "exceptions",
    "exceptions --environment all",
    "exceptions --environment all --in EUR",
    "exceptions --in USD",
    "exceptions --in EUR --rates-max-age 7 --environment all",
    "exceptions --in JPY --rates-max-age 0 --from 2025-12-01 --refunds sale-date",
    "exceptions --in KWD --rates-max-age 500 --environment all",
    "exceptions --from 2025-11-01 --to 2025-12-31",
    "exceptions --to 2025-11-15 --environment all --in EUR --timezone America/New_York",
    "exceptions --from 2025-12-01 --to 2026-01-31 --refunds sale-date --in USD",
    "exceptions --from 2026-02-01 --timezone Asia/Kolkata --environment all",
    "revenue --app com.example.two,com.example.one --product coins,pro.* --by app,product",
    "revenue --country DE,ZZ --by country,basis --environment all",
    "revenue --kind trial,offer --by product --in EUR --environment all",
    "revenue --user 42 --by period --environment all",
    "revenue --user nobody",
    "revenue --by product,country --sort net --top 3 --environment all",
    "revenue --by product,country --sort units:asc --top 7",
    "revenue --by period,product --sort product_id:desc --environment all",
    "revenue --by country --top 2",
    "journal --user 43 --kind regular --environment all",
    "journal --product pro.*,=hat --country US,JP --sort amount --top 5 --environment all",
    "journal --app com.example.three --sort date --in USD",
    "journal --sort user_identifier --environment all",
    "journal --sort unit_price:asc --top 2 --in EUR --environment all",
    "sales --kind family_shared,trial --environment all",
    "sales --country KW,ZZ --sort sale_date:asc",
    "sales --user +49 --environment all",
    "sales --sort unit_price --top 4 --environment all",
    "sales --sort cancelled:desc --top 11",
    "sales --sort transaction_ids:desc --product=-band",
    "users --sort net --environment all --top 3",
    "users --sort net:asc --in EUR --top 9",
    "users --sort last_seen_at:asc",
    "users --sort countries --top 5",
    "exceptions --product coins --environment all",
    "exceptions --app com.example.two --country US,ZZ --environment all",
    "exceptions --user 42 --environment all --in EUR",
    "exceptions --kind offer,trial --in JPY --environment all",
    "exceptions --country DE --from 2025-12-01 --environment all --in USD --rates-max-age 5",
    "exceptions --sort date --environment all --in EUR",
    "exceptions --sort exception --top 20",
    "exceptions --sort user_identifier:desc --environment all",
    "revenue --by period,country --in EUR --amounts minor --total --environment all",
    "revenue --by country,basis --in JPY --amounts minor --sort net --top 3 --total --environment all",
    "revenue --by product --in KWD --amounts minor --columns product_id,currency,net,gross",
    "revenue --by product --columns product_id,units,net,currency --total",
    "journal --in USD --amounts minor --environment all",
    "journal --in EUR --amounts minor --columns date,sale_key,currency,unit_price,amount,quantity"
    " --total --sort amount --top 4 --environment all",
    "journal --total --columns line,amount,currency",
    "sales --amounts minor --environment all",
    "users --in EUR --amounts minor",
    "users --amounts minor --environment all --columns net,user_identifier",
    "subscriptions --environment all --at 2025-11-20T10:00:00.000Z",
    "subscriptions --at 2026-01-15 --timezone America/St_Johns",
    "subscriptions --environment all --at 2026-04-01",
    "subscriptions --by month --environment all --at 2026-03-31",
    "subscriptions --by month --environment all --at 2026-03-31 --in EUR --rates-max-age 400",
    "subscriptions --by month --environment all --at 2026-04-20 --in USD --amounts minor",
    "subscriptions --by month --at 2026-02-10 --timezone America/Los_Angeles",
    "subscriptions --by month --environment Sandbox --at 2025-12-31T23:59:59.999Z",
]


# Compared once more with the log itself, after more events were appended to it.
MALFORMED_MATRIX = [
    *(
        line
        for line in MATRIX
        if line.startswith(("exceptions", "sales", "users", "journal")) or "trust" in line
    ),
    # At the moment of the last event, which only the log has.
    "subscriptions --environment all",
    "subscriptions --by month --environment all",
]


class Ledger:
    """A ledger made by ledgerctl in a directory of its own."""

    def __init__(self, program, directory):
        self.program = program
        self.directory = str(directory)

    def run(self, *arguments, allowed=(DONE,)):
        done = subprocess.run(
            [self.program, *arguments], capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
        if allowed is not None and done.returncode not in allowed:
            error = done.stderr.decode(errors="replace").strip()
            command = shlex.join(["ledgerctl", *arguments])
            raise SystemExit(f"{command}\nexited with {done.returncode}: {error}")
        return done

    def fill(self, imports, prices=(), rates=(), root_sha256=None):
        """Imports the files; `root_sha256`: a root that the ledger trusts in addition to Apple's."""
        self.run("init", self.directory, "--origin", "example.com/oracle")
        if root_sha256 is not None:
            trust = {"trust": {"additional_roots_sha256": [root_sha256]}}
            path = pathlib.Path(self.directory, "config.json")
            path.write_text(json.dumps(trust), encoding="ascii")
            path.chmod(0o600)
        refusals = (DONE, DONE_WITH_REFUSALS)
        place = ("--ledger", self.directory)
        for bundle, products in DECLARED.items():
            names = [f"--product={product}={kind}" for product, kind in products.items()]
            self.run(*place, "app", "add", "--name", bundle, "--bundle-id", bundle, *names)
        for path in imports:
            self.run(*place, "import", str(path), "--register-apps", allowed=refusals)
        for path in prices:
            self.run(*place, "prices", "import", "--allow-zero", str(path))
        for path in rates:
            self.run(*place, "rates", "import", str(path))

    def copied(self, directory):
        """A copy of the ledger in another directory."""
        shutil.copytree(self.directory, directory)
        return Ledger(self.program, directory)

    def lines(self):
        """The events of the log, as lines."""
        return self.run("--ledger", self.directory, "replay").stdout.splitlines()

    def append(self, events, seed):
        """Appends events made from the log's. `events`: makes them from lines and a seed."""
        lines = self.lines()
        generate_malformed.append(self.directory, lines, events(lines, seed))

    def export(self, arguments):
        """(standard output, None), or (None, the reason why there is no report)."""
        command = ("--ledger", self.directory, "export", *arguments, "--format", "csv")
        done = self.run(*command, allowed=None)
        if done.returncode != DONE:
            error = done.stderr.decode(errors="replace").strip()
            return None, f"exit status {done.returncode}: {error}"
        return done.stdout, None


def cells(data):
    """The cells of a CSV as written; ValueError if it is not CSV as R9 defines it."""
    text = data.decode("utf-8")
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    again = "".join(",".join(map(reports.quoted, row)) + "\n" for row in rows)
    if not rows or again != text:
        raise ValueError("quotes where none are needed, a line end other than LF, or no header")
    return rows


def blanked(rows):
    """CSV lines with blank positions."""
    return written(reports.without_positions(rows[0], rows[1:]))


def written(report):
    columns, body = report
    return [",".join(map(reports.quoted, row)) for row in [columns, *body]]


def differences(expected, found):
    """The differences of the reports in a few lines; empty if they are equal."""
    if expected == found:
        return []
    if sorted(expected) == sorted(found):
        header = ["the same rows in another order:"]
    else:
        header = [f"{len(expected) - 1} rows expected, {len(found) - 1} found:"]
    compared = difflib.unified_diff(
        expected, found, "oracle", "ledgerctl", lineterm="", n=CONTEXT_LINES
    )
    lines = [expected[0], *compared]
    return header + lines[:SHOWN_LINES]


def oracle_report(book, arguments):
    """The oracle's report as CSV bytes; None if an amount exceeds 64 bits."""
    parser = argparse.ArgumentParser()
    add_report_arguments(parser)
    options = report_options(parser.parse_args(arguments[1:]))
    try:
        return reports.csv_text(*reports.report(arguments[0], book, options)).encode()
    except OverflowError:
        return None


def compare(ledger, book, arguments, has_positions=False, as_of=None):
    """The differences of one report; `has_positions`: whether the book's positions are the log's.

    `as_of`: the position of the book's last event, if the ledger has more.
    """
    shown = (lambda rows: written((rows[0], rows[1:]))) if has_positions else blanked
    expected = oracle_report(book, arguments)
    point = [] if as_of is None else ["--as-of", str(as_of)]
    found, failure = ledger.export([*arguments, *point])
    if expected is None:
        return [] if failure else ["an amount exceeds 64 bits, yet there is a report"]
    if failure:
        return [failure]
    try:
        return differences(shown(cells(expected)), shown(cells(found)))
    except (ValueError, csv.Error) as error:
        return [f"not CSV as the rules say: {error}"]


def in_parts(directory, name, lines):
    """The import files of the lines, one after another."""
    paths = []
    for part in range(IMPORTED_PARTS):
        paths.append(directory / f"{name}-{part}.ndjson")
        share = slice(
            len(lines) * part // IMPORTED_PARTS, len(lines) * (part + 1) // IMPORTED_PARTS
        )
        text = "".join(line + "\n" for line in lines[share])
        paths[-1].write_text(text, encoding="utf-8")
    return paths


class Comparison:
    """Counts the reports that agree, and shows differences."""

    def __init__(self, users_to_erase=0):
        self.passed = self.failed = 0
        self.users_to_erase = users_to_erase

    def note(self, name, found):
        if found:
            self.failed += 1
            print(f"\nDIFFERS: {name}", *found, sep="\n")
        else:
            self.passed += 1

    def compare_all(self, ledger, book, matrix, has_positions=False, as_of=None):
        for line in matrix:
            name = f"export {line}" if as_of is None else f"export {line} --as-of {as_of}"
            self.note(name, compare(ledger, book, shlex.split(line), has_positions, as_of))

    def erase(self, ledger, matrix):
        """Erases users, if requested, and compares once more."""
        if self.users_to_erase:
            erased = erasure.Erasure(self, ledger, matrix).run(self.users_to_erase)
            print(f"{erased} users erased")

    def random_case(self, directory, arguments, sign):
        """A random history from the seed; then receipts come again, and malformed events follow."""
        print(f"seed {arguments.seed}, {arguments.uploads} uploads")
        written = write_cases(
            directory, arguments.seed, arguments.uploads, arguments.nasty, sign
        )
        ledger = Ledger(arguments.ledgerctl, directory / "ledger")
        ledger.fill(*written, root_sha256=sign.root_sha256())
        self.compare_all(ledger, read_book(*written, declared=DECLARED), MATRIX)
        self.erase(ledger, MATRIX)
        if (directory / "ledger" / "log").is_dir():
            for events in (generate_again.events, generate_malformed.events):
                ledger.append(events, arguments.seed)
                self.compare_all(ledger, read_log(ledger.lines()), MALFORMED_MATRIX)

    def stories(self, directory, arguments, sign):
        """Short stories of refunds, imported in parts: the state is saved and loaded in between."""
        print(f"seed {arguments.seed}, {arguments.stories} stories")
        lines = generate_stories.lines(arguments.seed, arguments.stories, sign)
        paths = in_parts(directory, "stories", lines)
        ledger = Ledger(arguments.ledgerctl, directory / "ledger")
        ledger.fill(paths, root_sha256=sign.root_sha256())
        self.compare_all(ledger, read_book(paths, [], []), generate_stories.REPORTS)

    def subscriptions(self, directory, arguments, sign):
        """Subscriptions over time, imported in parts; then from the log, and with fetched pages."""
        print(f"seed {arguments.seed}, {arguments.subscriptions} subscriptions")
        lines = generate_subscriptions.lines(arguments.seed, arguments.subscriptions, sign)
        paths = in_parts(directory, "subscriptions", lines)
        prices = directory / "prices.csv"
        prices.write_text(generate_subscriptions.PRICE_LIST, encoding="ascii")
        ledger = Ledger(arguments.ledgerctl, directory / "ledger")
        ledger.fill(paths, [prices], root_sha256=sign.root_sha256())
        book = read_book(paths, [prices], [], declared=DECLARED)
        self.compare_all(ledger, book, generate_subscriptions.REPORTS)
        if (directory / "ledger" / "log").is_dir():
            for events in (generate_fetched.events, None):
                book = read_log(ledger.lines())
                self.compare_all(ledger, book, generate_subscriptions.LOG_REPORTS, has_positions=True)
                if events is not None:
                    ledger.append(events, arguments.seed)
            self.erase(ledger, [*generate_subscriptions.REPORTS, *generate_subscriptions.LOG_REPORTS])

    def settlement(self, directory, arguments, sign):
        """Apple's reports of a ledger's sales in every form, and files that are odd or refused."""
        print(f"seed {arguments.seed}, {arguments.settlement} sales")
        SettlementComparison(
            self.note, differences, lambda path: Ledger(arguments.ledgerctl, path), directory
        ).run(arguments.seed, arguments.settlement, sign)

    def all_orders(self, directory, arguments, sign):
        """One sale shown in four ways, in all orders (R12)."""
        path = directory / "orders.ndjson"
        path.write_text("".join(line + "\n" for line in four_ways.lines(sign)), encoding="utf-8")
        ledger = Ledger(arguments.ledgerctl, directory / "ledger")
        ledger.fill([path], root_sha256=sign.root_sha256())
        self.compare_all(ledger, read_book([path], [], []), four_ways.REPORTS)
        shown = []
        for line in four_ways.REPORTS[:2]:
            data, _ = ledger.export(line.split())
            shown.append(list(csv.DictReader(io.StringIO((data or b"").decode(), newline=""))))
        self.note("one sale in all orders", four_ways.differences(shown))


def main():
    parser = argparse.ArgumentParser(description="Compares ledgerctl with the oracle.")
    parser.add_argument("--ledgerctl", required=True, metavar="PATH",
                        help="app-store-stand-in, which signs, stands beside it")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--uploads", type=int)
    parser.add_argument("--orders", action="store_true",
                        help="no random history: one sale seen four ways, in all orders")
    parser.add_argument("--stories", type=int, metavar="N",
                        help="no random history: N sales with short stories of refunds")
    parser.add_argument("--subscriptions", type=int, metavar="N",
                        help="no random history: the lives of N subscriptions")
    parser.add_argument("--settlement", type=int, metavar="N",
                        help="no random history: Apple's reports of N sales")
    parser.add_argument("--redact", type=int, default=0, metavar="N",
                        help="then erase N users, and compare all reports again, also with those before")
    parser.add_argument("--nasty", action="store_true", help="also what the rules leave open")
    parser.add_argument("--authority", metavar="DIRECTORY",
                        help="the test authority's; made on first use, so that more runs can share it")
    parser.add_argument("--keep", metavar="DIRECTORY", help="where the case and the ledger stay")
    arguments = parser.parse_args()
    counts = (arguments.uploads, arguments.stories, arguments.subscriptions, arguments.settlement)
    if not arguments.orders and (arguments.seed is None or set(counts) == {None}):
        parser.error("--seed with --uploads, --stories, --subscriptions or --settlement, or --orders")
    if arguments.redact and (arguments.orders or arguments.stories or arguments.settlement):
        parser.error("--redact goes with --uploads or --subscriptions: the other histories name no users")
    if arguments.redact and arguments.nasty:
        parser.error("--redact does not go with --nasty: malformed events are in no projection, so an "
                     "erasure finds none of those that name a user; its certificate counts them as remaining")
    csv.field_size_limit(2**31 - 1)
    comparison = Comparison(arguments.redact)
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(arguments.keep or temporary)
        directory.mkdir(parents=True, exist_ok=True)
        signer = pathlib.Path(arguments.ledgerctl).with_name("app-store-stand-in")
        sign = StandIn(signer, arguments.authority or directory / "authority")
        run = comparison.stories if arguments.stories else comparison.random_case
        run = comparison.subscriptions if arguments.subscriptions else run
        run = comparison.settlement if arguments.settlement else run
        run = comparison.all_orders if arguments.orders else run
        run(directory, arguments, sign)
    print(f"{comparison.passed} passed, {comparison.failed} failed")
    sys.exit(1 if comparison.failed else 0)


if __name__ == "__main__":
    main()
