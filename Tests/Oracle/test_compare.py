# Checks that a comparison passes for a faithful program and fails for each kind of difference.
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import compare
from generate_cases import write_cases

# Stands in for ledgerctl: keeps its imports, and reports with positions shifted by some.
STAND_IN = """#!{python}
import json, pathlib, re, sys
sys.path.insert(0, {sources!r})
import argparse, generate_cases, reports, revenue_oracle
arguments = sys.argv[1:]
if arguments[0] == "init":
    directory = pathlib.Path(arguments[1])
    directory.mkdir()
    (directory / "files.json").write_text(json.dumps(dict(import_=[], prices=[], rates=[])))
    sys.exit(0)
state = pathlib.Path(arguments[1]) / "files.json"
files = json.loads(state.read_text())
command = arguments[2:]
if command[0] == "app":
    sys.exit(0)
if command[0] != "export":
    files["import_" if command[0] == "import" else command[0]].append(
        command[1] if command[0] == "import" else command[-1])
    state.write_text(json.dumps(files))
    sys.exit(3 if command[0] == "import" else 0)
parser = argparse.ArgumentParser()
revenue_oracle.add_report_arguments(parser)
parser.add_argument("--format")
options = revenue_oracle.report_options(parser.parse_args(command[2:]))
take = revenue_oracle.Positions.take
revenue_oracle.Positions.take = lambda self: 3 * take(self) + 100
book = revenue_oracle.read_book(files["import_"], files["prices"], files["rates"],
    declared=generate_cases.DECLARED)
text = reports.csv_text(*reports.report(command[1], book, options))
{fault}
sys.stdout.buffer.write(text.encode())
"""

# Stands in for the development program that signs, without signing.
SIGNER = """#!{python}
import pathlib, ssl, sys
sys.path.insert(0, {sources!r})
import signing
directory = pathlib.Path(sys.argv[sys.argv.index("--authority") + 1])
directory.mkdir(exist_ok=True)
(directory / "signed-root.pem").write_text(ssl.DER_cert_to_PEM_cert(b"a certificate"))
print(*signing.unsigned(sys.stdin.read().splitlines()), sep="\\n")
"""


# The few reports that show each fault, to save time.
SOME_REPORTS = compare.MATRIX[::7]


class Comparison(unittest.TestCase):
    def verdict(self, fault, *options, case=("--seed", "4", "--uploads", "120")):
        """(exit status, output) of a comparison with a program that has that fault."""
        with tempfile.TemporaryDirectory() as directory:
            program = pathlib.Path(directory) / "program"
            sources = os.path.dirname(os.path.abspath(compare.__file__))
            for path, text in (
                (program, STAND_IN), (program.with_name("app-store-stand-in"), SIGNER),
            ):
                path.write_text(text.format(python=sys.executable, sources=sources, fault=fault))
                path.chmod(0o700)
            command = ["compare.py", "--ledgerctl", str(program), *case, *options]
            shown = io.StringIO()
            with (
                mock.patch.object(sys, "argv", command),
                mock.patch.object(compare, "MATRIX", SOME_REPORTS),
                contextlib.redirect_stdout(shown),
                self.assertRaises(SystemExit) as ended,
            ):
                compare.main()
            return ended.exception.code, shown.getvalue()

    def test_other_positions_are_no_difference(self):
        for options in ((), ("--nasty",)):
            status, shown = self.verdict("", *options)
            expected = f"{len(SOME_REPORTS)} passed, 0 failed"
            self.assertEqual((status, shown.splitlines()[-1]), (0, expected), shown)

    @mock.patch.object(compare.four_ways, "STORIES", {"whole": compare.four_ways.STORIES["whole"]})
    def test_one_sale_in_all_orders(self):
        status, shown = self.verdict("", case=["--orders"])
        self.assertEqual((status, shown.splitlines()[-1]), (0, "5 passed, 0 failed"), shown)
        status, shown = self.verdict('text = text.replace(",DE,", ",FR,", 1)', case=["--orders"])
        self.assertEqual(status, 1)
        self.assertIn("DIFFERS: one sale in all orders", shown)

    def test_stories_of_refunds(self):
        status, shown = self.verdict("", case=["--seed", "1", "--stories", "60"])
        self.assertEqual((status, shown.splitlines()[-1]), (0, "5 passed, 0 failed"), shown)

    def test_lives_of_subscriptions(self):
        status, shown = self.verdict("", case=["--seed", "1", "--subscriptions", "40"])
        expected = f"{len(compare.generate_subscriptions.REPORTS)} passed, 0 failed"
        self.assertEqual((status, shown.splitlines()[-1]), (0, expected), shown)

    def test_one_wrong_cell_is_shown(self):
        status, shown = self.verdict('text = text.replace(",DE,", ",FR,", 1)')
        self.assertEqual(status, 1)
        self.assertRegex(shown, r"(?m)^-.*,?DE,")
        self.assertRegex(shown.splitlines()[-1], r"^[0-9]+ passed, [1-9][0-9]* failed$")

    def test_another_order_is_told_from_other_rows(self):
        fault = "head, *rest = text.splitlines(True); text = head + ''.join(reversed(rest))"
        status, shown = self.verdict(fault)
        self.assertEqual(status, 1)
        self.assertIn("the same rows in another order:", shown)

    def test_needless_quotes_and_other_line_ends_are_faults(self):
        for fault in ('text = text.replace("DE", \'"DE"\')', r'text = text.replace("\n", "\r\n")'):
            status, shown = self.verdict(fault)
            self.assertEqual(status, 1)
            self.assertIn("not CSV as the rules say", shown)

    def test_a_failed_export_is_a_difference(self):
        status, shown = self.verdict('sys.exit("no such report")')
        expected = f"0 passed, {len(SOME_REPORTS)} failed"
        self.assertEqual((status, shown.splitlines()[-1]), (1, expected))
        self.assertIn("no such report", shown)


class Cases(unittest.TestCase):
    def written(self, seed, nasty=False):
        with tempfile.TemporaryDirectory() as directory:
            imports, prices, rates = write_cases(directory, seed, 60, nasty)
            return [path.read_bytes() for path in (*imports, *prices, *rates)]

    def test_a_seed_decides_every_byte(self):
        self.assertEqual(self.written(5), self.written(5))
        self.assertNotEqual(self.written(5), self.written(6))
        self.assertNotEqual(self.written(5), self.written(5, nasty=True))


if __name__ == "__main__":
    unittest.main()
