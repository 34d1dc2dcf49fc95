# Spark's reports equal ledgerctl's, for one ledger and for fleets.

from __future__ import annotations

import os
import pathlib
import random
import unittest

import expected
import programs
import spark
from expected import Options
from histories import History

# A fixed seed in place of a random one, to repeat a failure.
SEED = int(os.environ.get("SPARK_TEST_SEED", random.randrange(1_000_000)))
UPLOADS = 45

EVERYTHING = Options(
    by="period,app,product,country,environment,basis,trust", timezone="Asia/Kolkata",
    environment="all", has_pending=True)
IN_EUROS = Options(by="app", currency="EUR", environment="all", refunds="sale-date")
LATE_RATES = Options(
    by="period,country", currency="EUR", rates_max_age=5, timezone="America/St_Johns",
    environment="Production,Sandbox", has_pending=True)


@spark.needs_spark
class EqualityTests(spark.SparkTests):
    @classmethod
    def setUpClass(cls) -> None:
        temporary = programs.temporary_folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        print(f"\nSPARK_TEST_SEED={SEED}", flush=True)
        cls.history = History(cls.folder / "history", SEED, UPLOADS, is_nasty=True)

    def check_fleet(
        self, name: str, into: int, partitions: int, options: Options, *split: object
    ) -> None:
        folder = self.folder / name
        ledgers = programs.split(self.history.ledger, into, SEED, folder, *split)
        places = None
        merged = ledgers[0]
        if into > 1:
            merged = folder / "merged"
            programs.run("fleet-ledgers", "merge", *ledgers, "-o", merged, "--map",
                         folder / "map.csv")
            places = expected.read_map(folder / "map.csv")
        out = folder / "out"
        self.command(
            "run", "--fleet", folder / "fleet.json", "-o", out, "--master", spark.MASTER,
            "--partitions", partitions, *options.of_run())
        self.assert_same(
            out, merged, options, places,
            f"seed {SEED}, {into} ledgers, {partitions} partitions, {options}")

    def test_a_ledger_as_it_was_written(self) -> None:
        out = self.folder / "one"
        self.run_spark(out, [self.history.ledger], partitions=1)
        self.assert_same(out, self.history.ledger, Options(), about=f"seed {SEED}")

    def test_a_ledger_of_many_segments(self) -> None:
        self.check_fleet("segments", 1, 8, EVERYTHING)

    def test_two_ledgers(self) -> None:
        self.check_fleet("two", 2, 2, IN_EUROS, "--spread-ms", 200_000)

    def test_three_ledgers_recorded_at_once(self) -> None:
        self.check_fleet("three", 3, 64, EVERYTHING)

    def test_eight_ledgers(self) -> None:
        self.check_fleet(
            "eight", 8, 8, LATE_RATES, "--spread-ms", 200_000, "--stray-percent", 5)


@spark.needs_spark
class ErasureTests(spark.SparkTests):
    """Ledgers with erased users: the lines that Spark reads keep the figures."""

    @classmethod
    def setUpClass(cls) -> None:
        temporary = programs.temporary_folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        print(f"\nSPARK_TEST_SEED={SEED}", flush=True)
        cls.history = History(cls.folder / "history", SEED + 2, UPLOADS, is_nasty=False)

    def test_a_redacted_ledger(self) -> None:
        ledger = self.history.ledger
        before = self.folder / "before"
        self.run_spark(before, [ledger], *EVERYTHING.of_run())
        users = self.history.erase(3)
        self.assertTrue(users, f"seed {SEED + 2}: the history names no users")
        after = self.folder / "after"
        self.run_spark(after, [ledger], *EVERYTHING.of_run())
        self.assert_same(after, ledger, EVERYTHING, about=f"seed {SEED + 2}, redacted")
        for report in ("sales", "journal", "users", "exceptions", "subscriptions"):
            header, *rows = self.rows(after, report)
            place = header.index("user_identifier")
            named = {row[place] for row in rows} & set(users)
            self.assertFalse(named, f"seed {SEED + 2}: {report} names users that were erased")
        # No amount or count depends on who a user was.
        self.assert_report(self.rows(before, "revenue"), after, "revenue", f"seed {SEED + 2}")


if __name__ == "__main__":
    unittest.main()
