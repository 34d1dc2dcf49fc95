# The cells of `ledger-rules` as typed columns of Arrow, and back; whole columns at a time.
#
# An empty cell is null. A position `L:P`, of a ledger's index and a position, becomes a column of
# the ledger's name and one of the position: `position` becomes `ledger` and `position`,
# `first_position` becomes `first_ledger` and `first_position`.

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

AMOUNT = pa.decimal128(38, 6)
TIME = pa.timestamp("us", tz="UTC")
PLACE = pa.struct([("ledger", pa.string()), ("position", pa.int64())])
# What exceptions have before their own columns: whether equal ones of other partitions are the
# same, and when the event of this one was recorded.
LEADING = ("scope", "recorded_at")
_MICROS = pa.decimal128(38, 0)

_TYPES = {
    "text": pa.string(),
    "integer": pa.int64(),
    "amount": AMOUNT,
    "amounts": pa.map_(pa.string(), AMOUNT),
    "time": TIME,
    "flag": pa.bool_(),
    "list": pa.list_(pa.string()),
    "positions": pa.list_(PLACE),
}
_SPARK_TYPES = {
    "text": "string",
    "integer": "bigint",
    "amount": "decimal(38,6)",
    "amounts": "map<string,decimal(38,6)>",
    "time": "timestamp",
    "flag": "boolean",
    "list": "array<string>",
    "positions": "array<struct<ledger:string,position:bigint>>",
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
    def of(described: Dict[str, Any]) -> "Table":
        names, contents = described["columns"], described["content"]
        if len(names) != len(contents) or not set(contents) <= {*_TYPES, "position"}:
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

    def schema(self) -> pa.Schema:
        return pa.schema([(field.name, _TYPES[field.content]) for field in self.fields()])

    def spark_schema(self) -> str:
        return ", ".join(
            f"`{field.name}` {_SPARK_TYPES[field.content]}" for field in self.fields())

    def shown(self) -> "Table":
        """Without the columns that only serve to put partitions together."""
        return Table(self.kind, tuple(c for c in self.columns if c.name not in LEADING))


def ledger_column(position: str) -> str:
    """The name of the column with the ledger of a position."""
    if position == "position":
        return "ledger"
    return position.removesuffix("_position") + "_ledger"


def typed(table: Table, cells: Sequence[pa.Array], ledgers: Sequence[str]) -> pa.RecordBatch:
    """Rows with typed columns."""
    if len(cells) != len(table.columns):
        raise ValueError(f"{table.kind} has {len(cells)} columns, not {len(table.columns)}")
    names = pa.array(list(ledgers), pa.string())
    arrays: List[pa.Array] = []
    for column, values in zip(table.columns, cells):
        # The cast checks that the bytes are UTF-8.
        text = _null_where_empty(values).cast(pa.string())
        if column.content == "position":
            arrays += _places(text, names)
        elif column.content == "positions":
            arrays.append(_place_lists(text, names))
        else:
            arrays.append(_DECODERS[column.content](text))
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema())


def cells(table: Table, batch: pa.RecordBatch, ledgers: Sequence[str]) -> List[pa.Array]:
    """The cells of typed rows, as `typed` takes them."""
    names = pa.array(list(ledgers), pa.string())
    found = []
    for column in table.columns:
        values = batch.column(column.name)
        if column.content == "position":
            index = pc.index_in(batch.column(ledger_column(column.name)), names)
            text = _joined(index, values)
        elif column.content == "positions":
            text = _place_texts(values, names)
        else:
            text = _ENCODERS[column.content](values)
        found.append(pc.fill_null(text, "").cast(pa.binary()))
    return found


def _null_where_empty(values: pa.Array) -> pa.Array:
    is_empty = pc.equal(pc.binary_length(values), 0)
    if not pc.any(is_empty).as_py():
        return values
    return pc.if_else(is_empty, pa.scalar(None, values.type), values)


def _amounts_of_micros(text: pa.Array) -> pa.Array:
    return _rescaled(text.cast(_MICROS), AMOUNT)


def _rescaled(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Decimals with the same digits and another scale."""
    return pa.Array.from_buffers(
        kind, len(values), values.buffers(), values.null_count, values.offset)


def _times(text: pa.Array) -> pa.Array:
    # The times of a ledger are of the years 1 to 9999: in microseconds, they fit.
    return pc.multiply_checked(text.cast(pa.int64()), 1000).cast(TIME)


def _flags(text: pa.Array) -> pa.Array:
    return pc.equal(text, "true")


def _from_json(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values from JSON texts; null from null."""
    if len(text) == text.null_count:
        return pa.nulls(len(text), kind)
    lines = pc.binary_join_element_wise('{"v":', pc.fill_null(text, "null"), "}\n", "")
    data = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "")[0].as_buffer()
    parsed = pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=max(data.size + 1, 1024)),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([("v", kind)]), unexpected_field_behavior="error"))
    values = parsed.column("v").combine_chunks()
    if len(values) != len(text):
        raise ValueError("a list has another form")
    return values.chunk(0) if isinstance(values, pa.ChunkedArray) else values


