# A Parquet file that is written in row groups of bounded size.

from __future__ import annotations

from typing import Any, List


class RowGroups:
    """A Parquet file whose batches wait in memory until they have the size of a row group."""

    def __init__(self, path: str, schema: Any, group_bytes: int, **options: Any) -> None:
        import pyarrow.parquet as pq

        self._group_bytes = group_bytes
        self._batches: List[Any] = []
        self._size = 0
        self._file = pq.ParquetWriter(
            path, schema, compression="zstd", compression_level=1, **options)

    def add(self, batch: Any) -> None:
        self._batches.append(batch)
        self._size += batch.nbytes
        if self._size >= self._group_bytes:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._batches:
            table = pa.Table.from_batches(self._batches)
            self._file.write_table(table, row_group_size=table.num_rows)
        self._batches, self._size = [], 0

    def close(self) -> None:
        self._flush()
        self._file.close()
