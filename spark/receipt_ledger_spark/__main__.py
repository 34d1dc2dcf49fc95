# `python -m receipt_ledger_spark` is the command `receipt-ledger-spark`.

import sys

from receipt_ledger_spark.cli import main

if __name__ == "__main__":
    sys.exit(main())
