# Shared by these tests: ledgers with Apple's reports, and what accounting programs count in their entries.
import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections import defaultdict
from decimal import Decimal

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEDGERCTL = os.environ.get("LEDGERCTL", str(ROOT / ".build/debug/ledgerctl"))
PUBLISHED = ROOT.parent / "shared/fixtures/apple-reports"
PATH = os.pathsep.join([
    str(pathlib.Path(LEDGERCTL).resolve().parent), str(pathlib.Path(sys.executable).parent),
    os.environ["PATH"]])
PROGRAMS = {"hledger": "hledger", "beancount": "bean-check"}
ENDINGS = {"hledger": ".journal", "beancount": ".beancount"}
LIMIT_S = 600

sys.path.insert(0, str(ROOT / "Tests/Oracle"))
from compare import Ledger  # noqa: E402
from generate_settlement import MIXED, Reports  # noqa: E402
from generate_settlement_plants import planted_purchases  # noqa: E402
from generate_settlement_sales import Sales  # noqa: E402
from log import read_log  # noqa: E402
from settlement_matching import ledger_lines  # noqa: E402
from signing import StandIn  # noqa: E402

# Of products of the generator whose sales partly have no price of their own.
PRICE_LIST = """\
product_id,country_code,currency,price,effective_from
coins,DE,EUR,0.99,2025-01-01
pro.month,US,USD,4.99,2025-01-01
"""


def is_installed(program):
    return shutil.which(program, path=PATH) is not None


def run(*command, folder=None, allowed=(0,)):
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env=os.environ | {"PATH": PATH}, capture_output=True,
        stdin=subprocess.DEVNULL, text=True, timeout=LIMIT_S)
    if allowed is not None and done.returncode not in allowed:
        raise AssertionError(f"{command} exited with {done.returncode}: {done.stderr[:2000]}")
    return done


def ledger_of_sales(folder, seed, count):
    """A ledger of that many sales and of planted ones, with prices, a map, and Apple's files in each form."""
    sign = StandIn(pathlib.Path(LEDGERCTL).with_name("app-store-stand-in"), folder / "authority")
    sales = Sales(seed)
    lines = sales.orders.resolve(sales.lines(count, planted_purchases()), sign)
    (folder / "sales.ndjson").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    (folder / "prices.csv").write_text(PRICE_LIST, encoding="ascii")
    ledger = Ledger(LEDGERCTL, folder / "ledger")
    ledger.fill([folder / "sales.ndjson"], [folder / "prices.csv"], root_sha256=sign.root_sha256())
    made = Reports(seed, MIXED, list(ledger_lines(read_log(ledger.lines()))))
    import_reports(ledger, folder / "files", made.files() | made.others() | made.overviews())
    ledger.run("--ledger", ledger.directory, "settlement", "map", "plant.no_receipt=coins")
    return ledger


def import_reports(ledger, folder, texts):
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    ledger.run("--ledger", ledger.directory, "settlement", "import", *(str(folder / name) for name in texts))


def published_ledger(folder):
    """A ledger that has the published month alone."""
    ledger = Ledger(LEDGERCTL, folder / "ledger")
    ledger.run("init", ledger.directory, "--origin", "example.com/published")
    paths = [*sorted(PUBLISHED.glob("*.txt")), PUBLISHED / "financial_report.csv"]
    ledger.run("--ledger", ledger.directory, "settlement", "import", *map(str, paths))
    return ledger


def export(ledger, path, report, *options):
    """Writes a report, in the format of the path's ending."""
    ledger.run("--ledger", ledger.directory, "export", report, "--output", str(path), *map(str, options))
    return path


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


# Sums by key; what is 0 is left out.


def sums(pairs):
    found = defaultdict(Decimal)
    for key, amount in pairs:
        found[key] += Decimal(amount)
    return {key: amount for key, amount in found.items() if amount}


def balances_of_csv(path):
    """{(account, currency): sum} of the rows."""
    return sums(((row["account"], row["currency"]), row["amount"]) for row in rows(path))


def unbalanced(path):
    """The entries that do not add up to 0 in each currency, to the last digit."""
    return sums(((row["entry"], row["currency"]), row["amount"]) for row in rows(path))


def hledger(path, *words):
    text = run("hledger", "-f", path, *words, "-O", "csv").stdout
    return csv.DictReader(io.StringIO(text, newline=""))


def balances_of_hledger(path):
    found = hledger(path, "balance", "--flat", "--no-total", "--layout=bare")
    return sums(((row["account"], row["commodity"]), row["balance"]) for row in found)


def days_of_hledger(path, account, *query):
    """{(day, currency): sum} of one account."""
    found = hledger(path, "balance", "--daily", "--layout=tidy", f"^{account}$", *query)
    return sums(((row["period"], row["commodity"]), row["value"]) for row in found)


# Beancount has no program that prints balances: its library counts them.
BALANCES = """\
import json, sys
from beancount import loader
entries, errors, _ = loader.load_file(sys.argv[1])
assert not errors, errors[:3]
found = {}
for entry in entries:
    for posting in getattr(entry, "postings", []):
        key = f"{posting.account} {posting.units.currency}"
        found[key] = found.get(key, 0) + posting.units.number
json.dump({key: str(number) for key, number in found.items()}, sys.stdout)
"""


def balances_of_beancount(path):
    # The interpreter that runs bean-check has the library.
    first = pathlib.Path(shutil.which("bean-check", path=PATH)).read_text().splitlines()[0]
    found = json.loads(run(first.removeprefix("#!").strip(), "-c", BALANCES, path).stdout)
    return sums((tuple(key.rsplit(" ", 1)), number) for key, number in found.items())


BALANCES_OF = {"hledger": balances_of_hledger, "beancount": balances_of_beancount}


def check(format, path):
    """What the format's program says of a file: (its exit status, its message)."""
    if format == "hledger":
        done = run("hledger", "check", "--strict", "ordereddates", "-f", path, allowed=None)
    else:
        done = run("bean-check", "--no-cache", path, allowed=None)
    return done.returncode, done.stderr.strip() + done.stdout.strip()
