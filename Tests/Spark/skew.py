# Histories in which much is connected: a customer with very many sales, a very long reply.

from __future__ import annotations

import json

BUNDLE = "com.example.skew"
BEGAN_MS = 1_735_689_600_000
MINUTE_MS = 60_000
ROWS_OF_A_REPLY = 100


def _row(number: int) -> dict[str, str]:
    """A sale. Every other one is a period of the same subscription."""
    bought_ms = str(BEGAN_MS + number * MINUTE_MS)
    row = {"quantity": "1", "transaction_id": f"7{number:08}", "purchase_date_ms": bought_ms}
    if number % 2:
        return row | {
            "product_id": "coins", "original_transaction_id": row["transaction_id"],
            "original_purchase_date_ms": bought_ms}
    return row | {
        "product_id": "pro.month", "original_transaction_id": "700000000",
        "original_purchase_date_ms": str(BEGAN_MS), "web_order_line_item_id": f"8{number:08}",
        "expires_date_ms": str(BEGAN_MS + (number + 2) * MINUTE_MS)}


def _line(receipt: int, user: str, rows: list[dict[str, str]], first_ms: int) -> str:
    reply = {
        "status": 0, "environment": "Production",
        "receipt": {"bundle_id": BUNDLE, "request_date_ms": str(first_ms), "in_app": rows}}
    prices = [
        {"product_id": "coins", "price": "0.99", "currency": "EUR"},
        {"product_id": "pro.month", "price": "4.99", "currency": "EUR"}]
    return json.dumps({
        "marketplace": "itunes", "receipt": f"c2tld{receipt:07}", "country_code": "DE",
        "user_identifier": user, "metadata": {"prices": prices}, "occurred_at": first_ms,
        "verification": {"reply": reply}})


def one_customer(sales: int) -> list[str]:
    """Receipts of one customer, each of which shows the last sale of the previous one."""
    lines = []
    for receipt, first in enumerate(range(0, sales, ROWS_OF_A_REPLY)):
        numbers = range(max(0, first - 1), min(sales, first + ROWS_OF_A_REPLY))
        first_ms = BEGAN_MS + (first + ROWS_OF_A_REPLY) * MINUTE_MS
        lines.append(_line(receipt, "the customer", [_row(n) for n in numbers], first_ms))
    return lines


def one_reply(rows: int) -> list[str]:
    """One verification with very many rows, and a few that show some of them again."""
    lines = [_line(0, "the first", [_row(n) for n in range(rows)], BEGAN_MS)]
    for receipt in range(1, 20):
        shown = [_row(n) for n in range(receipt, rows, rows // 10)]
        lines.append(_line(receipt, f"reader {receipt}", shown, BEGAN_MS + receipt))
    return lines
