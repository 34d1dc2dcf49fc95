# A session of Spark in UTC, and the failures of what runs in it.

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from typing import Iterator, Optional

from pyspark.sql import SparkSession

from . import errors
from .errors import Failure

_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # A malformed cell is an error, not a null.
    "spark.sql.ansi.enabled": "true",
    # Times from year 1 on are stored as they are, in the type that other engines read.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Rows are events of some KiB.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.inMemoryColumnarStorage.batchSize": "1000",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}
# Receipts stay on this machine. Most of what a run calls often is not worth Java's second compiler.
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
    "spark.driver.defaultJavaOptions":
        "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
        "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000",
}


@contextlib.contextmanager
def session(master: Optional[str], operation: str) -> Iterator[SparkSession]:
    """Starts Spark, and stops it. Without a master, spark-submit names it, or it runs here."""
    if master is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        master = "local[*]"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("receipt-ledger-spark")
    settings = dict(_SETTINGS)
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            settings.update(_LOCAL)
    for key, value in settings.items():
        builder = builder.config(key, value)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise errors.from_spark(error, "start Spark") from None
    # The handler of PySpark calls Java in the middle of another call.
    signal.signal(signal.SIGINT, interrupt)
    try:
        # Failures are reported by this package; what Spark says of them may show a cell.
        spark.sparkContext.setLogLevel("OFF")
        logging.disable(logging.CRITICAL)
        yield spark
    except Failure:
        raise
    except Exception as error:
        raise errors.from_spark(error, operation) from None
    finally:
        logging.disable(logging.NOTSET)
        with contextlib.suppress(Exception):
            # After an interrupted call, Java may not listen any more.
            spark.stop()
