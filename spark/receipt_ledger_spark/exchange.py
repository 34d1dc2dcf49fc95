# The exchange format of `ledger-rules`, between its pipes and Arrow, whole columns at a time.
#
# A stream is batches, then one end; all numbers are little-endian.
# batch = u32 rows, u16 table, u16 columns, then for each column u8 kind and its data:
# kind 0: rows x int64; kind 1: (rows + 1) x u32 offsets from 0, then the bytes they end
# end   = u32 0xFFFFFFFF, u32 length, JSON of that length

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO, Iterable, Iterator, List, NamedTuple, Sequence, Tuple, Union

import numpy as np
import pyarrow as pa

VERSION = 1
INTEGERS = 0
BYTES = 1
ROWS_MAX = 65_536
BYTES_MAX = 64 << 20
# A writer sends a batch once it has this much.
ROWS_FLUSHED = 8_192
BYTES_FLUSHED = 8 << 20
COLUMNS_MAX = 1_024
_END = 0xFFFF_FFFF

Piece = Union[bytes, memoryview, pa.Buffer]


class Malformed(Exception):
    """A stream that does not have the format."""


class CutShort(Malformed):
    """A stream that ended before its end: its writer failed."""


class Batch(NamedTuple):
    """Rows of one table: int64 and binary arrays."""

    table: int
    columns: List[pa.Array]

    @property
    def rows(self) -> int:
        return len(self.columns[0])


def batch_pieces(table: int, columns: Sequence[pa.Array]) -> Iterator[Piece]:
    """The bytes of rows of int64 and binary columns without nulls, in batches within the limits.

    The pieces refer to the memory of the arrays: nothing is copied row by row.
    """
    rows = len(columns[0])
    start = 0
    ends = _end_offsets(columns, rows)
    while start < rows:
        stop = _stop(ends, start, rows)
        yield struct.pack("<IHH", stop - start, table, len(columns))
        for column in columns:
            yield from _column_pieces(column.slice(start, stop - start))
        start = stop


def end_bytes(content: Any) -> bytes:
    """The end of a stream."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return struct.pack("<II", _END, len(text)) + text


def _end_offsets(columns: Sequence[pa.Array], rows: int) -> np.ndarray:
    """For each row, how many bytes of data it and those before it have."""
    total = np.zeros(rows + 1, dtype=np.int64)
    for column in columns:
        if _is_bytes(column):
            total += _offsets(column).astype(np.int64) - int(_offsets(column)[0])
    return total


def _stop(ends: np.ndarray, start: int, rows: int) -> int:
    """The end of the batch that begins at `start`: at least one row."""
    fitting = int(np.searchsorted(ends, ends[start] + BYTES_FLUSHED, side="right")) - 1
    return min(max(fitting, start + 1), start + ROWS_FLUSHED, rows)


def _is_bytes(column: pa.Array) -> bool:
    kind = column.type
    return any(
        test(kind)
        for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string,
                     pa.types.is_large_string)
    )


def _offsets(column: pa.Array) -> np.ndarray:
    """The offsets of a column of bytes within its buffer of data."""
    large = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    kind = np.dtype("<i8" if large else "<i4")
    buffer = column.buffers()[1]
    if buffer is None or buffer.size == 0:
        return np.zeros(len(column) + 1, dtype=kind)
    return np.frombuffer(buffer, kind, len(column) + 1, column.offset * kind.itemsize)


def _column_pieces(column: pa.Array) -> Iterator[Piece]:
    if column.null_count:
        raise Malformed("a column to send has empty values")
    if _is_bytes(column):
        offsets = _offsets(column)
        first, last = int(offsets[0]), int(offsets[-1])
        if last - first > BYTES_MAX:
            raise Malformed(f"a row of {last - first} bytes is too large")
        yield bytes([BYTES])
        yield memoryview((offsets - first).astype("<u4")).cast("B")
        if last > first:
            yield memoryview(column.buffers()[2])[first:last]
    elif pa.types.is_int64(column.type):
        yield bytes([INTEGERS])
        start = column.offset * 8
        yield memoryview(column.buffers()[1])[start : start + len(column) * 8]
    else:
        raise Malformed(f"a column of type {column.type} cannot be sent")


class Reader:
    """Reads a stream: iterate over its batches, then `end` is the JSON after them."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.end: Any = None

    def __iter__(self) -> Iterator[Batch]:
        while True:
            rows = struct.unpack("<I", self._exactly(4))[0]
            if rows == _END:
                self.end = self._end()
                return
            yield self._batch(rows)

    def _exactly(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) != count:
            raise CutShort("the stream was cut short")
        return data

    def _end(self) -> Any:
        length = struct.unpack("<I", self._exactly(4))[0]
        if length > BYTES_MAX:
            raise Malformed(f"the end has {length} bytes")
        text = self._exactly(length)
        if self._stream.read(1):
            raise Malformed("something follows the end")
        try:
            return json.loads(text)
        except ValueError as error:
            raise Malformed("the end is not JSON") from error

    def _batch(self, rows: int) -> Batch:
        table, width = struct.unpack("<HH", self._exactly(4))
        if not 1 <= rows <= ROWS_MAX or not 1 <= width <= COLUMNS_MAX:
            raise Malformed(f"a batch of {rows} rows and {width} columns")
        columns = []
        size = 0
        for _ in range(width):
            column, cells = self._column(rows, BYTES_MAX - size)
            size += cells
            columns.append(column)
        return Batch(table, columns)

    def _column(self, rows: int, bytes_left: int) -> Tuple[pa.Array, int]:
        """A column, and how many bytes its cells have."""
        kind = self._exactly(1)[0]
        if kind == INTEGERS:
            data = pa.py_buffer(self._exactly(8 * rows))
            return pa.Array.from_buffers(pa.int64(), rows, [None, data]), 0
        if kind != BYTES:
            raise Malformed(f"a column of kind {kind}")
        text = self._exactly(4 * (rows + 1))
        offsets = np.frombuffer(text, "<u4")
        size = int(offsets[-1])
        if offsets[0] != 0 or bool(np.any(offsets[1:] < offsets[:-1])):
            raise Malformed("offsets that fall")
        if size > bytes_left:
            raise Malformed(f"a batch of more than {BYTES_MAX} bytes")
        data = pa.py_buffer(self._exactly(size))
        cells = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(text), data])
        return cells, size


def write(stream: BinaryIO, batches: Iterable[Batch]) -> None:
    """Writes batches and an end to a stream, and closes it."""
    with stream:
        for batch in batches:
            for piece in batch_pieces(batch.table, batch.columns):
                stream.write(piece)
        stream.write(end_bytes({}))
