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
        self, folder: pathlib.Path, source: pathlib.Path, into: int, partitions: int,
        options: Options, master: str, *split: object, watch: Watch | None = None,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """Splits the source, merges it, runs Spark and compares every report."""
        ledgers = programs.split(
            source, into, self.seed, folder / "fleet", *split, segment_bytes=segment_bytes)
        merged, places = ledgers[0], None
        if into > 1:
            merged = folder / "merged"
            programs.run(
                "fleet-ledgers", "merge", *ledgers, "-o", merged, "--map", folder / "map.csv")
            places = expected.read_map(folder / "map.csv")
        with watch or Watch():
            self.run_spark(
                folder / "out", ledgers, *options.of_run(), partitions=partitions,
                master=master)
        differences = []
        for report, rows in self.all_rows(folder / "out").items():
            wanted = expected.export(merged, report, options)
            if places is not None:
                wanted = expected.mapped(wanted, places)
            found = expected.difference(wanted, rows)
            if found:
                differences.append(f"{report}: {found}")
        if differences:
            about = f"seed {self.seed}, {into} ledgers, {partitions} partitions, {options}"
            raise AssertionError("\n".join([about, *differences]))

    # Parts

    def equality(self, folder: pathlib.Path) -> str:
        """A random history, fleet and choice of options."""
        chance = random.Random(self.seed)
        history = History(
            folder / "history", self.seed, chance.randrange(20, 250), chance.random() < 0.7)
        into, partitions = chance.randrange(1, 9), chance.choice((1, 2, 8, 64))
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
        split = ["--stray-percent", chance.choice((0, 1, 10))]
        if chance.random() < 0.8:
            split += ["--spread-ms", chance.choice((1, 1_000, 600_000))]
        self.compare(
            folder, history.ledger, into, partitions, options, spark.MASTER, *split,
            segment_bytes=chance.choice((30_000, 60_000, SEGMENT_BYTES)))
        return f": {into} ledgers, {partitions} partitions, {options}"

    def large(self, folder: pathlib.Path, uploads: int) -> pathlib.Path:
        """A ledger of many customers."""
        source, lines = folder / "source", folder / "history.ndjson"
        prices, rates = folder / "prices.csv", folder / "rates.csv"
        programs.run(
            "generate-history", "--uploads", uploads, "--seed", self.seed, "--small", "-o", lines,
            "--prices", prices, "--rates", rates)
        programs.run("ledgerctl", "init", source, "--origin", "example.com/large")
        programs.run(
            "ledgerctl", "import", lines, "--register-apps", "--ledger", source, allowed=(0, 3))
        programs.run("ledgerctl", "prices", "import", prices, "--ledger", source)
        programs.run("ledgerctl", "rates", "import", rates, "--ledger", source)
        lines.unlink()
        return source

    def kills(self, folder: pathlib.Path, uploads: int) -> str:
        """Executors that are killed while they scan and fold."""
        watch = Watch(self.seed, kills_max=3, pause_seconds=(0.2, 4))
        options = Options(environment="all", currency="EUR", by="period,app")
        self.compare(
            folder, self.large(folder, uploads), 3, 8, options, CLUSTER,
            "--spread-ms", 60_000, watch=watch)
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
        watch = Watch()
        self.compare(
            folder, self.large(folder, uploads), 2, 4, Options(environment="all"), CLUSTER,
            watch=watch, segment_bytes=256 * MIB)
        if watch.peak_bytes > EXECUTOR_BYTES_MAX:
            raise AssertionError(f"an executor took {watch.peak_bytes // MIB} MiB")
        return (f": an executor took up to {watch.peak_bytes // MIB} MiB, "
                f"ledger-rules {watch.peak_rules_bytes // MIB} MiB")

    def skewed(self, folder: pathlib.Path, lines: list[str], into: int) -> str:
        watch = Watch()
        source = skew.ledger(folder / "history", lines)
        self.compare(
            folder, source, into, 8, Options(environment="all"), CLUSTER,
            "--spread-ms", 1_000, "--stray-percent", 0, watch=watch)
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
