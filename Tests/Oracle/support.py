# Shorthands for writing import lines and reading a report as rows, for the unit tests.
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
# App account tokens.
TOKEN, OTHER_TOKEN = "7e3fb204-2d4a-4c2b-9d31-00000000000a", "7e3fb204-2d4a-4c2b-9d31-00000000000b"


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

    `products`: the types that the lines' app declares.
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
    """The report's rows, with the requested columns, as in its CSV."""
    shown = reports.csv_text(*reports.report(name, a_book, reports.Options(**options)))
    rows = csv.DictReader(io.StringIO(shown, newline=""))
    return [tuple(cells[column] for column in columns) for cells in rows]


def exceptions(a_book, **options):
    """(exception, detail) of every exception."""
    return table("exceptions", a_book, "exception", "detail", **options)


def price(a_book):
    """(basis, unit price, currency) of every sale."""
    return table("sales", a_book, "price_basis", "unit_price", "currency")


# Signed objects; the oracle does not check their signatures.

HEADER = {"alg": "ES256", "x5c": [base64.b64encode(b"a certificate").decode()] * 3}


def jws(payload, header=HEADER, signature=bytes(64)):
    """A signed object in compact serialization, with a dummy signature."""
    parts = [json.dumps(part, ensure_ascii=False).encode() for part in (header, payload)]
    parts.append(signature)
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def signed(product="coins", transaction="1", date="2026-01-02", at="2026-01-03", **fields):
    """The payload of a one-time purchase's signed transaction; a field given as None is left out."""
    whole = {
        "bundleId": "app",
        "environment": "Production",
        "productId": product,
        "transactionId": transaction,
        "originalTransactionId": transaction,
        "purchaseDate": ms(date),
        "originalPurchaseDate": ms(date),
        "quantity": 1,
        "signedDate": ms(at),
        **fields,
    }
    return {name: value for name, value in whole.items() if value is not None}


def renewal(line_item, transaction="1", original="1", date="2026-01-02", **fields):
    """The payload of a subscription's period."""
    fields = {"webOrderLineItemId": line_item, "originalTransactionId": original, **fields}
    return signed("pro", transaction, date, **fields)


def upload(*payloads, at="2026-01-03", line=None, **metadata):
    """An import line of a client's signed transactions; `line`: other members of it."""
    whole = {
        "signed_transactions": [jws(payload) for payload in payloads],
        "metadata": metadata,
        "occurred_at": ms(at),
        **(line or {}),
    }
    return json.dumps(whole)


def notification(payload=None, name="n", at="2026-01-03", **data):
    """An import line of a notification about a signed transaction."""
    data = {"bundleId": "app", "environment": "Production", **data}
    if payload is not None:
        data["signedTransactionInfo"] = jws(payload)
    whole = {"notificationUUID": name, "notificationType": "X", "signedDate": ms(at), "data": data}
    return json.dumps({"notification": jws(whole)})


def told(payload, number=[0]):
    """A notification with its own UUID."""
    number[0] += 1
    return notification(payload, name=f"n{number[0]}")
