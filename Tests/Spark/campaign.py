# The long campaign: many random histories, killed executors, skewed and large histories.
#
# script/test-all spark runs it.

from __future__ import annotations

import argparse
import pathlib
import random
import sys
import time
import traceback
from collections.abc import Callable

import expected
import programs
import skew
import spark
from executors import Processes, Watch
from expected import Options
from histories import History

CLUSTER = "local-cluster[2,1,1024]"
MIB = 1 << 20
EXECUTOR_BYTES_MAX = 1 << 30
REST_SECONDS = 10
DIMENSIONS = ("period", "app", "product", "country", "environment", "basis", "trust")
SEGMENT_BYTES = 1_000_000


class Campaign(spark.SparkTests):
    """Runs parts, counts passes, and keeps failures."""

    def __init__(self, folder: pathlib.Path, seed: int, is_keeping: bool) -> None:
        super().__init__()
        self.folder, self.seed, self.is_keeping = folder, seed, is_keeping
        self.passed = self.failed = 0

    def runTest(self) -> None:
        """Empty: unittest requires the method."""

    def attempt(self, name: str, body: Callable[[pathlib.Path], str]) -> None:
        """Runs a case in a folder of its own."""
        began = time.monotonic()
        folder = self.folder / name
        folder.mkdir()
        try:
            said = body(folder)
        except Exception:
            self.failed += 1
            print(f"FAILED {name}", flush=True)
            traceback.print_exc()
            return
        self.passed += 1
        print(f"passed {name} in {time.monotonic() - began:.1f} s{said}", flush=True)
        if not self.is_keeping:
            programs.remove(folder)

    def compare(
        self, folder: pathlib.Path, ledgers: list[pathlib.Path], partitions: int | None,
        options: Options, master: str, *until: object, watch: Watch | None = None,
    ) -> None:
        """Merges the ledgers, runs Spark and compares every report."""
        wanted_of, places = ledgers[0], None
        if len(ledgers) > 1:
            wanted_of = programs.merge(ledgers, folder / "merged", *until)
            places = expected.places_of(wanted_of, ledgers)
        with watch or Watch():
            self.run_spark(
                folder / "out", ledgers, *options.of_run(), *until, partitions=partitions,
                master=master)
        differences = []
        for report, rows in self.all_rows(folder / "out").items():
            wanted = expected.export(wanted_of, report, options)
            if places is not None:
                wanted = expected.mapped(wanted, places)
            found = expected.difference(wanted, rows)
            if found:
                differences.append(f"{report}: {found}")
        if differences:
            about = f"seed {self.seed}, {len(ledgers)} ledgers, {partitions} partitions, {options}"
            raise AssertionError("\n".join([about, *differences]))

    # Parts

    def equality(self, folder: pathlib.Path) -> str:
        """A random history, fleet and choice of options."""
        chance = random.Random(self.seed)
        into, partitions = chance.randrange(1, 9), chance.choice((1, 2, 8, 64))
        history = History(
            folder / "history", self.seed, chance.randrange(20, 250), chance.random() < 0.7, into)
        if chance.random() < 0.3:
            history.erase(3)
            history.leave_pending()
            history.erase(1)
        options = Options(
            by=",".join(chance.sample(DIMENSIONS, chance.randrange(1, 6))),
            timezone=chance.choice((None, "Asia/Kolkata", "America/St_Johns", "Pacific/Apia")),
            environment=chance.choice((None, "all", "all", "Sandbox", "Production,Sandbox")),
            refunds=chance.choice((None, "sale-date")), has_pending=chance.random() < 0.5)
        if chance.random() < 0.5:
            options = Options(**(vars(options) | {
                "currency": chance.choice(("EUR", "USD", "JPY", "KWD")),
                "rates_max_age": chance.choice((None, 0, 5, 90))}))
        if "period" not in options.by and options.currency is None:
            options = Options(**(vars(options) | {"timezone": None}))
        ledgers = programs.resegment(
            history.ledgers, folder / "fleet", chance.choice((30_000, 60_000, SEGMENT_BYTES)))
        until = ["--until", programs.now()] if chance.random() < 0.5 else []
        self.compare(folder, ledgers, partitions, options, spark.MASTER, *until)
        return f": {into} ledgers, {partitions} partitions, {options}"

    def fleet(
        self, folder: pathlib.Path, lines: list[str], into: int, segment_bytes: int = SEGMENT_BYTES
    ) -> list[pathlib.Path]:
        """Ledgers that have imported the lines, each its own and some of another's."""
        chance = random.Random(self.seed)
        made = []
        for number in range(into):
            ledger, path = folder / f"whole-{number + 1}", folder / "lines.ndjson"
            path.write_text("".join(
                line + "\n" for at, line in enumerate(lines)
                if at % into == number or chance.random() < 0.1))
            programs.run("ledgerctl", "init", ledger, "--origin", f"example.com/{number + 1}")
            programs.run(
                "ledgerctl", "import", path, "--register-apps", "--ledger", ledger, allowed=(0, 3))
            made.append(ledger)
        return programs.resegment(made, folder / "fleet", segment_bytes)

    def large(
        self, folder: pathlib.Path, uploads: int, into: int, segment_bytes: int = SEGMENT_BYTES
    ) -> list[pathlib.Path]:
        """Ledgers of many customers."""
        lines, prices, rates = (folder / name for name in ("lines", "prices.csv", "rates.csv"))
        programs.run(
            "generate-history", "--uploads", uploads, "--seed", self.seed, "--small", "-o", lines,
            "--prices", prices, "--rates", rates)
        ledgers = self.fleet(folder, lines.read_text().split("\n")[:-1], into, segment_bytes)
        lines.unlink()
        for ledger in ledgers:
            programs.run(
                "ledgerctl", "prices", "import", prices, "--allow-zero", "--ledger", ledger)
            programs.run("ledgerctl", "rates", "import", rates, "--ledger", ledger)
        return ledgers

    def kills(self, folder: pathlib.Path, uploads: int) -> str:
        """Executors that are killed while they scan and fold."""
        watch = Watch(self.seed, kills_max=3, pause_seconds=(0.2, 4))
        options = Options(environment="all", currency="EUR", by="period,app")
        ledgers = self.large(folder, uploads, 3)
        self.compare(folder, ledgers, 8, options, CLUSTER, "--until", programs.now(), watch=watch)
        if not watch.killed:
            raise AssertionError("no executor was killed: the history is too short")
        deadline = time.monotonic() + REST_SECONDS
        while Processes().rules() and time.monotonic() < deadline:
            time.sleep(0.2)
        if Processes().rules():
            raise AssertionError("runs of ledger-rules outlived the run of Spark")
        return f": killed while they ran {', '.join(watch.killed)}"

    def memory(self, folder: pathlib.Path, uploads: int) -> str:
        """An executor's memory: Java, Python and the program together."""
        from pyspark import SparkContext

        watch = Watch()
        # Settings start Java, which hands its environment on to the workers.
        spark.prepare()
        # The last part: the settings stay.
        for line in (programs.ROOT / "examples/spark/executors.conf").read_text().splitlines():
            if not line.startswith("#"):
                SparkContext.setSystemProperty(*line.split(maxsplit=1))
        self.compare(
            folder, self.large(folder, uploads, 2, 256 * MIB), None, Options(environment="all"),
            CLUSTER, "--until", programs.now(), watch=watch)
        if watch.peak_bytes > EXECUTOR_BYTES_MAX:
            raise AssertionError(f"an executor took {watch.peak_bytes // MIB} MiB")
        return (f": an executor took up to {watch.peak_bytes // MIB} MiB, "
                f"ledger-rules {watch.peak_rules_bytes // MIB} MiB")

    def skewed(self, folder: pathlib.Path, lines: list[str], into: int) -> str:
        watch = Watch()
        self.compare(
            folder, self.fleet(folder, lines, into), 8, Options(environment="all"), CLUSTER,
            "--until", programs.now(), watch=watch)
        return f": an executor took up to {watch.peak_bytes // MIB} MiB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Campaign of the reports on Spark.")
    parser.add_argument("--programs", help="where the build lies; LEDGERCTL names it too")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=30, help="how many random histories")
    parser.add_argument("--kills", type=int, default=3, help="how many runs with kills")
    parser.add_argument("--uploads", type=int, default=20_000, help="of a history with kills")
    parser.add_argument("--large", type=int, default=400_000, help="uploads of the large history")
    parser.add_argument("--sales", type=int, default=100_000, help="of the one customer")
    parser.add_argument("--rows", type=int, default=10_000, help="of the one reply")
    parser.add_argument(
        "--part", choices=("equality", "kills", "skew", "memory"), help="only this part")
    parser.add_argument("--keep", metavar="DIRECTORY", help="where everything stays")
    arguments = parser.parse_args()
    if not spark.is_there():
        sys.exit("campaign.py: PySpark or Java is not installed")
    with programs.temporary_folder(in_memory=False) as temporary:
        folder = pathlib.Path(arguments.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        campaign = Campaign(folder, arguments.seed, arguments.keep is not None)

        def part(name: str) -> bool:
            return arguments.part in (None, name)

        if part("skew"):
            for into in (1, 3):
                campaign.attempt(f"skew-customer-{into}", lambda at, into=into: campaign.skewed(
                    at, skew.one_customer(arguments.sales), into))
                campaign.attempt(f"skew-reply-{into}", lambda at, into=into: campaign.skewed(
                    at, skew.one_reply(arguments.rows), into))
        for number in range(arguments.kills if part("kills") else 0):
            campaign.seed = arguments.seed + number
            campaign.attempt(
                f"kills-{campaign.seed}", lambda at: campaign.kills(at, arguments.uploads))
        for number in range(arguments.seeds if part("equality") else 0):
            campaign.seed = arguments.seed + number
            campaign.attempt(f"equality-{campaign.seed}", campaign.equality)
        if part("memory"):
            campaign.attempt("memory", lambda at: campaign.memory(at, arguments.large))
    print(f"{campaign.passed} passed, {campaign.failed} failed")
    sys.exit(1 if campaign.failed else 0)


if __name__ == "__main__":
    main()
