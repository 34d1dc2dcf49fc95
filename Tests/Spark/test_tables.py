# Cells of the program as typed columns and back, without loss.

from __future__ import annotations

import decimal
import unittest

import package

if package.importlib.util.find_spec("pyarrow"):
    import pyarrow as pa
    from receipt_ledger_spark import tables
    from receipt_ledger_spark.tables import Table

COLUMNS = {
    "text": "text", "integer": "integer", "amount": "amount", "net": "amounts", "date": "time",
    "flag": "flag", "list": "list", "position": "position", "first_position": "position",
    "positions": "positions",
}
ROWS = [
    [b"=x\xc3\xa4", b"-5", b"-1234567", b'{"EUR":"99","USD":"-1000000"}', b"-62135596800000",
     b"true", b'["a\\"b","\\u0000c\\\\"]', b"0:5", b"1:7", b'["0:1","1:22"]'],
    [b""] * 10,
    [b"\x01", b"9223372036854775807", b"9" * 38, b'{"JPY":"-5"}', b"253402300799999", b"false",
     b'["x"]', b"1:999999999999", b"0:1", b'["1:0"]'],
    [b"'", b"0", b"0", b'{"KRW":"0"}', b"0", b"true", b'[""," "]', b"1:0", b"", b""],
]


def table() -> Table:
    return Table.of(
        {"kind": "x", "columns": list(COLUMNS), "content": list(COLUMNS.values())})


def cells() -> list[pa.Array]:
    return [pa.array(column, pa.binary()) for column in zip(*ROWS)]


@package.needs_arrow
class TableTests(unittest.TestCase):
    def test_values(self) -> None:
        batch = tables.typed(table(), cells(), ["eu", "us"])
        self.assertEqual(batch.schema, table().schema())
        first = {name: batch.column(name)[0] for name in batch.schema.names}
        self.assertEqual(first["amount"].as_py(), decimal.Decimal("-1.234567"))
        self.assertEqual(first["net"].as_py()[1], ("USD", decimal.Decimal("-1.000000")))
        self.assertEqual(first["date"].value, -62135596800000 * 1000)
        self.assertEqual(first["list"].as_py(), ['a"b', "\0c\\"])
        self.assertEqual((first["ledger"].as_py(), first["position"].as_py()), ("eu", 5))
        self.assertEqual((first["first_ledger"].as_py(), first["first_position"].as_py()),
                         ("us", 7))
        self.assertEqual(first["positions"].as_py()[1], {"ledger": "us", "position": 22})
        for name in batch.schema.names:
            self.assertIsNone(batch.column(name)[1].as_py(), name)

    def test_cells_come_back(self) -> None:
        for start, stop in ((0, 4), (1, 2), (2, 4), (0, 0)):
            given = [column.slice(start, stop - start) for column in cells()]
            batch = tables.typed(table(), given, ["eu", "us"])
            self.assertEqual(
                [column.to_pylist() for column in tables.cells(table(), batch, ["eu", "us"])],
                [column.to_pylist() for column in given])

    def test_wrong_cells_are_refused(self) -> None:
        wrong = {"integer": b"1.5", "amount": b"x", "date": b"9223372036854775807",
                 "position": b"7", "list": b"[1", "text": b"\xff", "positions": b'["x"]',
                 "first_position": b"9:1"}
        for name, cell in wrong.items():
            given = cells()
            at = list(COLUMNS).index(name)
            given[at] = pa.array([cell] * len(ROWS), pa.binary())
            with self.subTest(name), self.assertRaises((ValueError, pa.ArrowException)):
                tables.typed(table(), given, ["eu", "us"])

    def test_unknown_content_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            Table.of({"kind": "x", "columns": ["a"], "content": ["guess"]})


if __name__ == "__main__":
    unittest.main()
