# Running ledger-rules, with substitutes that fail in every way.

from __future__ import annotations

import os
import pathlib
import stat
import sys
import tempfile
import unittest
from unittest import mock

import package

if package.importlib.util.find_spec("pyspark"):
    import pyarrow as pa
    from receipt_ledger_spark import errors, rules, streams
    from receipt_ledger_spark.errors import Failure

# Reads everything, then writes it, with much on standard error in between.
ECHO = """
lines = sys.stdin.buffer.readlines()
assert lines.pop() == b"end\\n"
sys.stderr.write("x" * 1_000_000)
for line in lines:
    sys.stdout.buffer.write(b"0 %d\\n%s" % (len(line), line))
sys.stdout.buffer.write(b'end 13\\n{"done":true}')
"""
FAILING = {
    "sys.exit(0)": (1, "it ended too early"),
    "sys.stderr.write('ledger-rules: read block: log/1: corrupt'); sys.exit(20)":
        (20, "read block: log/1: corrupt"),
    "sys.stderr.write('words\\n\\nlast words\\n'); sys.exit(3)": (3, "last words"),
    "sys.exit(12)": (12, "exit code 12"),
    "import os; os.kill(os.getpid(), 9)": (1, "ended by SIGKILL"),
    "sys.stdin.buffer.read(); print('1 5', flush=True); "
    "import time; time.sleep(60)": (1, "a piece begins with b'1 5"),
}


@package.needs_spark
class RulesTests(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def program(self, text: str) -> str:
        path = self.folder / "ledger-rules"
        path.write_text(f"#!{sys.executable}\nimport sys\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def passed(self, program: str, rows: int) -> tuple[int, object]:
        """The number of rows that came back, and the end after them."""
        batch = pa.record_batch({"a": [1] * 2_000, "b": [b"x" * 1000] * 2_000})
        with rules.run(program, ["fold"]) as process:
            streams.write(process.stdin, [batch] * (rows // 2_000))
            reader = streams.Reader(
                process.stdout, [[("a", pa.int64()), ("b", pa.binary())]], quoted=False)
            return sum(found.num_rows for _, found in reader), reader.end

    def test_rows_go_there_and_back(self) -> None:
        self.assertEqual(self.passed(self.program(ECHO), 20_000), (20_000, {"done": True}))

    def test_failures(self) -> None:
        for text, (code, said) in FAILING.items():
            with self.subTest(text), self.assertRaises(Failure) as raised:
                self.passed(self.program(text), 20_000)
            self.assertEqual(raised.exception.code, code)
            self.assertIn(said, str(raised.exception))

    def test_a_failure_of_the_reader_ends_the_program(self) -> None:
        with self.assertRaises(Failure) as raised:
            with rules.run(self.program("import time; time.sleep(60)"), ["fold"]):
                raise Failure("write", "disk", "full")
        self.assertEqual(raised.exception.cause, "full")

    def find(self, path: str) -> None:
        with mock.patch.dict(os.environ, LEDGER_RULES=path), rules.found():
            pass

    def test_what_is_no_ledger_rules(self) -> None:
        wrong = {
            "print('hello')": "its output is not JSON",
            "print('[]')": "it is another program",
            "print('{\"version\":\"9\",\"streams\":1}')": "version 1 of the streams",
            "sys.exit(1)": "exit code 1",
        }
        for text, said in wrong.items():
            with self.subTest(text), self.assertRaises(Failure) as raised:
                self.find(self.program(text))
            self.assertEqual(raised.exception.code, errors.USAGE)
            self.assertIn(said, str(raised.exception))
        with self.assertRaises(Failure) as raised:
            self.find(str(self.folder / "absent"))
        self.assertIn("no such program", str(raised.exception))

    def test_a_failure_survives_the_way_through_java(self) -> None:
        failure = Failure("fold", 'a "quoted" place', "line\nbreak", 12)
        text = f"Job aborted.\nCaused by: x\n  {failure.marked()}\n at java"
        found = errors.from_spark(Exception(text), "run")
        self.assertEqual(found.args, failure.args)
        self.assertEqual(str(found), 'fold: a "quoted" place: line break')


if __name__ == "__main__":
    unittest.main()
