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

    def check_ledger(self, name: str, partitions: int, options: Options, *ledger: pathlib.Path) -> None:
        out = self.folder / f"out-{name}"
        self.run_spark(out, list(ledger), *options.of_run(), partitions=partitions)
        self.assert_same(out, ledger[0], options, about=f"seed {SEED}, {options}")

    def test_a_ledger_as_it_was_written(self) -> None:
        history = History(self.folder / "one", SEED, UPLOADS, is_nasty=True)
        self.check_ledger("one", 1, Options(), history.ledger)
        segmented = programs.resegment([history.ledger], self.folder / "segments", 30_000)
        self.check_ledger("segments", 8, EVERYTHING, *segmented)

    def check_fleet(
        self, name: str, count: int, partitions: int, options: Options, is_whole: bool = False
    ) -> None:
        history = History(self.folder / name, SEED, UPLOADS, is_nasty=True, ledgers=count)
        until = ["--until", programs.now()] if is_whole else []
        self.assert_merged(
            self.folder / f"{name}-compared", history.ledgers, options, *until, partitions=partitions,
            about=f"seed {SEED}")

    def test_two_ledgers(self) -> None:
        self.check_fleet("two", 2, 2, IN_EUROS)

    def test_three_ledgers_until_a_time(self) -> None:
        self.check_fleet("three", 3, 64, EVERYTHING, is_whole=True)

    def test_eight_ledgers(self) -> None:
        self.check_fleet("eight", 8, 8, LATE_RATES)


@spark.needs_spark
class ErasureTests(spark.SparkTests):
    """Ledgers with erased users: the lines that Spark reads keep the figures."""

    @classmethod
    def setUpClass(cls) -> None:
        temporary = programs.temporary_folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        print(f"\nSPARK_TEST_SEED={SEED}", flush=True)

    def assert_erased(self, out: pathlib.Path, users: list[str]) -> None:
        for report in ("sales", "journal", "users", "exceptions", "subscriptions"):
            header, *rows = self.rows(out, report)
            place = header.index("user_identifier")
            named = {row[place] for row in rows} & set(users)
            self.assertFalse(named, f"seed {SEED + 2}: {report} names users that were erased")

    def test_a_redacted_ledger(self) -> None:
        history = History(self.folder / "one", SEED + 2, UPLOADS, is_nasty=False)
        before, after = self.folder / "before", self.folder / "after"
        self.run_spark(before, history.ledgers, *EVERYTHING.of_run())
        users = history.erase(3)
        self.assertTrue(users, f"seed {SEED + 2}: the history names no users")
        self.run_spark(after, history.ledgers, *EVERYTHING.of_run())
        self.assert_same(after, history.ledger, EVERYTHING, about=f"seed {SEED + 2}, redacted")
        self.assert_erased(after, users)
        # No amount or count depends on who a user was.
        self.assert_report(self.rows(before, "revenue"), after, "revenue", f"seed {SEED + 2}")

    def test_a_redacted_fleet(self) -> None:
        history = History(self.folder / "fleet", SEED + 3, UPLOADS, is_nasty=False, ledgers=3)
        history.erase(3)
        # Of later events some name erased users, and some erasures come after the others' last events.
        history.leave_pending()
        history.erase(3)
        self.assert_merged(
            self.folder / "fleet-cut", history.ledgers, EVERYTHING, about=f"seed {SEED + 3}, redacted")
        self.assert_merged(
            self.folder / "fleet-whole", history.ledgers, EVERYTHING, "--until", programs.now(),
            about=f"seed {SEED + 3}, redacted, whole")


if __name__ == "__main__":
    unittest.main()
