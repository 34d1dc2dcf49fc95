# The cells of `ledger-rules` as typed columns, and back; and what several partitions tell of the same
# row, put together.
#
# An empty cell is null. A position `L:P`, of a ledger's index and a position, becomes a column of
# the ledger's name and one of the position: `position` becomes `ledger` and `position`,
# `first_position` becomes `first_ledger` and `first_position`.
#
# The rows of all tables share a frame: the number of the table, and as many slots of each type as
# one of them needs. Executors make values of cells, but for those in JSON, which Spark reads.

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from .streams import Malformed

# What exceptions have before their own columns: whether equal ones of other partitions are the
# same, and when the event of this one was recorded.
LEADING = ("scope", "recorded_at")
# What two partitions may tell of the same exception in different words.
_EXCEPTION_OWN = {*LEADING, "ledger", "position", "date", "country_code", "user_identifier"}
_STRICT = "map('mode', 'FAILFAST')"
_NO_AMOUNTS = "CAST(map() AS map<string,decimal(38,6)>)"
_ORDERS = {
    "sales": ("environment", "bundle_id", "sale_key"),
    "journal": ("date", "environment", "bundle_id", "sale_key", "ledger", "position", "line"),
    "exceptions": ("ledger", "position", "exception", "detail", "sale_key"),
    "users": ("user_identifier",),
    "receipts": ("first_ledger", "first_position"),
    "subscriptions": ("environment", "bundle_id", "original_transaction_id"),
}

# Of a slot: its type in Arrow, and how its cells are read.
_SLOTS = {
    "string": (pa.string(), pa.string()), "bigint": (pa.int64(), pa.int64()),
    "decimal(38,6)": (pa.decimal128(38, 6), pa.decimal128(38, 0)),
    "timestamp": (pa.timestamp("us", "UTC"), pa.int64()), "boolean": (pa.bool_(), pa.bool_()),
}
# Of each content: the type of its slot, its own, the value of a slot {}, and the cell of a value {}.
_CONTENTS = {
    "text": ("string", "string", "{}", "{}"),
    "integer": ("bigint", "bigint", "{}", "CAST({} AS string)"),
    "amount": ("decimal(38,6)", "decimal(38,6)", "{}", "replace(CAST({} AS string), '.', '')"),
    "amounts": (
        "string", "map<string,decimal(38,6)>",
        f"transform_values(from_json({{}}, 'map<string,string>', {_STRICT}), "
        "(k, v) -> CAST(concat(v, 'E-6') AS decimal(38,6)))",
        "to_json(transform_values({}, (k, v) -> replace(CAST(v AS string), '.', '')))"),
    "time": ("timestamp", "timestamp", "{}", "CAST(unix_millis({}) AS string)"),
    "flag": ("boolean", "boolean", "{}", "CAST({} AS string)"),
    "list": (
        "string", "array<string>", f"from_json({{}}, 'array<string>', {_STRICT})", "to_json({})"),
    "positions": (
        "string", "array<struct<ledger:string,position:bigint>>",
        f"transform(from_json({{}}, 'array<string>', {_STRICT}), x -> named_struct('ledger', "
        "get(names, CAST(split_part(x, ':', 1) AS int)), 'position', "
        "CAST(split_part(x, ':', 2) AS bigint)))",
        "to_json(transform({}, x -> concat(array_position(names, x.ledger) - 1, ':', "
        "x.position)))"),
}
_POSITION = r"^(?P<ledger>[0-9]+):(?P<position>[0-9]+)$"


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
            f"`{field.name}` {_CONTENTS[field.content][1]}" for field in self.fields())

    def slots(self) -> List[str]:
        """The slots of the fields: a type and a number."""
        found: List[str] = []
        for field in self.fields():
            kind = _CONTENTS[field.content][0]
            found.append(f"{kind} {sum(name.startswith(kind) for name in found)}")
        return found

    def cells(self) -> List[Tuple[str, pa.DataType]]:
        """How the columns of the program's rows are read."""
        return [(column.name, _SLOTS[_CONTENTS.get(column.content, ("string",))[0]][1])
                for column in self.columns]

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


