# Draws the sales of one fiscal year as import lines, for reports to be made of (settlement rules, S8).
import base64
import random
from dataclasses import dataclass

from dates import DAY_MS
from generate_metadata import encoded
from generate_signed import STOREFRONTS
from settlement_values import month_from_name, month_span
from signing import Orders

BUNDLES = ("com.example.one", "com.example.two")
PRODUCTS = ("coins", "pro.month", "pro.year", "=hat", 'ring "gold", small', "book;used")
FIRST = month_from_name("FY2026-P01")
MONTHS = 12
# Units of share currency that a country's sales are paid in, by region; the customer's currency.
REGIONS = {
    "EU": ("EUR", 1, {"EUR": "DE FR IT ES NL BE AT IE PT FI GR LU"}),
    "US": ("USD", 1, {"USD": "US"}), "GB": ("GBP", 1, {"GBP": "GB"}), "JP": ("JPY", 1, {"JPY": "JP"}),
    "CA": ("CAD", 1, {"CAD": "CA"}), "AU": ("AUD", 1, {"AUD": "AU"}), "CH": ("CHF", 1, {"CHF": "CH"}),
    "MX": ("MXN", 1, {"MXN": "MX"}), "KR": ("KRW", 1, {"KRW": "KR"}), "SE": ("SEK", 1, {"SEK": "SE"}),
    "AP": ("USD", 1, {"USD": "VN NP KH LA MO"}),
    # Billed in the country's currency, paid in another.
    "WW": ("USD", 4, {"PLN": "PL", "THB": "TH", "KWD": "KW", "AED": "AE", "USD": "AR CO PE UY KE NG PK UA"}),
}
PLACES = {
    country: (region, currency, share_currency, rate)
    for region, (share_currency, rate, currencies) in REGIONS.items()
    for currency, countries in currencies.items()
    for country in countries.split()
}
DIGITS = {"JPY": 0, "KRW": 0}
TIERS = (990_000, 4_990_000, 9_990_000, 49_990_000, 99_990_000, 1_990_000)


@dataclass
class Purchase:
    """What statements say of one sale; the price is the whole quantity's, in thousandths."""

    product: str
    country: str
    day: int
    price: int | None
    currency: str
    quantity: int = 1
    kind: str = "regular"
    is_signed: bool = True
    refunded: int = 0
    is_reversed: bool = False
    environment: str = "Production"