def _lists(text: pa.Array) -> pa.Array:
    return _from_json(_null_where(text, "[]"), pa.list_(pa.string()))


def _null_where(text: pa.Array, empty: str) -> pa.Array:
    return pc.if_else(pc.equal(text, empty), pa.scalar(None, pa.string()), text)


def _amount_maps(text: pa.Array) -> pa.Array:
    """Maps from objects such as {"EUR":"123"}: codes of currencies and digits need no escapes."""
    text = pc.replace_substring_regex(
        _null_where(text, "{}"), r'"([A-Z]{3})"\s*:\s*"(-?[0-9]+)"', r'{"key":"\1","value":"\2"}')
    text = pc.replace_substring_regex(pc.replace_substring_regex(text, r"^\{", "["), r"\}$", "]")
    entries = _from_json(
        text, pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))
    members = entries.flatten()
    return pa.MapArray.from_arrays(
        _offsets(entries), members.field("key"), _amounts_of_micros(members.field("value")))


def _offsets(lists: pa.Array) -> pa.Array:
    """The offsets of lists over their flattened values, null for a list that is null."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    empty = np.append(lists.is_null().to_numpy(zero_copy_only=False), False)
    return pa.array(offsets, pa.int32(), mask=empty)


def _places(text: pa.Array, names: pa.Array) -> Tuple[pa.Array, pa.Array]:
    """The names and positions of texts `L:P`."""
    parts = pc.extract_regex(text, r"^(?P<l>[0-9]+):(?P<p>[0-9]+)$")
    if parts.null_count != text.null_count:
        raise ValueError("a position has another form")
    index = pc.struct_field(parts, [0]).cast(pa.int32())
    return names.take(index), pc.struct_field(parts, [1]).cast(pa.int64())


def _place_lists(text: pa.Array, names: pa.Array) -> pa.Array:
    lists = _lists(text)
    ledger, position = _places(lists.flatten(), names)
    members = pa.StructArray.from_arrays([ledger, position], fields=list(PLACE))
    return pa.ListArray.from_arrays(_offsets(lists), members)


def _joined(index: pa.Array, position: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(index.cast(pa.string()), position.cast(pa.string()), ":")


def _place_texts(lists: pa.Array, names: pa.Array) -> pa.Array:
    members = lists.flatten()
    texts = _joined(pc.index_in(members.field("ledger"), names), members.field("position"))
    # Digits and a colon need no escapes.
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    return _json_lists(lists, quoted, "[", "]")


def _list_texts(lists: pa.Array) -> pa.Array:
    members = lists.flatten().cast(pa.string())
    text = pc.replace_substring(members, "\\", "\\\\")
    text = pc.replace_substring(text, '"', '\\"')
    if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        for code in range(32):
            text = pc.replace_substring(text, chr(code), f"\\u{code:04x}")
    return _json_lists(lists, pc.binary_join_element_wise('"', text, '"', ""), "[", "]")


def _amount_texts(maps: pa.Array) -> pa.Array:
    lists = maps.cast(pa.list_(pa.struct([("key", pa.string()), ("value", AMOUNT)])))
    members = lists.flatten()
    micros = _micros_texts(members.field("value"))
    pairs = pc.binary_join_element_wise('"', members.field("key"), '":"', micros, '"', "")
    return _json_lists(lists, pairs, "{", "}")


def _json_lists(lists: pa.Array, members: pa.Array, opening: str, closing: str) -> pa.Array:
    texts = pc.binary_join(pa.ListArray.from_arrays(_offsets(lists), members), ",")
    return pc.binary_join_element_wise(opening, texts, closing, "")


def _micros_texts(amounts: pa.Array) -> pa.Array:
    return _rescaled(amounts, _MICROS).cast(pa.string())


def _time_texts(times: pa.Array) -> pa.Array:
    return pc.divide_checked(times.cast(TIME).cast(pa.int64()), 1000).cast(pa.string())


_DECODERS = {
    "text": lambda text: text,
    "integer": lambda text: text.cast(pa.int64()),
    "amount": _amounts_of_micros,
    "amounts": _amount_maps,
    "time": _times,
    "flag": _flags,
    "list": _lists,
}
_ENCODERS = {
    "text": lambda values: values.cast(pa.string()),
    "integer": lambda values: values.cast(pa.string()),
    "amount": _micros_texts,
    "amounts": _amount_texts,
    "time": _time_texts,
    "flag": lambda values: values.cast(pa.string()),
    "list": _list_texts,
}