def slots(tables: Sequence[Table]) -> List[str]:
    """The slots of a frame that has the rows of all these tables."""
    return sorted({slot for table in tables for slot in table.slots()})


def frame_schema(slots: Sequence[str]) -> str:
    """That of Spark."""
    return ", ".join(["number int", *(f"`{slot}` {_type(slot)}" for slot in slots)])


def _type(slot: str) -> str:
    return slot.rpartition(" ")[0]


def frame_rows(
    number: int, table: Table, columns: Sequence[pa.Array], slots: Sequence[str],
    names: Sequence[str],
) -> pa.RecordBatch:
    """On an executor: rows of the program as rows of the frame."""
    try:
        values = [value for column, cells in zip(table.columns, columns)
                  for value in _values(column, cells, names)]
    except pa.ArrowException:
        # Its text may show a cell.
        raise Malformed(f"a cell of table {number} has another form") from None
    rows, own = len(columns[0]), dict(zip(table.slots(), values))
    return pa.RecordBatch.from_arrays(
        [pa.repeat(pa.scalar(number, pa.int32()), rows),
         *(own.get(slot, pa.nulls(rows, _SLOTS[_type(slot)][0])) for slot in slots)],
        ["number", *slots])


def _values(column: Column, cells: pa.Array, names: Sequence[str]) -> List[pa.Array]:
    """Of the fields of a column."""
    if column.content == "position":
        found = pc.extract_regex(cells, _POSITION)
        if found.null_count != cells.null_count:
            raise pa.ArrowInvalid("a cell is no position")
        return [pa.array(names).take(pc.struct_field(found, [0]).cast(pa.int32())),
                pc.struct_field(found, [1]).cast(pa.int64())]
    if column.content == "time":
        return [cells.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))]
    if column.content == "amount":
        # Micros.
        return [pa.Array.from_buffers(
            pa.decimal128(38, 6), len(cells), cells.buffers(), offset=cells.offset)]
    return [cells]


def typed(table: Table, number: int, rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """The typed columns of the rows of the frame with this number."""
    values = []
    for field, slot in zip(table.fields(), table.slots()):
        value = _CONTENTS[field.content][2]
        # Spark may look at JSON before it has left out the rows of other tables.
        cell = f"`{slot}`" if value == "{}" else f"if(number = {number}, `{slot}`, NULL)"
        values.append(f"{value.format(cell)} AS `{field.name}`")
    return _with_names(rows, names).where(f.col("number") == number).selectExpr(*values)


def cells(table: Table, rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """A column with each row's cells, as `typed` takes them, as a JSON array."""
    texts = []
    for column in table.columns:
        if column.content == "position":
            text = (f"concat(array_position(names, `{ledger_column(column.name)}`) - 1, ':', "
                    f"`{column.name}`)")
        else:
            text = _CONTENTS[column.content][3].format(f"`{column.name}`")
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
        "amounts": "if(count({0}) = 0, NULL, map_from_entries(array_sort(map_entries("
                   f"aggregate(collect_list({{0}}), {_NO_AMOUNTS}, (sums, one) -> "
                   "map_zip_with(sums, one, (currency, sum, amount) -> "
                   "CAST(coalesce(sum, 0) + coalesce(amount, 0) AS decimal(38,6))))))))",
        # Of the first and the last time.
        "time": "{1}({0})",
    }
    return frame.groupBy(table.columns[0].name).agg(*[
        f.expr(ways[column.content].format(
            column.name, "min" if column.name.startswith("first") else "max")).alias(column.name)
        for column in table.columns[1:]
    ])


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
        f"CAST(`{field.name}` AS {_CONTENTS[field.content][1]}) AS `{field.name}`"
        for field in table.fields()])
