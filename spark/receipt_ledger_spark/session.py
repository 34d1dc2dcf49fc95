# A session of Spark: quiet, in UTC, with bounded batches; Java is looked for before Spark would
# look for it.

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
from typing import Any, Callable, Dict, Iterator, Optional, Sequence

from . import errors
from .errors import Failure

_JAVA_VERSIONS = range(8, 24)


def check() -> None:
    """Fails unless PySpark and a Java that it runs on are installed."""
    try:
        import pyspark
    except ImportError:
        raise errors.usage(
            "start Spark", "PySpark", "not installed: pip install 'pyspark>=3.5,<4'") from None
    if not re.match(r"3\.(5|[6-9])", pyspark.__version__):
        raise errors.usage(
            "start Spark", "PySpark", f"version {pyspark.__version__}; this needs 3.5")
    _check_java()


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        raise errors.usage(
            "start Spark", java or "java",
            "no Java here; install a runtime of version 17, or set JAVA_HOME")
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, timeout=60, check=False).stderr.decode(
                errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise errors.usage("start Spark", java, f"it cannot be run: {error}") from None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None:
        raise errors.usage("start Spark", java, "it does not tell its version")
    if int(found.group(1)) not in _JAVA_VERSIONS:
        raise errors.usage(
            "start Spark", java, f"Java {found.group(1)} does not run Spark 3.5; use 17")


class Session:
    """Starts Spark and stops it."""

    def __init__(
        self, master: str, partitions: int, rows_per_batch: int, scratch: Optional[str],
        settings: Sequence[str], is_verbose: bool = False,
    ) -> None:
        check()
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        builder = SparkSession.builder.master(master).appName("receipt-ledger-spark")
        given = _settings(master, partitions, rows_per_batch, scratch, is_verbose)
        given.update(setting.split("=", 1) for setting in settings)
        for key, value in given.items():
            builder = builder.config(key, value)
        if not is_verbose:
            logging.disable(logging.CRITICAL)
        interrupt = signal.getsignal(signal.SIGINT)
        try:
            self.spark = builder.getOrCreate()
        except Exception as error:
            raise errors.from_spark(error, "start Spark") from None
        # The handler of PySpark calls Java in the middle of another call.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)
        self._package: Optional[str] = None

    def ship(self, *paths: str) -> None:
        """Sends files to every executor, which find them by `shipped`, and this package."""
        context = self.spark.sparkContext
        for path in paths:
            context.addFile(path)
        if self._package is None:
            folder = tempfile.mkdtemp(prefix="receipt-ledger-spark-")
            self._package = folder
            archive = os.path.join(folder, "receipt_ledger_spark.zip")
            _archive(archive)
            context.addPyFile(archive)

    def begin(self, step: str) -> None:
        """Names what follows in Spark's pages and in its log of events."""
        self.spark.sparkContext.setJobDescription(step)

    def map_in_arrow(self, frame: Any, work: Callable[[Iterator[Any]], Iterator[Any]],
                     schema: str) -> Any:
        """`DataFrame.mapInArrow`, without its need for pandas."""
        from pyspark.rdd import PythonEvalType
        from pyspark.sql import DataFrame
        from pyspark.sql.types import _parse_datatype_string
        from pyspark.sql.udf import UserDefinedFunction

        function = UserDefinedFunction(
            work, returnType=_parse_datatype_string(schema),
            evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        column = function(*[frame[name] for name in frame.columns])
        return DataFrame(frame._jdf.pythonMapInArrow(column._jc.expr(), False), self.spark)

    def stop(self) -> None:
        """Ends Spark; what it says then is of no use."""
        try:
            self.spark.stop()
        except Exception:
            # After an interrupted call, Java may not listen any more. It ends with this process.
            pass
        finally:
            logging.disable(logging.NOTSET)
            if self._package is not None:
                shutil.rmtree(self._package, ignore_errors=True)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()


def shipped(name: str) -> str:
    """The path of a shipped file, on the driver and on executors."""
    from pyspark import SparkFiles

    return SparkFiles.get(name)


def _settings(
    master: str, partitions: int, rows_per_batch: int, scratch: Optional[str], is_verbose: bool
) -> Dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(partitions),
        # Partitions hold whole components; none may be merged or split by size.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(rows_per_batch),
        "spark.sql.parquet.columnarReaderBatchSize": str(rows_per_batch),
        # Times from year 1 on are stored as they are.
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    }
    if master.startswith("local"):
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        settings["spark.driver.host"] = "127.0.0.1"
    if scratch is not None:
        settings["spark.local.dir"] = scratch
    options = []
    if master.startswith("local["):
        # Little of the work is Java's: compiling it well, and collecting on all processors, costs
        # more than it saves.
        options += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    if not is_verbose:
        quiet = os.path.join(os.path.dirname(os.path.abspath(__file__)), "log4j2.properties")
        options.append(f"-Dlog4j2.configurationFile=file:{quiet}")
    settings["spark.driver.extraJavaOptions"] = " ".join(options)
    return settings


def _archive(path: str) -> None:
    """This package as a file that executors import from."""
    folder = os.path.dirname(os.path.abspath(__file__))
    package = os.path.basename(folder)
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(os.listdir(folder)):
            if name.endswith((".py", ".properties")):
                archive.write(os.path.join(folder, name), f"{package}/{name}")


def failure_of(error: BaseException, operation: str) -> Failure:
    """What to say of an exception out of Spark."""
    return error if isinstance(error, Failure) else errors.from_spark(error, operation)
