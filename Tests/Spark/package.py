# Makes the package `spark/` importable, for tests of its parts that need no ledger.

import importlib.util
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "spark"))

needs_spark = unittest.skipUnless(
    all(importlib.util.find_spec(name) for name in ("pyspark", "pyarrow")), "no PySpark here")
