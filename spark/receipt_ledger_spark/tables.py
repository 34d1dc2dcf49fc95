# The cells of `ledger-rules` as typed columns of Spark, and back, by expressions of SQL; and what
# several partitions tell of the same row, put together.
#
# An empty cell is null. A position `L:P`, of a ledger's index and a position, becomes a column of
# the ledger's name and one of the position: `position` becomes `ledger` and `position`,
# `first_position` becomes `first_ledger` and `first_position`.

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

# What exceptions have before their own columns: whether equal ones of other partitions are the
# same, and when the event of this one was recorded.
LEADING = ("scope", "recorded_at")
# What two partitions may tell of the same exception in different words.
_EXCEPTION_OWN = {*LEADING, "ledger", "position", "date", "country_code", "user_identifier"}
_STRICT = "map('mode', 'FAILFAST')"
_ORDERS = {
    "sales": ("environment", "bundle_id", "sale_key"),
    "journal": ("date", "environment", "bundle_id", "sale_key", "ledger", "position", "line"),
    "exceptions": ("ledger", "position", "exception", "detail", "sale_key"),
    "users": ("user_identifier",),
    "receipts": ("first_ledger", "first_position"),
    "subscriptions": ("environment", "bundle_id", "original_transaction_id"),
}

# Of each content: the type, the value of a cell {}, and the cell of a value {}.
_CONTENTS = {
    "text": ("string", "{}", "{}"),
    "integer": ("bigint", "CAST({} AS bigint)", "CAST({} AS string)"),
    "amount": ("decimal(38,6)", "CAST(concat({}, 'E-6') AS decimal(38,6))",
               "replace(CAST({} AS string), '.', '')"),
    "amounts": (
        "map<string,decimal(38,6)>",
        f"transform_values(from_json({{}}, 'map<string,string>', {_STRICT}), "
        "(k, v) -> CAST(concat(v, 'E-6') AS decimal(38,6)))",
        "to_json(transform_values({}, (k, v) -> replace(CAST(v AS string), '.', '')))"),
    "time": ("timestamp", "timestamp_millis(CAST({} AS bigint))",
             "CAST(unix_millis({}) AS string)"),
    "flag": ("boolean", "CAST({} AS boolean)", "CAST({} AS string)"),
    "list": ("array<string>", f"from_json({{}}, 'array<string>', {_STRICT})", "to_json({})"),
    "positions": (
        "array<struct<ledger:string,position:bigint>>",
        f"transform(from_json({{}}, 'array<string>', {_STRICT}), x -> named_struct('ledger', "
        "get(names, CAST(split_part(x, ':', 1) AS int)), 'position', "
        "CAST(split_part(x, ':', 2) AS bigint)))",
        "to_json(transform({}, x -> concat(array_position(names, x.ledger) - 1, ':', "
        "x.position)))"),
}


class Column(NamedTuple):
    """A column of a report, and what its cells are."""

    name: str
    content: str


class Table(NamedTuple):
    """A report's columns, as `ledger-rules fold --describe` names them."""

    kind: str
    columns: Tuple[Column, ...]

    @staticmethod
    def of(described: Dict[str, Any]) -> Table:
        names, contents = described["columns"], described["content"]
        if len(names) != len(contents) or not set(contents) <= {*_CONTENTS, "position"}:
            raise ValueError("a table has columns of unknown content")
        return Table(
            described["kind"], tuple(Column(*pair) for pair in zip(names, contents)))

    def fields(self) -> List[Column]:
        """The typed columns: a position counts as two, a text and an integer."""
        found = []
        for column in self.columns:
            if column.content == "position":
                found.append(Column(ledger_column(column.name), "text"))
                found.append(Column(column.name, "integer"))
            else:
                found.append(column)
        return found

    def schema(self) -> str:
        return ", ".join(
            f"`{field.name}` {_CONTENTS[field.content][0]}" for field in self.fields())

    def shown(self) -> Table:
        """Without the columns that only serve to put partitions together."""
        return Table(self.kind, tuple(c for c in self.columns if c.name not in LEADING))

    def order(self) -> Sequence[str]:
        """The order of rows within a file."""
        if self.kind in _ORDERS:
            return _ORDERS[self.kind]
        return [column.name for column in self.columns if column.content == "text"]


