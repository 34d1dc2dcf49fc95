# Makes the package `spark/` importable, for tests of its parts that need neither Spark nor a
# ledger.

import importlib.util
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "spark"))

needs_arrow = unittest.skipUnless(
    all(importlib.util.find_spec(name) for name in ("pyarrow", "numpy")), "no pyarrow here")
