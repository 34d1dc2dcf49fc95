# Writes Apple's files: rows, reports of both kinds, overviews.
from settlement_values import amount_text, day_text, micros, month_from_name, month_span

COLUMNS = [
    "Start Date", "End Date", "Vendor Identifier", "Quantity", "Partner Share",
    "Extended Partner Share", "Partner Share Currency", "Sales or Return", "Product Type Identifier",
    "Country Of Sale", "Promo Code", "Customer Price", "Customer Currency",
]
DETAILED_COLUMNS = [
    "Transaction Date", "Settlement Date", "SKU", "Quantity", "Partner Share",
    "Extended Partner Share", "Partner Share Currency", "Sale or Return", "Product Type Identifier",
    "Country of Sale", "Promo Code", "Customer Price", "Customer Currency",
]
LIST_HEADER = ["Country Of Sale", "Partner Share Currency", "Quantity", "Extended Partner Share"]


def sale(units, price, currency="EUR", country="DE", product="pro", share=None, flag="S",
         kind="IAY", day=None, **cells):
    """The cells of a row by name; units of a Return are given as they stand, negative."""
    share = share or price
    extended = amount_text(units * micros(share), currency)
    return {
        "Vendor Identifier": product, "SKU": product, "Quantity": str(units), "Partner Share": share,
        "Extended Partner Share": extended, "Partner Share Currency": currency,
        "Sales or Return": flag, "Sale or Return": flag, "Product Type Identifier": kind,
        "Country Of Sale": country, "Country of Sale": country,
        "Customer Price": ("-" if flag == "R" else "") + price, "Customer Currency": currency,
        "Transaction Date": day, **{name.replace("_", " "): cell for name, cell in cells.items()},
    }


def tabbed(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


def financial(month, *rows, columns=COLUMNS, totals=None):
    """The text of a report of a month such as `FY2026-P01`, with Total_Rows or the totals given."""
    start, end = map(day_text, month_span(month_from_name(month)))
    written = [columns, *([({"Start Date": start, "End Date": end} | row).get(name, "")
                           for name in columns] for row in rows)]
    return tabbed(written) + (f"Total_Rows\t{len(rows)}\n" if totals is None else totals)


def list_by_country(rows):
    """The list that ends a detailed report."""
    sums = {}
    for row in rows:
        key = row["Country Of Sale"], row["Partner Share Currency"]
        units, share = sums.get(key, (0, 0))
        sums[key] = units + int(row["Quantity"]), share + micros(row["Extended Partner Share"])
    return tabbed([LIST_HEADER, *([*key, str(units), amount_text(share, key[1])]
                                  for key, (units, share) in sums.items())])


def detailed(month, *rows, columns=DETAILED_COLUMNS, totals=None):
    """The text of a detailed report; a row's day is the month's first where it has none."""
    start, end = map(day_text, month_span(month_from_name(month)))
    body = [[row.get(name) or (start if name.endswith("Date") else "") for name in columns]
            for row in rows]
    head = f"Vendor\nStart Date\t{start}\nEnd Date\t{end}\n"
    return head + tabbed([columns, *body]) + (list_by_country(rows) if totals is None else totals)


def overview(title, *lines, columns=None):
    """The text of an overview; lines after its header as they stand."""
    header = columns or ("Region (Currency),Units Sold,Earned,Pre-Tax Subtotal,Input Tax,Adjustments,"
                         "Withholding Tax,Total Owed,Exchange Rate,Proceeds,Bank Account Currency")
    first = f'"iTunes Connect - Payments and Financial Reports\t({title})"' if title else "Payments"
    return "\n".join([first, ",,", header, *lines]) + "\n"
