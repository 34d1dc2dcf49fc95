# Writes Apple's reports of the sales in a journal, a file for each fiscal month, for measurements:
# python3 Benchmarks/measure/apple_reports.py journal.csv ROWS DIRECTORY
import csv
import math
import pathlib
import sys
from decimal import Decimal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Tests" / "Oracle"))
import dates  # noqa: E402
import settlement_writing  # noqa: E402


def units_by_cell(path):
    """The units of each month, line, product, country, currency and price."""
    cells = {}
    with open(path, encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            is_paid = line["kind"] in ("regular", "offer") and line["amount"]
            if not is_paid or line["country_code"] == "ZZ":
                continue
            units = max(1, abs(int(line["quantity"])))
            price = format((abs(Decimal(line["amount"])) / units).normalize(), ".2f")
            month = dates.period_name(dates.days_from_text(line["date"][:10]), "fiscal-month")
            cell = (month, line["line"] == "Return", line["product_id"], line["country_code"],
                    line["currency"], price)
            cells[cell] = cells.get(cell, 0) + units
    return cells


def main(journal, row_count, directory):
    cells = units_by_cell(journal)
    parts_max = math.ceil(row_count / len(cells))
    rows, count = {}, 0
    for (month, is_return, product, country, currency, price), units in cells.items():
        parts = min(parts_max, units)
        for part in range(min(parts, row_count - count)):
            share = units // parts + (part < units % parts)
            rows.setdefault(month, []).append(settlement_writing.sale(
                -share if is_return else share, price, currency, country, product,
                flag="R" if is_return else "S"))
            count += 1
    for month, own in rows.items():
        path = pathlib.Path(directory, f"{month}_ZZ.txt")
        path.write_text(settlement_writing.financial(month, *own), encoding="utf-8")
    print(f"{count} rows in {len(rows)} files")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
