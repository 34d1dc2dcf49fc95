# The streams of `ledger-rules`: lines on its standard input, pieces of CSV on its standard output.
#
# line  = cells, the last of which may be JSON, separated by tabs; the last line is `end`
# piece = TABLE " " BYTES LF, then rows of that table in so many bytes, their cells separated by tabs
# end   = "end " BYTES LF, then JSON in so many bytes

from __future__ import annotations

import json
import zlib
from typing import Any, BinaryIO, Iterable, Iterator, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

VERSION = 2
_HEAD_BYTES_MAX = 64


class Malformed(Exception):
    """A stream that does not have the format."""


class CutShort(Malformed):
    """A stream that ended before its end: its writer failed."""


def write(stream: BinaryIO, batches: Iterable[pa.RecordBatch]) -> None:
    """Writes rows as lines, and closes the stream."""
    with stream:
        for batch in batches:
            stream.write(_lines(batch))
        stream.write(b"end\n")


def _lines(batch: pa.RecordBatch) -> memoryview:
    if any(column.null_count for column in batch.columns):
        raise Malformed("a column to send has empty values")
    cells = [column.cast(pa.string()) if pa.types.is_integer(column.type) else column
             for column in batch.columns]
    rows = pc.binary_join_element_wise(*[cell.cast(pa.binary()) for cell in cells], b"\t")
    lines = pc.binary_join_element_wise(rows, b"", b"\n")
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int32, len(lines) + 1) if len(lines) else [0]
    return memoryview(data or b"")[: int(ends[-1])]


class Reader:
    """Reads a stream: iterate over its tables' rows, then `end` is the JSON after them."""

    def __init__(
        self, stream: BinaryIO, tables: Sequence[Sequence[Tuple[str, pa.DataType]]], quoted: bool
    ) -> None:
        """`tables`: the columns of each. `quoted`: cells may stand in quotes; empty ones are null."""
        self._stream, self._tables = stream, tables
        self._parse = csv.ParseOptions(
            delimiter="\t", quote_char='"' if quoted else False, newlines_in_values=quoted,
            ignore_empty_lines=False)
        self._null = [""] if quoted else []
        self.crc = 0
        self.end: Any = None

    def __iter__(self) -> Iterator[Tuple[int, pa.Table]]:
        while True:
            name, count = self._head()
            data = self._stream.read(count)
            if len(data) != count:
                raise CutShort("the stream was cut short")
            if name == "end":
                self.end = self._end(data)
                return
            self.crc = zlib.crc32(data, self.crc)
            yield int(name), self._rows(int(name), data)

    def _head(self) -> Tuple[str, int]:
        head = self._stream.readline(_HEAD_BYTES_MAX)
        if not head.endswith(b"\n") and len(head) < _HEAD_BYTES_MAX:
            raise CutShort("the stream was cut short")
        words = head.decode("ascii", "replace").split()
        is_known = len(words) == 2 and words[1].isdecimal() and (
            words[0] == "end" or words[0].isdecimal() and int(words[0]) < len(self._tables))
        if not is_known:
            raise Malformed(f"a piece begins with {head[:_HEAD_BYTES_MAX]!r}")
        return words[0], int(words[1])

    def _end(self, data: bytes) -> Any:
        if self._stream.read(1):
            raise Malformed("something follows the end")
        try:
            return json.loads(data)
        except ValueError:
            raise Malformed("the end is not JSON") from None

    def _rows(self, number: int, data: bytes) -> pa.Table:
        columns = self._tables[number]
        try:
            return csv.read_csv(
                pa.py_buffer(data),
                csv.ReadOptions(use_threads=False, block_size=max(len(data), 1),
                                column_names=[name for name, _ in columns]),
                self._parse,
                csv.ConvertOptions(
                    column_types=dict(columns), null_values=self._null, strings_can_be_null=True))
        except pa.ArrowException:
            # Its text may show a cell.
            raise Malformed(f"rows of table {number} do not have its columns") from None
