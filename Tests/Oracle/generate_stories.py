# Draws short stories of many sales: a few statements of both kinds each, close in time, about refunds.
import base64
import random

from dates import DAY_MS, days_from_text, time_text
from generate_metadata import encoded
from signing import Orders

SALE_MS = days_from_text("2026-01-02") * DAY_MS
BUNDLE = "com.example.stories"
# The reports by which stories are compared.
REPORTS = ["sales", "journal", "exceptions", "revenue --by basis,period", "users"]


class Sale:
    """What all statements of one sale have in common."""

    def __init__(self, random_source, number):
        pick, self.key = random_source.choice, f"{number:05}"
        self.quantity = pick([1, 2, 3, 3, 7])
        self.total = pick([19_980, 10_000, 9, None])
        self.offer_type = pick([None, None, None, 1, 1, 2])
        self.names_prices = random_source.random() < 0.4
        self.is_advanced = random_source.random() < 0.35
        self.upgrades = random_source.random() < 0.2
        self.miscounts = random_source.random() < 0.25


class Stories:
    """Draws from one seeded source, so that the seed decides every story."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.orders = Orders()

    def chance(self, part):
        return self.random.random() < part

    def pick(self, *values):
        return self.random.choice(values)

    def statement_ms(self):
        return SALE_MS + self.pick(10, 20, 20, 30, 30, 40) * DAY_MS

    def refund_ms(self):
        return SALE_MS + self.pick(3, 3, 5, 7) * DAY_MS + self.pick(0, 0, 0, 500)

    def signed(self, sale):
        payload = {
            "bundleId": BUNDLE, "environment": "Production", "productId": "pro", "transactionId": sale.key,
            "originalTransactionId": sale.key, "webOrderLineItemId": "7" + sale.key, "purchaseDate": SALE_MS,
            "originalPurchaseDate": SALE_MS, "signedDate": self.statement_ms(), "quantity": sale.quantity}
        if sale.miscounts and self.chance(0.4):
            payload["quantity"] = self.pick(0, None, 1_000_000, "x")
        if sale.offer_type is not None:
            payload["offerType"] = sale.offer_type
        if sale.offer_type == 1 and self.chance(0.3):
            payload["offerDiscountType"] = "FREE_TRIAL"
        if sale.total is not None and self.chance(0.6):
            payload["price"] = sale.total if self.chance(0.9) else self.pick(0, sale.total + 1)
            payload["currency"] = "EUR"
        if sale.is_advanced and self.chance(0.6):
            payload["advancedCommerceInfo"] = {"items": [{"refunds": self._amounts(sale.total or 5000)}]}
        if self.chance(0.6):
            payload["revocationDate"] = self.refund_ms()
            if self.chance(0.7):
                units = self.random.randrange(sale.quantity + 1)
                share = round(100_000 * units / sale.quantity)
                payload["revocationPercentage"] = self.pick(0, 100_000, share, share, 50_000, 40_000)
        if sale.upgrades and self.chance(0.4):
            payload["isUpgraded"] = True
        if self.chance(0.05):
            payload["multiSeatInfo"] = {}
        return self.orders.add(payload)

    def _amounts(self, total):
        """Refunds of Advanced Commerce, some more than the amount and some without one."""
        refunds = []
        for _ in range(self.pick(0, 1, 1, 2)):
            date_ms = SALE_MS + self.pick(3, 5, 7) * DAY_MS
            amount = self.pick(total // 2, total // 3, total)
            if self.chance(0.3):
                amount = self.pick(total + 5, 0, None)
            refunds.append({"refundDate": None if self.chance(0.05) else date_ms, "refundAmount": amount})
        return refunds

    def reply(self, sale, step):
        row = {
            "product_id": "pro", "quantity": str(sale.quantity), "transaction_id": sale.key,
            "original_transaction_id": sale.key, "web_order_line_item_id": "7" + sale.key,
            "purchase_date_ms": SALE_MS, "original_purchase_date_ms": SALE_MS}
        if sale.miscounts and self.chance(0.4):
            row["quantity"] = "11"
        if self.chance(0.5):
            row["cancellation_date_ms"] = self.refund_ms()
        if sale.upgrades and self.chance(0.3):
            row["is_upgraded"] = "true"
        if sale.offer_type == 1:
            row[self.pick("is_in_intro_offer_period", "is_trial_period")] = "true"
        receipt = {"bundle_id": BUNDLE, "in_app": [row]}
        if self.chance(0.9):
            receipt["request_date_ms"] = self.statement_ms()
        return {
            "receipt": base64.b64encode(sale.key.encode()).decode(),
            "verification": {
                "endpoint": "production", "occurred_at": time_text(SALE_MS + (60 + step) * DAY_MS),
                "reply": {"status": 0, "environment": "Production", "receipt": receipt}}}

    def version_1(self, line):
        """A reply's content as a version 1 notification, which has no time."""
        reply = line["verification"]["reply"]
        unified = {"status": 0, "environment": "Production", "latest_receipt": line["receipt"],
                   "latest_receipt_info": reply["receipt"]["in_app"]}
        return {"notification_type": "CANCEL", "bid": BUNDLE, "unified_receipt": unified,
                "occurred_at": line["verification"]["occurred_at"]}

    def line(self, sale, step):
        if self.chance(0.35):
            return {"notification": self.orders.add({
                "notificationType": "REFUND", "notificationUUID": f"{sale.key}-{step}",
                "signedDate": SALE_MS + 50 * DAY_MS, "data": {
                    "bundleId": BUNDLE, "environment": "Production",
                    "signedTransactionInfo": self.signed(sale)}})}
        form = self.random.random()
        if form < 0.4:
            # Sometimes two statements at once.
            line = {"signed_transactions": [self.signed(sale) for _ in range(self.pick(1, 1, 1, 2))]}
        else:
            line = self.reply(sale, step)
        if form > 0.95:
            return self.version_1(line)
        line["occurred_at"] = time_text(SALE_MS + self.pick(1, 29, 31) * DAY_MS)
        if sale.names_prices and self.chance(0.7):
            entry = {"currency": self.pick("EUR", "EUR", "USD", "XXX"), "price": self.pick(
                "9.99", "3.33", "9223372.036854", "9223372.036855", "12345678901", "0")}
            named = {"transaction_id": sale.key} if self.chance(0.6) else {
                "product_id": "pro", "kind": self.pick(None, "intro", "promo")}
            line["metadata"] = {"prices": [entry | named]}
        return line


def lines(seed, count, sign):
    """The import lines of this many stories, one story after the other."""
    stories = Stories(seed)
    written = []
    for number in range(count):
        sale = Sale(stories.random, number)
        written += [encoded(stories.line(sale, step)) for step in range(stories.pick(3, 4, 5, 6, 7))]
    return stories.orders.resolve(written, sign)
