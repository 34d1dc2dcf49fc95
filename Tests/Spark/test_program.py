# Running ledger-rules, with substitutes that fail in every way.

from __future__ import annotations

import pathlib
import stat
import sys
import tempfile
import unittest

import package

if package.importlib.util.find_spec("pyarrow"):
    import pyarrow as pa
    from receipt_ledger_spark import errors, rules, scan, state
    from receipt_ledger_spark.errors import Failure
    from receipt_ledger_spark.exchange import Batch

HELP = f"""
import struct, sys
sys.path.insert(0, {str(package.ROOT / "spark")!r})
"""
# Reads everything, then writes as much as it has read: neither side may wait for the other.
ECHO = """
from receipt_ledger_spark import exchange
for batch in exchange.Reader(sys.stdin.buffer):
    for piece in exchange.batch_pieces(batch.table, batch.columns):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
sys.stderr.write("x" * 1_000_000)
sys.stdout.buffer.write(exchange.end_bytes({"done": True}))
"""
FAILING = {
    "sys.exit(0)": (1, "cut short"),
    "sys.stderr.write('ledger-rules: read block: log/1: corrupt'); sys.exit(20)":
        (20, "read block: log/1: corrupt"),
    "sys.stderr.write('words\\n\\nlast words\\n'); sys.exit(3)": (3, "last words"),
    "sys.exit(12)": (12, "exit code 12"),
    "import os; os.kill(os.getpid(), 9)": (1, "ended by SIGKILL"),
    "sys.stdout.buffer.write(struct.pack('<IHH', 0, 0, 1)); sys.stdout.flush(); "
    "import time; time.sleep(60)": (1, "a batch of 0 rows"),
}


@package.needs_arrow
class RulesTests(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def program(self, text: str) -> str:
        path = self.folder / "ledger-rules"
        path.write_text(f"#!{sys.executable}\n{HELP}{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def passed(self, program: str, rows: int) -> tuple[int, object]:
        """The number of rows that came back, and the end after them."""
        counts: list[int] = []
        batch = Batch(0, [pa.array([b"x" * 1000] * 2_000, pa.binary())])
        with rules.Run(program, ["fold"]) as run:
            wait = run.read_batches(lambda found: counts.append(found.rows))
            rules.with_stdin(run, iter([batch] * (rows // 2_000)))
            end = wait()
            return sum(counts), end

    def test_both_pipes_flow_at_once(self) -> None:
        self.assertEqual(self.passed(self.program(ECHO), 20_000), (20_000, {"done": True}))

    def test_failures(self) -> None:
        for text, (code, said) in FAILING.items():
            with self.subTest(text), self.assertRaises(Failure) as raised:
                self.passed(self.program(text), 20_000)
            self.assertEqual(raised.exception.code, code)
            self.assertIn(said, str(raised.exception))

    def test_a_failure_of_the_reader_ends_the_program(self) -> None:
        def take(_: Batch) -> None:
            raise Failure("write", "disk", "full")

        with rules.Run(self.program(ECHO), ["fold"]) as run:
            wait = run.read_batches(take)
            batch = Batch(0, [pa.array([b"x" * 1000] * 2_000, pa.binary())])
            rules.with_stdin(run, iter([batch] * 10))
            with self.assertRaises(Failure) as raised:
                wait()
        self.assertEqual(raised.exception.cause, "full")

    def test_what_is_no_ledger_rules(self) -> None:
        wrong = {
            "print('hello')": "its output is not JSON",
            "print('[]')": "it is another program",
            "print('{\"version\":\"9\",\"exchange\":2}')": "version 2 of the exchange format",
            "sys.exit(1)": "exit code 1",
        }
        for text, said in wrong.items():
            with self.subTest(text), self.assertRaises(Failure) as raised:
                rules.find(self.program(text))
            self.assertEqual(raised.exception.code, errors.USAGE)
            self.assertIn(said, str(raised.exception))
        with self.assertRaises(Failure) as raised:
            rules.find(str(self.folder / "absent"))
        self.assertIn("no such program", str(raised.exception))

    def test_a_failure_survives_the_way_through_java(self) -> None:
        failure = Failure("fold", 'a "quoted" place', "line\nbreak", 12)
        text = f"Job aborted.\nCaused by: x\n  {failure.marked()}\n at java"
        found = errors.from_spark(Exception(text), "run")
        self.assertEqual(found.args, failure.args)
        self.assertEqual(str(found), 'fold: a "quoted" place: line break')

    def test_batches_stay_small_with_the_largest_lines(self) -> None:
        def rows(sizes: dict[int, int]) -> int:
            counts = [sizes.get(bits, 0) for bits in range(26)]
            part = state.Scanned("id", None, "", {"line_sizes": counts})
            return scan.rows_per_batch([part, part])

        self.assertEqual(rows({}), 8192)
        self.assertEqual(rows({11: 10**6}), 8192)
        self.assertEqual(rows({20: 10**6}), 64)
        self.assertEqual(rows({24: 1, 11: 10**6}), 8192)
        self.assertEqual(rows({24: 10**6}), 4)
        self.assertEqual(rows({24: 1, 20: 10**6}), 34)


if __name__ == "__main__":
    unittest.main()
