# The reports of many ledgers on Spark, by the compiled rules of Receipt Ledger.

__version__ = "0.1.0"
