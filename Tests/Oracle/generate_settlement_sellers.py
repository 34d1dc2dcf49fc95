# Reports with a row of every two letters as a country, of months and days around the changes of sellers
# (settlement rules, S17).
import itertools
import string

from settlement_writing import detailed, financial, overview, sale

COUNTRIES = ["".join(pair) for pair in itertools.product(string.ascii_uppercase, repeat=2)]
SINGLE_MONTHS = ("FY2020-P12", "FY2021-P01", "FY2024-P12", "FY2026-P02")
# Of a month in two regions: `AP` says who sold, `EU` does not.
CHANGED_MONTH = "FY2025-P01"
# Months of detailed reports, with the days of their transactions.
DAYS = {
    "FY2020-P11": ["08/10/2020"], "FY2021-P02": ["09/27/2020", "11/10/2020"],
    "FY2025-P02": ["10/25/2024", "10/26/2024"],
}
PRICE, SHARE = "2.00", "1.30"


def rows(day=None):
    return [sale(1, PRICE, country=country, share=SHARE, day=day) for country in COUNTRIES]


def files():
    """{name: text}."""
    found = {f"{month}_ZZ.txt": financial(month, *rows()) for month in SINGLE_MONTHS}
    found |= {f"{CHANGED_MONTH}_{region}.txt": financial(CHANGED_MONTH, *_apart(region))
              for region in ("AP", "EU")}
    for month, days in DAYS.items():
        found[f"{month}_Z1.txt"] = detailed(month, *(row for day in days for row in rows(day)))
    earned = f"{len(COUNTRIES) * 13 // 10}.{len(COUNTRIES) * 13 % 10}0"
    paid = f"Euro-Zone (EUR),676,{earned},{earned},0,0,0,{earned},1.10000,1000.01,CHF"
    found["report.csv"] = overview("November, 2025", paid, ",,", ',,"1000.01" CHF')
    return found


def _apart(region):
    """Two regions do not have one file."""
    return [row | {"Promo Code": region} for row in rows()]
