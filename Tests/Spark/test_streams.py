# The streams of the program: what is written are lines; what is read is checked.

from __future__ import annotations

import io
import unittest

import package

if package.importlib.util.find_spec("pyspark"):
    import pyarrow as pa
    from receipt_ledger_spark import streams
    from receipt_ledger_spark.streams import CutShort, Malformed, Reader

TEXTS = [(name, pa.string()) for name in "abc"]
NUMBERS = [("n", pa.int64()), ("line", pa.binary())]


def piece(table: object, rows: bytes) -> bytes:
    return f"{table} {len(rows)}\n".encode() + rows


def read(data: bytes, quoted: bool = True) -> tuple[list[tuple[int, dict]], object]:
    reader = Reader(io.BytesIO(data), [TEXTS, NUMBERS], quoted)
    return [(table, rows.to_pydict()) for table, rows in reader], reader.end


@package.needs_spark
class StreamTests(unittest.TestCase):
    def test_rows_become_lines(self) -> None:
        class Kept(io.BytesIO):
            def close(self) -> None:
                self.text = self.getvalue()

        batch = pa.record_batch({
            "n": [1, -2], "text": ["", "ä"], "line": [b'{"a":"\\t"}', b"\xff"]})
        stream = Kept()
        streams.write(stream, [batch, batch.slice(1), batch.slice(0, 0)])
        second = "-2\tä\t".encode() + b"\xff\n"
        self.assertEqual(stream.text, b'1\t\t{"a":"\\t"}\n' + second + second + b"end\n")
        with self.assertRaises(Malformed):
            streams.write(io.BytesIO(), [pa.record_batch({"n": [None, 1]})])

    def test_any_cell_survives_in_quotes_but_an_empty_one(self) -> None:
        cells = ["\ufeffx", 'a"b""', "\t", "\r\n", "\n", "", "\0", " ", "'", "ü\u2028", "NULL", "end 2"]
        rows = [(one, other, "plain") for one in cells for other in cells]
        text = "".join("\t".join(f'"{cell}"' for cell in (
            one.replace('"', '""'), other.replace('"', '""'), third)) + "\n"
            for one, other, third in rows)
        found, end = read(piece(0, text.encode()) + piece("end", b'{"n":[1]}'))
        self.assertEqual(end, {"n": [1]})
        self.assertEqual([table for table, _ in found], [0])
        wanted = [tuple(cell or None for cell in row) for row in rows]
        self.assertEqual(list(zip(*(found[0][1][name] for name in "abc"))), wanted)

    def test_lines_of_json_survive_without_quotes(self) -> None:
        line = b'{"a":"\\"\\t' + b"x" * 5_000_000 + b'"}'
        found, _ = read(piece(1, b"-9223372036854775808\t" + line + b"\n") + piece("end", b"{}"), False)
        self.assertEqual(found, [(1, {"n": [-(2**63)], "line": [line]})])

    def test_every_cut_is_noticed(self) -> None:
        data = piece(1, b"5\txyz\n") + piece("end", b'{"a":1}')
        for length in range(len(data)):
            with self.subTest(length), self.assertRaises(CutShort):
                read(data[:length], False)

    def test_wrong_streams_are_refused(self) -> None:
        wrong = {
            "unknown table": piece(2, b""), "no number": b"x 1\n", "no size": b"0\n", "size": b"0 -1\n",
            "a long head": b"0" * 100, "too few cells": piece(1, b"5\n"),
            "too many cells": piece(1, b"5\tx\ty\n"), "no integer": piece(1, b"x\ty\n"),
            "end is no JSON": piece("end", b"{"), "after the end": piece("end", b"{}") + b"x",
        }
        for name, data in wrong.items():
            with self.subTest(name), self.assertRaises(Malformed):
                read(data, False)


if __name__ == "__main__":
    unittest.main()
