# manifest.json of an output: from what it was made and what it holds, to make it again and to
# check it.

from __future__ import annotations

import json
import os
from typing import Any, Dict, List

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from . import __version__, errors, output
from .errors import Failure
from .tables import AMOUNT, Table

NAME = "manifest.json"
VERSION = 1
NOTE = "Operational gross at customer prices as clients reported them, not settlement."


def write(folder: str, members: Dict[str, Any], tables: List[Table]) -> None:
    """Writes the manifest of the tables in a folder."""
    names = output.files_of(folder)
    found = output.digests(folder, names)
    content = {
        "manifest_version": VERSION,
        "note": NOTE,
        "program": {"receipt_ledger_spark": __version__, **members.pop("program")},
        **members,
        "tables": {table.kind: _table(folder, table, names) for table in tables},
        "files": [
            {"name": name, "bytes": os.path.getsize(os.path.join(folder, name)),
             "sha256": found[name]}
            for name in names
        ],
    }
    with open(os.path.join(folder, NAME), "x", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
        file.write("\n")


def read(folder: str) -> Dict[str, Any]:
    """The manifest of an output."""
    path = os.path.join(folder, NAME)
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except OSError as error:
        raise errors.usage("read output", path, error.strerror or "it cannot be read") from None
    except ValueError:
        raise Failure("read output", path, "it is not JSON", errors.DAMAGE) from None
    if not isinstance(value, dict) or value.get("manifest_version") != VERSION:
        raise errors.usage("read output", path, "it is not a manifest of this version")
    return value


def verify(folder: str) -> int:
    """Checks that the files of an output are those of its manifest. Returns how many."""
    named = {entry["name"]: entry["sha256"] for entry in read(folder)["files"]}
    there = output.files_of(folder)
    for name in sorted(set(named) ^ set(there)):
        cause = "the file is missing" if name in named else "the manifest does not name it"
        raise Failure("verify", os.path.join(folder, name), cause, errors.DAMAGE)
    for name, digest in output.digests(folder, there).items():
        if named[name] != digest:
            raise Failure(
                "verify", os.path.join(folder, name), "its SHA-256 is not that of the manifest",
                errors.DAMAGE)
    return len(there)


def _table(folder: str, table: Table, names: List[str]) -> Dict[str, Any]:
    paths = [os.path.join(folder, name) for name in names if name.startswith(f"{table.kind}/")]
    found: Dict[str, Any] = {"rows": sum(pq.read_metadata(path).num_rows for path in paths)}
    columns = [field.name for field in table.fields()]
    if table.kind == "exceptions":
        found["by_exception"] = _sums(paths, "exception", {})
    elif "currency" in columns:
        summed = {
            field.name: field.content for field in table.fields()
            if field.name in ("quantity", "amount") or table.kind == "revenue"
            and field.content in ("integer", "amount")
        }
        if summed:
            found["by_currency"] = _sums(paths, "currency", summed)
    return found


def _sums(paths: List[str], key: str, summed: Dict[str, str]) -> Dict[str, Any]:
    """Sums by the values of a column, file by file; of no columns, the number of rows."""
    parts = []
    for path in paths:
        file = pq.ParquetFile(path)
        for batch in file.iter_batches(columns=[key, *summed]):
            parts.append(_grouped(pa.Table.from_batches([batch]), key, summed))
            if len(parts) > 256:
                parts = [_regrouped(parts, key, summed)]
    if not parts:
        return {}
    rows = _regrouped(parts, key, summed).sort_by(key).to_pylist()
    if not summed:
        return {row[key]: row["rows"] for row in rows}
    return {row.pop(key) or "": {name: _number(row[name]) for name in summed} for row in rows}


def _grouped(table: pa.Table, key: str, summed: Dict[str, str]) -> pa.Table:
    if not summed:
        return table.group_by(key).aggregate([([], "count_all")]).rename_columns([key, "rows"])
    sums = table.group_by(key).aggregate([(name, "sum") for name in summed])
    return _typed(sums, key, summed)


def _regrouped(parts: List[pa.Table], key: str, summed: Dict[str, str]) -> pa.Table:
    if not summed:
        sums = pa.concat_tables(parts).group_by(key).aggregate([("rows", "sum")])
        return sums.select([key, "rows_sum"]).rename_columns([key, "rows"])
    sums = pa.concat_tables(parts).group_by(key).aggregate([(name, "sum") for name in summed])
    return _typed(sums, key, summed)


def _typed(sums: pa.Table, key: str, summed: Dict[str, str]) -> pa.Table:
    types = {"integer": pa.int64(), "amount": AMOUNT}
    columns = {key: sums.column(key)}
    for name, content in summed.items():
        columns[name] = pc.cast(sums.column(f"{name}_sum"), types[content])
    return pa.table(columns)


def _number(value: Any) -> Any:
    """An integer as such, an amount as text; nothing summed is nothing."""
    return value if value is None or isinstance(value, int) else f"{value:f}"
