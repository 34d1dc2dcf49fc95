# What `spark-submit submit.py run …` runs, where the wheel of receipt-ledger-spark is installed.

import sys

from receipt_ledger_spark.cli import main

sys.exit(main())
