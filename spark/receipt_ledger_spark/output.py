# The tables of an output, at any URI that Spark writes: a folder for each, and last, once all are
# whole, the folder `manifest` with one line of JSON.
#
# OUT/begun says whose unfinished output this is: the same command then writes it again.

from __future__ import annotations

import functools
import json
from typing import Any, Dict, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from . import __version__, errors
from .errors import Failure
from .reports import Options
from .tables import Table

VERSION = 2
NOTE = "Operational gross at customer prices as clients reported them, not settlement."
# Rows of one file; a month with more gets several.
_FILE_ROWS_MAX = 4_000_000
_MONTHS = {"sales": "sale_date", "journal": "date", "exceptions": "date"}


def check_free(spark: SparkSession, out: str, options: Options) -> bool:
    """Fails unless an output can be written here; returns whether it replaces an unfinished one."""
    if not _is_there(spark, out):
        return False
    is_begun = _is_there(spark, f"{out}/begun") and not _is_there(spark, f"{out}/manifest")
    if not is_begun or json.loads(_text(spark, f"{out}/begun")) != options.described():
        raise errors.usage("write output", out, "it exists already")
    return True


def begin(spark: SparkSession, out: str, options: Options) -> None:
    _write_text(spark, f"{out}/begun", options.described())


def write(out: str, table: Table, frame: DataFrame, options: Options) -> None:
    """Writes a table, by the months of the report's zone if its rows have one."""
    path = f"{out}/{table.kind}"
    month = _month(table, options)
    writer = frame.sortWithinPartitions(*table.order()).write
    if month is not None:
        divided = frame.selectExpr("*", f"{month} AS month").repartition("month")
        writer = divided.sortWithinPartitions("month", *table.order()).write.partitionBy("month")
    # What is there is of an output that was begun and not finished.
    writer.mode("overwrite").option("maxRecordsPerFile", _FILE_ROWS_MAX).parquet(path)


def counts(spark: SparkSession, out: str, tables: Sequence[Table]) -> Dict[str, int]:
    """The number of rows of each table, as it was written."""
    rows = [read(spark, out, table).agg(f.lit(table.kind), f.count("*")) for table in tables]
    found = dict(functools.reduce(DataFrame.unionAll, rows).collect())
    return {table.kind: found[table.kind] for table in tables}


def _month(table: Table, options: Options) -> Any:
    """An expression for the month of a row, if the table is divided by months."""
    if table.kind in _MONTHS:
        local = f"from_utc_timestamp({_MONTHS[table.kind]}, '{options.timezone}')"
        return f"date_format({local}, 'yyyy-MM')"
    names = [column.name for column in table.columns]
    if "period" in names and options.period in ("month", "day"):
        return "substring(period, 1, 7)"
    return None


def finish(spark: SparkSession, out: str, members: Dict[str, Any]) -> None:
    """Says that the output is whole."""
    program = {"receipt_ledger_spark": __version__, **members.pop("program")}
    _write_text(spark, f"{out}/manifest", {
        "manifest_version": VERSION, "note": NOTE, "program": program, **members})


def manifest(spark: SparkSession, out: str) -> Dict[str, Any]:
    """The manifest of an output."""
    path = f"{out}/manifest"
    if not _is_there(spark, path):
        raise errors.usage("read output", path, "there is no whole output")
    try:
        value = json.loads(_text(spark, path))
    except ValueError:
        raise Failure("read output", path, "it is not JSON", errors.DAMAGE) from None
    if not isinstance(value, dict) or value.get("manifest_version") != VERSION:
        raise errors.usage("read output", path, "it is not a manifest of this version")
    return value


def read(spark: SparkSession, out: str, table: Table) -> DataFrame:
    """The rows of a table."""
    return spark.read.schema(table.schema()).parquet(f"{out}/{table.kind}")


def _is_there(spark: SparkSession, path: str) -> bool:
    try:
        spark.read.option("recursiveFileLookup", True).text(path)
        return True
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise


def _text(spark: SparkSession, path: str) -> str:
    return "\n".join(row.value for row in spark.read.text(path).collect())


def _write_text(spark: SparkSession, path: str, content: Dict[str, Any]) -> None:
    text = json.dumps(content, ensure_ascii=False)
    frame = spark.createDataFrame([(text,)], "value string").coalesce(1)
    frame.write.mode("overwrite").text(path)
