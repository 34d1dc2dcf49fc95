# The command `receipt-ledger-spark`, called in this process, so that Java starts once.

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import expected
import programs
from programs import ROOT, RULES

MASTER = "local[2]"
PACKAGE = ROOT / "spark"
INTERRUPTED = 130


def is_there() -> bool:
    """Whether Spark can run here: PySpark, pyarrow and Java."""
    modules = all(importlib.util.find_spec(name) for name in ("pyspark", "pyarrow"))
    return modules and (shutil.which("java") is not None or "JAVA_HOME" in os.environ)


needs_spark = unittest.skipUnless(is_there(), "PySpark or Java is not installed")


def prepare() -> None:
    """Makes the package known to Spark's workers, which are processes of their own."""
    known = os.environ.get("PYTHONPATH", "")
    if str(PACKAGE) not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE), known]))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("LEDGER_RULES", str(RULES))


@dataclasses.dataclass(frozen=True)
class Outcome:
    code: int
    output: str
    errors: str


def command(*arguments: object) -> Outcome:
    """Runs one command line."""
    prepare()
    from receipt_ledger_spark.cli import main

    # Child programs write to these files themselves.
    with tempfile.TemporaryFile() as first, tempfile.TemporaryFile() as second:
        output, errors = (
            io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
            for file in (first, second))
        with (contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors),
              warnings.catch_warnings()):
            # Sockets that PySpark leaves open.
            warnings.simplefilter("ignore", ResourceWarning)
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
        texts = []
        for stream in (output, errors):
            stream.flush()
            stream.seek(0)
            texts.append(stream.read())
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return Outcome(code or 0, *texts)


def manifest(out: pathlib.Path) -> dict:
    """What an output says of itself."""
    return json.loads(next((out / "manifest").glob("part-*")).read_text())


class SparkTests(unittest.TestCase):
    """Tests that run commands and look at their output folders."""

    maxDiff = None

    def command(self, *arguments: object) -> Outcome:
        outcome = command(*arguments)
        shown = " ".join(map(str, arguments))
        self.assertEqual(outcome.code, 0, f"receipt-ledger-spark {shown}\n{outcome.errors}")
        return outcome

    def run_spark(
        self, out: pathlib.Path, ledgers: list[pathlib.Path], *options: object,
        partitions: int | None = 2, master: str = MASTER,
    ) -> Outcome:
        named = [word for ledger in ledgers for word in ("--ledger", ledger)]
        folds = [] if partitions is None else ["--partitions", partitions]
        return self.command(
            "run", *named, "-o", out, "--master", master, *folds, *options)

    def rows(self, out: pathlib.Path, report: str) -> list[list[str]]:
        return expected.cells(
            self.command("csv", out, report, "--master", MASTER).output)

    def all_rows(self, out: pathlib.Path) -> dict[str, list[list[str]]]:
        """Every report, in one session of Spark."""
        from pyspark.sql import SparkSession

        with mock.patch.object(SparkSession, "stop"):
            found = {report: self.rows(out, report) for report in expected.REPORTS}
        session = SparkSession.getActiveSession()
        if session is not None:
            session.stop()
        return found

    def assert_report(
        self, wanted: list[list[str]], out: pathlib.Path, report: str, about: str = ""
    ) -> None:
        self.assert_rows(wanted, self.rows(out, report), report, about)

    def assert_rows(
        self, wanted: list[list[str]], found: list[list[str]], report: str, about: str = ""
    ) -> None:
        difference = expected.difference(wanted, found)
        if difference:
            self.fail(f"{about}: {report} differs\n{difference}")

    def assert_same(
        self, out: pathlib.Path, ledger: pathlib.Path, options: expected.Options,
        places: list[str] | None = None, about: str = "",
    ) -> None:
        """Every report must be that of the ledger, whose positions `places` maps."""
        for report, found in self.all_rows(out).items():
            with self.subTest(report=report, about=about):
                wanted = expected.export(ledger, report, options)
                if places is not None:
                    wanted = expected.mapped(wanted, places)
                self.assert_rows(wanted, found, report, about)

    def assert_merged(
        self, folder: pathlib.Path, ledgers: list[pathlib.Path], options: expected.Options,
        *until: object, partitions: int = 2, about: str = "",
    ) -> pathlib.Path:
        """Every report of a fleet must be that of its merge up to the same time; returns the output."""
        folder.mkdir()
        merged = programs.merge(ledgers, folder / "merged", *until)
        out = folder / "out"
        self.run_spark(out, ledgers, *options.of_run(), *until, partitions=partitions)
        self.assert_same(out, merged, options, expected.places_of(merged, ledgers),
                         f"{about}, {len(ledgers)} ledgers, {partitions} partitions, {options}")
        return out
