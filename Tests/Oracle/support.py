# Short ways to write import lines and to read a report as rows, for the unit checks.
import base64
import csv
import io
import json

import events
import reports
from dates import days_from_text, time_from_text
from journal import Book
from sales import Fold

RECEIPT = base64.b64encode(b"a receipt").decode()


def ms(text):
    """`2026-01-02` or a whole RFC 3339 time as epoch milliseconds."""
    return time_from_text(text if "T" in text else text + "T00:00:00Z")


def day(text):
    """`2026-01-02` as reports count days."""
    return days_from_text(text)


def row(product="coins", transaction="1", date="2026-01-02", **fields):
    """A row of a one-time purchase; a field given as None is left out."""
    whole = {
        "product_id": product,
        "transaction_id": transaction,
        "original_transaction_id": transaction,
        "purchase_date_ms": str(ms(date)),
        "original_purchase_date_ms": str(ms(date)),
        "quantity": "1",
        **fields,
    }
    return {name: value for name, value in whole.items() if value is not None}


def period(line_item, transaction="1", original="1", date="2026-01-02", **fields):
    """A row of a subscription's period."""
    fields = {"web_order_line_item_id": line_item, "original_transaction_id": original, **fields}
    return row("pro", transaction, date, **fields)


def line(*rows, at="2026-01-03", asked=None, reply=None, upload=None, **metadata):
    """An import line whose unified reply shows the rows, asked of the App Store at `asked`."""
    receipt = {"bundle_id": "app", "in_app": list(rows)}
    if asked is not None:
        receipt["request_date_ms"] = str(ms(asked))
    reply = {"status": 0, "environment": "Production", "receipt": receipt, **(reply or {})}
    whole = {
        "marketplace": "itunes",
        "receipt": RECEIPT,
        "country_code": "DE",
        "user_identifier": "42",
        "metadata": metadata,
        "occurred_at": ms(at),
        "verification": {"endpoint": "production", "reply": reply},
        **(upload or {}),
    }
    return json.dumps(whole)


def book(*lines, prices=(), rates=(), products=None):
    """The book of one import of the lines, then one price list and one table of rates.

    `products`: the types of what the lines' app declares.
    """
    positions = events.Positions()
    importer = events.Importer(positions, ms("2026-11-01"))
    fold = Fold({"app": products or {}})
    for event in importer.events("\n".join(lines).encode()):
        fold.add(event)
    listed = "product_id,country_code,currency,price,effective_from\n" + "\n".join(prices)
    declared = "date,base,quote,rate\n" + "\n".join(rates)
    return Book(
        fold,
        events.listed_prices(listed.encode(), positions.take()),
        events.declared_rates(declared.encode(), positions.take()),
    )


def table(name, a_book, *columns, **options):
    """The report's rows, of the columns asked for, as its CSV shows them."""
    shown = reports.csv_text(*reports.REPORTS[name](a_book, reports.Options(**options)))
    rows = csv.DictReader(io.StringIO(shown, newline=""))
    return [tuple(cells[column] for column in columns) for cells in rows]


def exceptions(a_book, **options):
    """(exception, detail) of every exception."""
    return table("exceptions", a_book, "exception", "detail", **options)


def price(a_book):
    """(basis, unit price, currency) of every sale."""
    return table("sales", a_book, "price_basis", "unit_price", "currency")
