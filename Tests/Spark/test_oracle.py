# A program that follows the rules' text alone gets the same journal as Spark.

from __future__ import annotations

import argparse
import pathlib
import unittest

import expected
import programs
import spark
from histories import History
from test_equality import SEED

import reports
from log import read_log
from revenue_oracle import add_report_arguments, report_options

UPLOADS = 40
LEDGERS = 4
REPORTS = ("journal", "sales", "users", "revenue", "subscriptions")
OPTIONS = expected.Options(environment="all", currency="EUR", by="period,app")


@spark.needs_spark
class OracleTests(spark.SparkTests):
    def test_a_fleet_against_the_oracle(self) -> None:
        with programs.temporary_folder() as temporary:
            folder = pathlib.Path(temporary)
            # Where the rules are silent, the oracle is not asked.
            history = History(
                folder / "history", SEED + 1, UPLOADS, is_nasty=False, ledgers=LEDGERS)
            merged = programs.merge(history.ledgers, folder / "merged")
            places = expected.places_of(merged, history.ledgers)
            out = folder / "out"
            self.run_spark(out, history.ledgers, *OPTIONS.of_run(), partitions=4)
            book = read_log(programs.log_lines(merged))
            parser = argparse.ArgumentParser()
            add_report_arguments(parser)
            for report in REPORTS:
                options = report_options(parser.parse_args(OPTIONS.of_export(report)))
                columns, rows = reports.report(report, book, options)
                wanted = expected.cells(reports.csv_text(columns, rows))
                with self.subTest(report=report):
                    self.assert_report(
                        expected.mapped(wanted, places), out, report, f"seed {SEED + 1}")


if __name__ == "__main__":
    unittest.main()
