# Runs revenue.sql over a log in DuckDB, and prints how long the query took and what it came to.
import json
import pathlib
import sys
import time

import duckdb

PURCHASE = [
    "product_id", "transaction_id", "original_transaction_id", "web_order_line_item_id",
    "purchase_date_ms", "quantity", "is_trial_period", "in_app_ownership_type",
]
PRICE = [
    "transaction_id", "product_id", "price", "price_micros", "price_milliunits", "currency",
]


def structure(names):
    return json.dumps([{name: "VARCHAR" for name in names}])


MACROS = f"""
CREATE TEMP MACRO rows_of(list) AS from_json(list, '{structure(PURCHASE)}');
CREATE TEMP MACRO prices_of(list) AS from_json(list, '{structure(PRICE)}');
CREATE TEMP MACRO price_entry(told) AS
  CASE WHEN told.currency IS NULL THEN NULL ELSE
    {{transaction_id: NULL, product_id: NULL, price: told.price, price_micros: told.price_micros,
      price_milliunits: told.price_milliunits, currency: told.currency}} END;
CREATE TEMP MACRO amount(told) AS
  coalesce(
    try_cast(told.price AS DECIMAL(18, 6)),
    CAST(try_cast(told.price_micros AS BIGINT) AS DECIMAL(18, 0)) * 0.000001,
    CAST(try_cast(told.price_milliunits AS BIGINT) AS DECIMAL(18, 0)) * 0.001);
"""


def main():
    query = pathlib.Path(__file__).with_name("revenue.sql").read_text(encoding="utf-8")
    connection = duckdb.connect()
    connection.execute(MACROS)
    began = time.monotonic()
    rows = connection.execute(query, {"log": sys.argv[1:]}).fetchall()
    seconds = time.monotonic() - began
    print(json.dumps({"seconds": seconds, "rows": len(rows), "units": int(sum(row[3] for row in rows))}))


if __name__ == "__main__":
    main()
