# The exchange format: what is written is read; truncated, wrong or oversized streams are refused.

from __future__ import annotations

import io
import struct
import unittest

import package

if package.importlib.util.find_spec("pyspark"):
    import pyarrow as pa
    from receipt_ledger_spark import exchange
    from receipt_ledger_spark.exchange import Batch, CutShort, Malformed, Reader


def stream(batches: list[Batch], end: object) -> bytes:
    pieces = [bytes(piece) for batch in batches
              for piece in exchange.batch_pieces(batch.table, batch.columns)]
    return b"".join([*pieces, exchange.end_bytes(end)])


def read(data: bytes) -> tuple[list[Batch], object]:
    reader = Reader(io.BytesIO(data))
    return list(reader), reader.end


@package.needs_spark
class ExchangeTests(unittest.TestCase):
    def test_rows_survive(self) -> None:
        numbers = pa.array([1, -2, 2**63 - 1], pa.int64())
        texts = pa.array([b"", b"a\0b", "ä".encode()], pa.binary())
        for columns in ([numbers, texts], [numbers.slice(1), texts.slice(1)],
                        [numbers, texts.cast(pa.large_binary())], [texts.cast(pa.string())]):
            found, end = read(stream([Batch(7, columns)], {"n": [1]}))
            self.assertEqual(end, {"n": [1]})
            self.assertEqual([batch.table for batch in found], [7])
            self.assertEqual(
                [column.to_pylist() for column in found[0].columns],
                [column.cast(pa.binary()).to_pylist() if column.type != pa.int64()
                 else column.to_pylist() for column in columns])

    def test_large_batches_are_cut(self) -> None:
        rows = 20_000
        texts = pa.array([b"x" * 1_000] * rows, pa.binary())
        found, _ = read(stream([Batch(0, [texts, pa.array(range(rows))])], {}))
        self.assertGreater(len(found), 2)
        self.assertTrue(all(batch.rows <= exchange.ROWS_FLUSHED for batch in found))
        numbers = [value for batch in found for value in batch.columns[1].to_pylist()]
        self.assertEqual(numbers, list(range(rows)))

    def test_a_row_larger_than_a_batch_stands_alone(self) -> None:
        texts = pa.array([b"a", b"b" * (exchange.BYTES_FLUSHED + 1), b"c"], pa.binary())
        found, _ = read(stream([Batch(0, [texts])], {}))
        self.assertEqual([batch.rows for batch in found], [1, 1, 1])
        with self.assertRaises(Malformed):
            stream([Batch(0, [pa.array([b"x" * (exchange.BYTES_MAX + 1)], pa.binary())])], {})

    def test_every_cut_is_noticed(self) -> None:
        data = stream([Batch(1, [pa.array([5]), pa.array([b"xyz"], pa.binary())])], {"a": 1})
        for length in range(len(data)):
            with self.subTest(length), self.assertRaises(CutShort):
                read(data[:length])

    def test_wrong_streams_are_refused(self) -> None:
        column = bytes([1]) + struct.pack("<II", 0, 3) + b"abc"
        wrong = {
            "no rows": struct.pack("<IHH", 0, 0, 1),
            "too many rows": struct.pack("<IHH", 65_537, 0, 1),
            "no columns": struct.pack("<IHH", 1, 0, 0),
            "unknown kind": struct.pack("<IHH", 1, 0, 1) + bytes([2]),
            "first offset": struct.pack("<IHHBII", 1, 0, 1, 1, 1, 3),
            "falling offsets": struct.pack("<IHHBIII", 2, 0, 1, 1, 0, 3, 2),
            "too large": struct.pack("<IHHBII", 1, 0, 1, 1, 0, exchange.BYTES_MAX + 1),
            "end is too large": struct.pack("<II", 0xFFFFFFFF, exchange.BYTES_MAX + 1),
            "end is no JSON": struct.pack("<II", 0xFFFFFFFF, 1) + b"{",
            "after the end": stream([], {}) + b"x",
        }
        for name, data in wrong.items():
            with self.subTest(name), self.assertRaises(Malformed):
                read(data + column)

    def test_empty_values_cannot_be_sent(self) -> None:
        with self.assertRaises(Malformed):
            stream([Batch(0, [pa.array([None, 1], pa.int64())])], {})


if __name__ == "__main__":
    unittest.main()