def ledger_column(position: str) -> str:
    """The name of the column with the ledger of a position."""
    if position == "position":
        return "ledger"
    return position.removesuffix("_position") + "_ledger"


def typed(table: Table, number: int, rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Typed columns from the column `cells` of the rows with this number."""
    values = []
    for index, column in enumerate(table.columns):
        # Spark may look at the cells before it has left out the rows of other tables.
        cell = f"if(number = {number}, nullif(get(cells, {index}), ''), NULL)"
        if column.content == "position":
            ledger = f"get(names, CAST(split_part({cell}, ':', 1) AS int))"
            values.append(f"{ledger} AS `{ledger_column(column.name)}`")
            values.append(f"CAST(split_part({cell}, ':', 2) AS bigint) AS `{column.name}`")
        else:
            values.append(f"{_CONTENTS[column.content][1].format(cell)} AS `{column.name}`")
    return _with_names(rows, names).where(f.col("number") == number).selectExpr(*values)


def cells(table: Table, rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """A column with each row's cells, as `typed` takes them, as a JSON array."""
    texts = []
    for column in table.columns:
        if column.content == "position":
            text = (f"concat(array_position(names, `{ledger_column(column.name)}`) - 1, ':', "
                    f"`{column.name}`)")
        else:
            text = _CONTENTS[column.content][2].format(f"`{column.name}`")
        texts.append(f"coalesce({text}, '')")
    return _with_names(rows, names).selectExpr(f"to_json(array({', '.join(texts)})) AS cells")


def _with_names(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    return rows.withColumn("names", f.array(*[f.lit(name) for name in names]))


# Rows of several partitions


def merged(table: Table, frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Each user, row of revenue and exception once, by sums, least, greatest and union alone.
    Sales, lines, receipts and subscriptions lie in one partition each.
    """
    ways = {"users": _users, "revenue": _revenue}
    if table.kind in ways:
        return _as(table, ways[table.kind](table, frame))
    return _exceptions(table, frame, names) if table.kind == "exceptions" else frame


def _revenue(table: Table, frame: DataFrame) -> DataFrame:
    keys = [column.name for column in table.columns if column.content == "text"]
    sums = [column.name for column in table.columns if column.content != "text"]
    return frame.groupBy(*keys).agg(*[f.sum(name).alias(name) for name in sums])


def _users(table: Table, frame: DataFrame) -> DataFrame:
    ways = {
        "integer": "sum({0})",
        "list": "nullif(array_sort(array_distinct(flatten(collect_list({0})))), array())",
        # Of the first and the last time.
        "time": "{1}({0})",
    }
    key = table.columns[0].name
    sums = [column.name for column in table.columns if column.content == "amounts"]
    rows = frame.groupBy(key).agg(*[
        f.expr(ways[column.content].format(
            column.name, "min" if column.name.startswith("first") else "max")).alias(column.name)
        for column in table.columns[1:] if column.content in ways
    ])
    for name in sums:
        rows = rows.join(_sums(frame, key, name), key, "left")
    return rows


def _sums(frame: DataFrame, key: str, name: str) -> DataFrame:
    """The sums of maps by their keys."""
    entries = frame.select(key, f.explode(name).alias("currency", "amount"))
    sums = entries.groupBy(key, "currency").agg(f.sum("amount").alias("amount"))
    listed = f.array_sort(f.collect_list(f.struct("currency", "amount")))
    return sums.groupBy(key).agg(f.map_from_entries(listed).alias(name))


def _exceptions(table: Table, frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Of equal exceptions that may lie in several partitions, the first."""
    single = frame.where("scope IS NULL").drop(*LEADING)
    several = _with_names(frame.where("scope IS NOT NULL"), names)
    several = several.withColumn("number", f.expr("array_position(names, ledger)"))
    own = [field.name for field in table.fields() if field.name not in _EXCEPTION_OWN]
    order = Window.partitionBy(*own).orderBy(
        "recorded_at", "number", "position", f.col("date").asc_nulls_last())
    first = several.withColumn("place", f.row_number().over(order)).where("place = 1")
    return single.unionByName(first.select(*single.columns))


def _as(table: Table, frame: DataFrame) -> DataFrame:
    """The columns of a table in their order and with their types."""
    return frame.selectExpr(*[
        f"CAST(`{field.name}` AS {_CONTENTS[field.content][0]}) AS `{field.name}`"
        for field in table.fields()])
