# What `spark-submit --py-files receipt_ledger_spark-….whl submit.py run …` runs.

import sys

from receipt_ledger_spark.cli import main

sys.exit(main())