class Sales:
    """Draws the import lines of a ledger; the seed decides them all."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.orders = Orders()
        self.serial = 0

    def chance(self, part):
        return self.random.random() < part

    def purchase(self):
        pick = self.random.choice
        country = list(PLACES)[min(int(self.random.expovariate(0.12)), len(PLACES) - 1)]
        product, currency = pick(PRODUCTS), PLACES[country][1]
        first, last = month_span(FIRST + self.random.randrange(MONTHS))
        day = self.random.randint(first, last)
        if self.chance(0.12):
            day = pick((first, first + 1, last - 1, last))
        price = tier(product, currency) + (self.chance(0.1) * 1_000_000)
        if self.chance(0.3):
            # Few cells, with many units each, at the edges of few months.
            product, country, currency = PRODUCTS[0], pick(["DE", "DE", "FR", "AT"]), "EUR"
            first, last = month_span(FIRST + self.random.randrange(5))
            day = pick((first, first + 1, first + 2, first + 15, last - 2, last - 1, last))
            price = pick((990_000, 990_000, 1_990_000))
        kind = pick(["regular"] * 12 + ["intro", "intro", "trial", "family"])
        quantity = pick([1] * 9 + [2, 3])
        whole = price * quantity // 1000 + int(quantity > 1 and self.chance(0.4))
        found = Purchase(product, country, day, whole, currency, quantity, kind, self.chance(0.6))
        if self.chance(0.08):
            found.price = None
        elif found.is_signed and self.chance(0.03):
            found.price = 0
        if self.chance(0.08):
            found.refunded = 100_000
            if found.is_signed:
                found.refunded = pick([100_000, 100_000, 50_000, round(100_000 / quantity)])
            found.is_reversed = self.chance(0.2)
        if self.chance(0.03):
            found.environment = "Sandbox"
        return found

    def lines(self, count, planted):
        """Import lines of that many sales and of the planted ones, in the order of their days."""
        purchases = [self.purchase() for _ in range(count)] + planted
        purchases.sort(key=lambda one: one.day)
        return [line for one in purchases for line in self._statements(one)]

    def _statements(self, one):
        self.serial += 1
        # Noon in the store's zone, so that a planted day is that day.
        at_ms = one.day * DAY_MS + 20 * 3_600_000
        yield self._line(one, at_ms, at_ms + DAY_MS // 2, False)
        if one.refunded:
            yield self._line(one, at_ms, at_ms + 9 * DAY_MS, True)
            if one.is_reversed:
                yield self._line(one, at_ms, at_ms + 40 * DAY_MS, False)

    def _line(self, one, at_ms, told_ms, is_refunded):
        refund_ms = at_ms + 7 * DAY_MS
        line = self._signed(one, at_ms, told_ms, is_refunded and refund_ms) if one.is_signed else (
            self._reply(one, at_ms, told_ms, is_refunded and refund_ms))
        return encoded(line | {"occurred_at": told_ms, "user_identifier": str(self.serial % 97)})

    def _signed(self, one, at_ms, told_ms, refund_ms):
        number = f"{self.serial:07}"
        payload = {
            "bundleId": BUNDLES[self.serial % 2], "environment": one.environment,
            "productId": one.product, "transactionId": f"2{number}",
            "originalTransactionId": f"2{number}", "purchaseDate": at_ms, "originalPurchaseDate": at_ms,
            "signedDate": told_ms, "quantity": one.quantity, "storefront": STOREFRONTS[one.country],
        }
        if one.price is not None:
            payload |= {"price": one.price, "currency": one.currency}
        if one.kind in ("intro", "trial"):
            discount = "FREE_TRIAL" if one.kind == "trial" else "PAY_AS_YOU_GO"
            payload |= {"offerType": 1, "offerDiscountType": discount}
        if one.kind == "family":
            payload["inAppOwnershipType"] = "FAMILY_SHARED"
        if refund_ms:
            payload |= {"revocationDate": refund_ms, "revocationPercentage": one.refunded}
        return {"signed_transactions": [self.orders.add(payload)], "metadata": {}}

    def _reply(self, one, at_ms, told_ms, refund_ms):
        number = f"3{self.serial:07}"
        row = {
            "product_id": one.product, "transaction_id": number, "original_transaction_id": number,
            "purchase_date_ms": str(at_ms), "original_purchase_date_ms": str(at_ms),
            "quantity": str(one.quantity), "is_trial_period": str(one.kind == "trial").lower(),
            "is_in_intro_offer_period": str(one.kind == "intro").lower(),
        }
        if one.kind == "family":
            row["in_app_ownership_type"] = "FAMILY_SHARED"
        if refund_ms:
            row["cancellation_date_ms"] = str(refund_ms)
        prices = []
        if one.price is not None:
            unit = one.price // one.quantity * 1000
            prices = [{"transaction_id": number, "price_micros": unit, "currency": one.currency}]
        receipt = {"bundle_id": BUNDLES[self.serial % 2], "request_date_ms": str(told_ms), "in_app": [row]}
        reply = {"status": 0, "environment": one.environment, "receipt": receipt}
        endpoint = "sandbox" if one.environment == "Sandbox" else "production"
        return {
            "marketplace": "itunes", "receipt": base64.b64encode(number.encode()).decode(),
            "country_code": one.country, "metadata": {"prices": prices},
            "verification": {"endpoint": endpoint, "reply": reply},
        }


def tier(product, currency):
    """A product's usual price, in micros of the currency."""
    price = TIERS[PRODUCTS.index(product)]
    return price * 150 // 1_000_000 * 1_000_000 if currency in DIGITS else price
