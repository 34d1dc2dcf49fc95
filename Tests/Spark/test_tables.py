# Cells of the program as typed columns and back, without loss.

from __future__ import annotations

import decimal
import io
import json
import os
import sys
import unittest

import package

if package.importlib.util.find_spec("pyspark"):
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from receipt_ledger_spark import streams, tables
    from receipt_ledger_spark.session import session
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


def stream(number: int, rows: list[list[bytes]]) -> io.BytesIO:
    """The rows of a table as the program writes them."""
    text = b"".join(
        b"\t".join(b'"' + cell.replace(b'"', b'""') + b'"' for cell in row) + b"\n" for row in rows)
    return io.BytesIO(b"%d %d\n" % (number, len(text)) + text + b"end 2\n{}")


def table() -> Table:
    return Table.of(
        {"kind": "x", "columns": list(COLUMNS), "content": list(COLUMNS.values())})


@package.needs_spark
class TableTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        cls.spark = cls.enterClassContext(session("local[1]", "test"))

    def typed(self, rows: list[list[bytes]]) -> DataFrame:
        """The rows as typed columns, in the midst of those of another table."""
        other = Table.of({"kind": "y", "columns": ["a"], "content": ["text"]})
        kinds, names = [other, table()], ["eu", "us"]
        slots = tables.slots(kinds)
        batches = [
            tables.frame_rows(number, kinds[number], read.columns, slots, names)
            for number, cells in ((1, rows), (0, [[b"of another"]]))
            for _, found in streams.Reader(
                stream(number, cells), [kind.cells() for kind in kinds], quoted=True)
            for read in found.to_batches()]
        frame = self.spark.createDataFrame(
            pa.Table.from_batches(batches), tables.frame_schema(slots))
        return tables.typed(table(), 1, frame, names)

    def test_values(self) -> None:
        rows = self.typed(ROWS).toArrow()
        first = {name: rows.column(name)[0] for name in rows.schema.names}
        self.assertEqual(rows.num_rows, len(ROWS))
        self.assertEqual(first["amount"].as_py(), decimal.Decimal("-1.234567"))
        self.assertEqual(dict(first["net"].as_py())["USD"], decimal.Decimal("-1.000000"))
        self.assertEqual(first["date"].value, -62135596800000 * 1000)
        self.assertEqual(first["list"].as_py(), ['a"b', "\0c\\"])
        self.assertEqual((first["ledger"].as_py(), first["position"].as_py()), ("eu", 5))
        self.assertEqual((first["first_ledger"].as_py(), first["first_position"].as_py()),
                         ("us", 7))
        self.assertEqual(first["positions"].as_py()[1], {"ledger": "us", "position": 22})
        for name in rows.schema.names:
            self.assertIsNone(rows.column(name)[1].as_py(), name)

    def test_cells_come_back(self) -> None:
        found = tables.cells(table(), self.typed(ROWS), ["eu", "us"]).toArrow()
        back = [json.loads(row) for row in found.column("cells").to_pylist()]
        for row, given in zip(back, ROWS):
            for name, cell, wanted in zip(COLUMNS, row, (cell.decode() for cell in given)):
                if name in ("net", "list", "positions") and wanted:
                    cell, wanted = json.loads(cell), json.loads(wanted)
                if name in ("amount", "net") and cell:
                    cell, wanted = numbers(cell), numbers(wanted)
                self.assertEqual(cell, wanted, name)

    def test_wrong_cells_are_refused(self) -> None:
        wrong = {"integer": b"1.5", "amount": b"x", "date": b"9223372036854775807",
                 "position": b"7", "list": b"[1", "positions": b'["x"]', "flag": b"maybe"}
        for name, cell in wrong.items():
            row = list(ROWS[0])
            row[list(COLUMNS).index(name)] = cell
            with self.subTest(name), self.assertRaises(Exception):
                self.typed([row]).collect()

    def test_unknown_content_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            Table.of({"kind": "x", "columns": ["a"], "content": ["guess"]})


def numbers(cell: object) -> object:
    """Digits as numbers: an amount below one has zeros in front."""
    return {key: int(value) for key, value in cell.items()} if isinstance(cell, dict) else int(cell)


if __name__ == "__main__":
    unittest.main()
