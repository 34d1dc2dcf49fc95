# The rows of all partitions as one table each, by sums, least, greatest and union alone.
#
# Sales, lines, receipts and subscriptions lie in one partition each. Users and rows of revenue may
# lie in several, and so may exceptions that are told apart by their text alone.

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

from .fold import Folded
from .plan import Plan
from .tables import LEADING, Table

_ORDERS = {
    "sales": ("environment", "bundle_id", "sale_key"),
    "journal": ("date", "environment", "bundle_id", "sale_key", "ledger", "position", "line"),
    "exceptions": ("ledger", "position", "exception", "detail", "sale_key"),
    "users": ("user_identifier",),
    "receipts": ("first_ledger", "first_position"),
    "subscriptions": ("environment", "bundle_id", "original_transaction_id"),
}
# What two partitions may tell of the same exception in different words.
_EXCEPTION_OWN = {*LEADING, "ledger", "position", "date", "country_code", "user_identifier"}


def frame_of(spark: Any, table: Table, number: int, folded: Sequence[Folded]) -> Any:
    """The rows of a table, of all partitions."""
    paths = [entry.table(number) for entry in folded if entry.rows[number] > 0]
    if not paths:
        return spark.createDataFrame([], table.spark_schema())
    return spark.read.schema(table.spark_schema()).parquet(*paths)


def merged(spark: Any, table: Table, frame: Any, plans: Sequence[Plan]) -> Any:
    """Each user, row of revenue and exception once."""
    if table.kind == "users":
        return _users(table, frame)
    if table.kind == "revenue":
        return _revenue(table, frame)
    if table.kind == "exceptions":
        return _exceptions(spark, table, frame, plans)
    return frame


def order_of(table: Table) -> Sequence[str]:
    """The order of rows within a file."""
    if table.kind == "revenue":
        return [column.name for column in table.columns if column.content == "text"]
    return _ORDERS[table.kind]


def _revenue(table: Table, frame: Any) -> Any:
    from pyspark.sql import functions as f

    keys = [column.name for column in table.columns if column.content == "text"]
    sums = [column.name for column in table.columns if column.content != "text"]
    rows = frame.groupBy(*keys).agg(*[f.sum(name).alias(name) for name in sums])
    return _as(table, rows)


def _users(table: Table, frame: Any) -> Any:
    from pyspark.sql import functions as f

    ways: Dict[str, Callable[[str], Any]] = {
        "integer": lambda name: f.sum(name),
        "list": lambda name: f.array_sort(f.array_distinct(f.flatten(f.collect_list(name)))),
        "time": lambda name: f.min(name) if name.startswith("first") else f.max(name),
    }
    key = table.columns[0].name
    sums = [column.name for column in table.columns if column.content == "amounts"]
    rows = frame.groupBy(key).agg(*[
        ways[column.content](column.name).alias(column.name)
        for column in table.columns[1:] if column.content in ways
    ])
    for name in sums:
        rows = rows.join(_sums(frame, key, name), key, "left")
    lists = [column.name for column in table.columns if column.content == "list"]
    for name in lists:
        rows = rows.withColumn(name, f.when(f.size(name) > 0, f.col(name)))
    return _as(table, rows)


def _sums(frame: Any, key: str, name: str) -> Any:
    """The sums of maps by their keys."""
    from pyspark.sql import functions as f

    entries = frame.select(key, f.explode(name).alias("currency", "amount"))
    sums = entries.groupBy(key, "currency").agg(f.sum("amount").alias("amount"))
    listed = f.array_sort(f.collect_list(f.struct("currency", "amount")))
    return sums.groupBy(key).agg(f.map_from_entries(listed).alias(name))


def _exceptions(spark: Any, table: Table, frame: Any, plans: Sequence[Plan]) -> Any:
    """Of equal exceptions that may lie in several partitions, the first."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    single = frame.where("scope IS NULL").drop(*LEADING)
    several = frame.where("scope IS NOT NULL")
    indexes = spark.createDataFrame(
        [(plan.ledger.name, number) for number, plan in enumerate(plans)],
        "ledger string, number long")
    several = several.join(f.broadcast(indexes), "ledger")
    own = [field.name for field in table.fields() if field.name not in _EXCEPTION_OWN]
    order = Window.partitionBy(*own).orderBy(
        "recorded_at", "number", "position", f.col("date").asc_nulls_last())
    first = several.withColumn("place", f.row_number().over(order)).where("place = 1")
    return single.unionByName(first.select(*single.columns))


def _as(table: Table, frame: Any) -> Any:
    """The columns of a table in their order and with their types."""
    from pyspark.sql.types import _parse_datatype_string

    schema = _parse_datatype_string(table.spark_schema())
    return frame.select(*[frame[field.name].cast(field.dataType).alias(field.name)
                          for field in schema.fields])
