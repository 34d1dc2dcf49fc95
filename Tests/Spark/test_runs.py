# Successive runs: a fleet that grows, the same heads, a run that was killed, what an output says.

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import duckdb
import expected
import programs
import spark
from expected import Options
from histories import History
from test_equality import SEED

UPLOADS = 40
OPTIONS = Options(environment="all")
WAIT_SECONDS = 300


@spark.needs_spark
class RunTests(spark.SparkTests):
    @classmethod
    def setUpClass(cls) -> None:
        temporary = programs.temporary_folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.history = History(
            cls.folder / "history", SEED + 2, UPLOADS, is_nasty=True, ledgers=3)
        cls.ledgers = cls.history.ledgers

    def run_to(self, name: str, fleet: pathlib.Path | None = None) -> pathlib.Path:
        out = self.folder / name
        if fleet is None:
            self.run_spark(out, self.ledgers, *OPTIONS.of_run())
        else:
            self.command("run", "--fleet", fleet, "-o", out, "--master", spark.MASTER,
                         "--partitions", 2, *OPTIONS.of_run())
        return out

    def grow(self) -> None:
        """More uploads to one ledger, of customers that other ledgers know too."""
        lines = programs.run(
            "generate-history", "--uploads", 30, "--seed", SEED, "--small").splitlines()
        # And a sale that the fleet has already.
        more = self.folder / "more.ndjson"
        text = (self.history.folder / "import-1.ndjson").read_bytes()
        more.write_bytes("".join(line + "\n" for line in lines).encode() + text)
        programs.run(
            "ledgerctl", "import", more, "--register-apps", "--ledger", self.ledgers[0],
            allowed=(0, 3))

    def assert_fleet(self, out: pathlib.Path, about: str) -> None:
        merged = programs.merge(self.ledgers, self.folder / f"merged-{out.name}")
        places = expected.places_of(merged, self.ledgers)
        self.assert_same(out, merged, OPTIONS, places, f"seed {SEED}, {about}")

    def test_runs_of_a_fleet_that_grows(self) -> None:
        first = self.run_to("first")
        self.assert_fleet(first, "first run")
        wanted = self.all_rows(first)
        self.check_total(first, wanted["revenue"])
        self.check_tables(first, wanted)
        heads = spark.manifest(first)["ledgers"]
        self.grow()
        self.assert_fleet(self.run_to("second"), "after growth")
        # The heads of the first run give its rows again.
        pinned = programs.write_fleet(self.folder / "pinned.json", self.ledgers, **{
            each["name"].replace("-", "_"): {
                "head": {"size": each["size"], "root": each["root"]}} for each in heads})
        later = self.run_to("later", pinned)
        for report, rows in self.all_rows(later).items():
            with self.subTest(report=report):
                self.assert_rows(wanted[report], rows, report)
        self.assertEqual(spark.manifest(later)["ledgers"], heads)

    def check_total(self, out: pathlib.Path, revenue: list[list[str]]) -> None:
        """`total` prints the sum of each currency's rows."""
        header, *body = revenue
        currency, net = header.index("currency"), header.index("net")
        totals: dict[str, int] = {}
        for row in body:
            if row[currency]:
                totals[row[currency]] = totals.get(row[currency], 0) + micros(row[net])
        lines = expected.cells(
            self.command("total", out, "--master", spark.MASTER).output)
        place = lines[0].index("net")
        self.assertEqual(
            {line[0]: micros(line[place]) for line in lines[1:] if line[0]}, totals)

    def check_tables(self, out: pathlib.Path, rows: dict[str, list[list[str]]]) -> None:
        """Another engine reads the tables, and finds lines in the folder of their month."""
        self.assertEqual(
            spark.manifest(out)["rows"],
            {report: len(found) - 1 for report, found in rows.items()})
        for report in expected.REPORTS:
            self.assertTrue((out / report / "_SUCCESS").exists())
            files = f"read_parquet('{out}/{report}/**/*.parquet', hive_partitioning = true)"
            count = duckdb.sql(f"SELECT count(*) FROM {files}").fetchall()
            self.assertEqual(count, [(len(rows[report]) - 1,)], report)
        lines = f"read_parquet('{out}/journal/**/*.parquet', hive_partitioning = true)"
        wrong = duckdb.sql(
            f"SELECT count(*) FROM {lines} WHERE "
            "strftime(make_timestamp(epoch_us(date)), '%Y-%m') <> month").fetchall()
        self.assertEqual(wrong, [(0,)])

    def test_a_run_that_was_killed_is_repeated(self) -> None:
        out = self.folder / "killed"
        words = [word for ledger in self.ledgers for word in ("--ledger", str(ledger))]
        spark.prepare()
        process = subprocess.Popen(
            [sys.executable, "-m", "receipt_ledger_spark", "run", *words, "-o", out,
             "--master", spark.MASTER, "--partitions", "2", *OPTIONS.of_run()],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        deadline = time.monotonic() + WAIT_SECONDS
        while not (out / "sales").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.assertFalse((out / "manifest").exists())
        refused = spark.command("total", out, "--master", spark.MASTER)
        self.assertEqual(refused.code, 2, "half an output is read")
        other = spark.command(
            "run", *words, "-o", out, "--master", spark.MASTER, "--timezone", "Asia/Tokyo")
        self.assertEqual(other.code, 2, "an unfinished output of other options is replaced")
        self.run_to("killed")
        self.run_to("whole")
        self.assertEqual(spark.manifest(out)["rows"], spark.manifest(self.folder / "whole")["rows"])
        self.assertEqual(list(out.rglob("_temporary")), [])


def micros(text: str) -> int:
    """An exact amount in micros."""
    whole, _, part = text.lstrip("-").partition(".")
    value = int(whole) * 10**6 + int((part + "000000")[:6])
    return -value if text.startswith("-") else value


if __name__ == "__main__":
    unittest.main()
