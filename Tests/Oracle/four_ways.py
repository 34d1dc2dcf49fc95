# One sale shown in four ways, in every order of arrival: the figures must not depend on the order. A
# second sale of the same Apple Account, which no client uploads, comes before, between, or after them.
import base64
import itertools

from dates import DAY_MS, days_from_text, time_text
from generate_metadata import encoded
from signing import Orders

SALE_MS = days_from_text("2026-01-02") * DAY_MS
REFUND_MS = SALE_MS + 30 * DAY_MS
# The final facts: members of the newest signed transaction, and days from the sale to the last reply.
STORIES = {
    "kept": ({}, 59),
    "units": ({"revocationDate": REFUND_MS, "revocationPercentage": 50_000}, 59),
    "part": ({"revocationDate": REFUND_MS, "revocationPercentage": 33_000}, 59),
    "whole": ({"revocationDate": REFUND_MS}, 59),
    "reversed": ({"revocationDate": REFUND_MS, "revocationPercentage": 33_000}, 61),
    "amounts": ({"advancedCommerceInfo": {"items": [
        {"refunds": [{"refundDate": REFUND_MS, "refundAmount": 1230}]}]}}, 59),
}
# Columns that depend on the order of arrival; gross Returns and Reversals may differ too, the net may
# not.
BY_ARRIVAL = {"bundle_id", "first_position", "country_position", "user_position", "price_position",
              "cancellation_positions", "reversal_positions", "trust", "returned_units", "returns",
              "reversed_units", "reversals"}
REPORTS = ["sales", "revenue --by app,country,product,basis --refunds sale-date",
           "journal", "exceptions"]


def _ways(orders, bundle, refund, last_day):
    """A reply, a client's signed transaction, a notification, a later reply; then the other sale's line."""
    client = {"country_code": "FR", "user_identifier": "42"}

    def signed(day, **fields):
        return orders.add({
            "bundleId": bundle, "environment": "Production", "productId": "pro", "quantity": 2,
            "transactionId": "2", "originalTransactionId": "1", "webOrderLineItemId": "7",
            "appTransactionId": "70", "storefront": "DEU",
            "purchaseDate": SALE_MS, "originalPurchaseDate": SALE_MS,
            "appAccountToken": "7E3FB204-2D4A-4C2B-9D31-00000000000A", "price": 19_980, "currency": "EUR",
            "signedDate": SALE_MS + day * DAY_MS, **fields})

    def reply(day, **fields):
        row = {"product_id": "pro", "quantity": "2", "transaction_id": "2", "original_transaction_id": "1",
               "web_order_line_item_id": "7", "purchase_date_ms": SALE_MS,
               "original_purchase_date_ms": SALE_MS,
               "app_account_token": "7e3fb204-2d4a-4c2b-9d31-00000000000b", **fields}
        asked_ms = SALE_MS + day * DAY_MS
        shown = {"status": 0, "environment": "Production", "receipt": {
            "bundle_id": bundle, "request_date_ms": asked_ms, "in_app": [row]}}
        return {"marketplace": "itunes", "receipt": base64.b64encode(bundle.encode()).decode(), **client,
                "occurred_at": time_text(asked_ms), "metadata": {"price": "9.99", "currency": "EUR"},
                "verification": {"endpoint": "production", "reply": shown}}

    def notified(name, transaction, day):
        return {"notification": orders.add({
            "notificationType": "REFUND", "notificationUUID": f"{name}-{bundle}",
            "signedDate": SALE_MS + day * DAY_MS, "data": {
                "bundleId": bundle, "environment": "Production", "signedTransactionInfo": transaction}})}

    is_cancelled = bool(refund) and last_day < 60
    cancelled = {"cancellation_date_ms": REFUND_MS, "cancellation_reason": "1"} if is_cancelled else {}
    gift = {"productId": "gift", "transactionId": "8", "originalTransactionId": "8", "price": 990,
            "webOrderLineItemId": None, "appAccountToken": None}
    return [
        reply(1),
        {"signed_transactions": [signed(2)], **client},
        notified("news", signed(60, **refund), 60),
        reply(last_day, **cancelled),
        notified("gift", signed(3, **gift), 3),
    ]


def lines(sign):
    """The import lines of every story in all orders, each of an app of its own."""
    orders, written = Orders(), []
    for name, story in STORIES.items():
        for number, order in enumerate(itertools.permutations(range(4))):
            ways = _ways(orders, f"com.example.{name}.order{number:02}", *story)
            order = [*order[:number % 5], 4, *order[number % 5:]]
            written.extend(encoded(ways[place]) for place in order)
    return orders.resolve(written, sign)


def differences(reports):
    """The differences between two orders of a story. `reports`: of sales, and of revenue, a dictionary a
    row."""
    found = {}
    for rows in reports:
        for row in rows:
            name = row["bundle_id"].split(".")[2]
            kept = tuple(cell for column, cell in row.items() if column not in BY_ARRIVAL)
            one = (name, row["product_id"], len(row))
            found.setdefault(one, {}).setdefault(kept, []).append(row["bundle_id"])
    counts = [f"{len(set(sum(seen.values(), [])))} orders of {name}"
              for (name, *_), seen in found.items() if sum(map(len, seen.values())) != 24]
    apart = [f"{name}: {kept} in {', '.join(orders)}"
             for (name, *_), seen in found.items() if len(seen) > 1 for kept, orders in seen.items()]
    if len(found) != 2 * len(STORIES) * len(reports):
        counts.append("a story is missing")
    return counts + apart
