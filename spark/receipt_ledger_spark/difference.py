# The command `diff`: which sales and lines two outputs tell differently.
#
# A ledger that lagged behind the others may show a sale first, once it is there: the sale's first
# event is then another one, and with it its date, product and price may be. Such sales are counted
# of their own.

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Sequence, TextIO

from . import errors, manifest, output
from .errors import Failure
from .session import Session, failure_of
from .tables import Table

_SALE = ("environment", "bundle_id", "sale_key")
_KEYS = {"sales": _SALE, "journal": (*_SALE, "line", "ordinal")}
_FIRST = ("first_ledger", "first_position")


def write(old: str, new: str, master: str, is_json: bool, stream: TextIO) -> None:
    """Writes what was added, removed and changed."""
    contents = [manifest.read(folder) for folder in (old, new)]
    if contents[0]["options"] != contents[1]["options"]:
        raise errors.usage(
            "compare", f"{old} and {new}", "they were made with other options: "
            + ", ".join(_different(contents[0]["options"], contents[1]["options"])))
    kinds = [kind for kind in _KEYS if all(kind in content["tables"] for content in contents)]
    if not kinds:
        raise errors.usage("compare", f"{old} and {new}", "both need the table sales or journal")
    for line in _heads(contents, is_json):
        print(line, file=stream)
    with Session(master, os.cpu_count() or 1, 8192, None, ()) as session:
        try:
            for kind in kinds:
                _compare(session.spark, kind, contents, (old, new), is_json, stream)
        except Failure:
            raise
        except Exception as error:
            raise failure_of(error, "compare") from None


def _heads(contents: Sequence[Dict[str, Any]], is_json: bool) -> Iterator[str]:
    """The ledgers whose heads differ."""
    sizes = [{entry["name"]: entry["size"] for entry in content["ledgers"]}
             for content in contents]
    for name in sorted({*sizes[0], *sizes[1]}):
        before, after = (size.get(name) for size in sizes)
        if before == after:
            continue
        if is_json:
            yield json.dumps({"ledger": name, "size": [before, after]})
        else:
            yield f"ledger {name}: {_events(before)} before, {_events(after)} now"


def _events(size: Any) -> str:
    return "absent" if size is None else f"{size} events"


def _compare(
    spark: Any, kind: str, contents: Sequence[Dict[str, Any]], folders: Sequence[str],
    is_json: bool, stream: TextIO,
) -> None:
    from pyspark.sql import functions as f

    table = _table(contents[1], kind)
    names = [field.name for field in table.fields()]
    keys = _KEYS[kind]
    sides = []
    for number, folder in enumerate(folders):
        frame = _numbered(_frame(spark, folder, table), kind)
        values = f.struct(*[f.col(name).cast("string").alias(name) for name in names])
        sides.append(frame.select(
            f.to_json(f.struct(*keys)).alias("key"), values.alias(f"values_{number}")))
    both = sides[0].join(sides[1], "key", "full")
    changed = both.where("NOT (values_0 <=> values_1)").orderBy("key")
    counts = {"added": 0, "removed": 0, "changed": 0, "first observations moved": 0}
    for row in changed.toLocalIterator():
        before = row.values_0.asDict() if row.values_0 is not None else None
        after = row.values_1.asDict() if row.values_1 is not None else None
        _count(counts, before, after)
        print(_line(kind, json.loads(row.key), before, after, is_json), file=stream)
    if is_json:
        print(json.dumps({"table": kind, "counts": counts}), file=stream)
    else:
        said = ", ".join(f"{count} {what}" for what, count in counts.items()
                         if kind == "sales" or not what.startswith("first"))
        print(f"{kind}: {said}", file=stream)


def _numbered(frame: Any, kind: str) -> Any:
    """Lines of a sale of the same type are told apart by their order."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    if kind != "journal":
        return frame
    order = Window.partitionBy(*_SALE, "line").orderBy("date", "ledger", "position", "quantity")
    return frame.withColumn("ordinal", f.row_number().over(order))


def _count(counts: Dict[str, int], before: Any, after: Any) -> None:
    if before is None:
        counts["added"] += 1
    elif after is None:
        counts["removed"] += 1
    else:
        counts["changed"] += 1
        if any(before.get(name) != after.get(name) for name in _FIRST):
            counts["first observations moved"] += 1


def _line(kind: str, key: Dict[str, Any], before: Any, after: Any, is_json: bool) -> str:
    if before is None or after is None:
        change = "added" if before is None else "removed"
        row = {name: value for name, value in (after or before).items() if value is not None}
        if is_json:
            return json.dumps({"table": kind, "change": change, "row": row}, ensure_ascii=False)
        return f"{kind}: {change}: {_text(row)}"
    columns = {name: [before[name], after[name]] for name in _different(before, after)}
    if is_json:
        return json.dumps(
            {"table": kind, "change": "changed", "key": key, "columns": columns},
            ensure_ascii=False)
    said = ", ".join(f"{name} {_cell(one)} -> {_cell(other)}"
                     for name, (one, other) in columns.items())
    return f"{kind}: changed: {_text(key)}: {said}"


def _text(row: Dict[str, Any]) -> str:
    return " ".join(f"{name}={_cell(value)}" for name, value in row.items())


def _cell(value: Any) -> str:
    return "-" if value is None else errors.one_line(value)


def _different(one: Dict[str, Any], other: Dict[str, Any]) -> List[str]:
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def _table(content: Dict[str, Any], kind: str) -> Table:
    return next(Table.of(described).shown() for described in content["described"]
                if described["kind"] == kind)


def _frame(spark: Any, folder: str, table: Table) -> Any:
    paths = [os.path.join(os.path.abspath(folder), name) for name in output.files_of(folder)
             if name.startswith(f"{table.kind}/")]
    if not paths:
        return spark.createDataFrame([], table.spark_schema())
    return spark.read.schema(table.spark_schema()).parquet(*paths)
