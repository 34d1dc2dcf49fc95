# Draws signed transactions and notifications of the same sales that replies show (rule R12).
import json

from dates import DAY_MS
from generate_metadata import MetadataMaker, Raw, encoded
from signing import Orders
from storefronts import ALPHA_2

STOREFRONTS = {alpha_2: alpha_3 for alpha_3, alpha_2 in ALPHA_2.items()}
# Faults of a signed object that show without checking its signature.
FAULTS = ["two_parts", "four_parts", "padded", "header_not_json", "algorithm_none", "algorithm_hs256",
          "algorithm_es384", "missing_certificates", "two_certificates", "four_certificates",
          "short_signature"]
TYPES = ["REFUND", "REFUND_REVERSED", "REVOKE", "DID_RENEW", "SUBSCRIBED", "CONSUMPTION_REQUEST", "NEW_ONE"]
SUBTYPES = [None, None, "INITIAL_BUY", "UPGRADE", "VOLUNTARY"]
# Days after a sale on which statements of both kinds are often made, so that times coincide.
STATEMENT_DAYS = (1, 2, 6, 12, 24, 50)


class SignedMaker(MetadataMaker):
    """Draws from the generator's source; signatures come later, by `orders`."""

    def __init__(self, seed, nasty):
        super().__init__(seed, nasty)
        self.orders = Orders()
        self.notified = 0

    def statement_ms(self, sale, at_ms):
        """When a statement about the sale was made."""
        if self.chance(0.6):
            return sale["date_ms"] + self.pick(*STATEMENT_DAYS) * DAY_MS
        return at_ms - self.random.randrange(40 * DAY_MS)

    def refund_ms(self, sale):
        """A date on which some of the sale was refunded; few dates, so that statements share them."""
        return sale["date_ms"] + self.pick(1, 5, 45) * DAY_MS + self.pick(0, 0, 60_000)

    # Payloads.

    def _written(self, number):
        """A number as Apple writes it, rarely as a string of its digits."""
        return str(number) if self.chance(0.05) else number

    def payload(self, sale, at_ms):
        quantity = sale["quantity"]
        payload = {
            "bundleId": sale["bundle"],
            "environment": sale["environment"],
            "productId": sale["product"],
            "transactionId": self.written_id(self.random.choice(sale["transactions"])),
            "originalTransactionId": self.written_id(sale["original"]),
            "purchaseDate": self._written(sale["date_ms"] + self.pick(0, 0, 0, 1000)),
            "originalPurchaseDate": self._written(sale["original_date_ms"]),
            "quantity": self._written(quantity),
            "signedDate": self.statement_ms(sale, at_ms),
            "type": "Auto-Renewable Subscription" if sale["line_item"] else "Consumable",
        }
        if self.chance(0.05):
            payload["type"] = self.pick(None, "", 5, "Non-Renewing Subscription", payload["type"])
        if sale["line_item"] is not None:
            payload["webOrderLineItemId"] = self.written_id(sale["line_item"])
        elif self.chance(0.2):
            payload["webOrderLineItemId"] = self.pick("0", "", None)
        if sale["expires_ms"]:
            payload["expiresDate"] = sale["expires_ms"]
        self._draw_kind(payload, sale)
        self._draw_price(payload, sale)
        self._draw_refund(payload, sale)
        if self.chance(0.7):
            payload["storefront"] = self.pick(sale["storefront"], sale["storefront"], "QQQ", "deu")
        if self.chance(0.5):
            payload["appAccountToken"] = self.pick(*sale["tokens"])
        if self.chance(0.6):
            payload["appTransactionId"] = self.written_id(sale["account"])
        if self.chance(0.02):
            payload["appTransactionId"] = self.pick("", None, True, "=account")
        if sale["upgrades"] and self.chance(0.5):
            payload["isUpgraded"] = self.pick(True, True, "true", 1, False)
        if self.chance(0.4):
            payload["transactionReason"] = self.pick("PURCHASE", "RENEWAL", "RENEWAL", "renewal", 1, None)
        if self.chance(0.05):
            payload["multiSeatInfo"] = self.pick({}, {"seats": 30}, [], None)
        self._spoil_payload(payload, sale)
        return payload

    def _draw_kind(self, payload, sale):
        """As R12 defines it; an introductory offer sometimes hides what it is."""
        kind = sale["kind"]
        offers = {"trial": 1, "intro": 1, "promo": 2, "offer_code": 3}
        discounts = {"trial": "FREE_TRIAL", "intro": "PAY_AS_YOU_GO"}
        if kind in offers:
            payload["offerType"] = self._written(offers[kind])
        if kind in discounts and not self.chance(0.35):
            payload["offerDiscountType"] = discounts[kind]
        if kind == "family":
            payload["inAppOwnershipType"] = "FAMILY_SHARED"
        elif self.chance(0.5):
            payload["inAppOwnershipType"] = "PURCHASED"
        if kind == "regular" and self.chance(0.03):
            payload["offerType"] = self.pick(4, 9, "4", None, "new")

    def _draw_price(self, payload, sale):
        micros, currency = sale["price"]
        total = micros * sale["quantity"] // 1000
        if self.chance(0.1):
            total += self.pick(1, 1000)
        if self.chance(0.06):
            total = self.pick(0, 0, 10**14 - 1, 10**14, -1, 1)
        hides = payload.get("offerType") in (1, "1") and "offerDiscountType" not in payload
        if hides or not sale["is_priced"] or self.chance(0.1):
            if self.chance(0.2):
                payload["price"] = None
            return
        payload["price"] = self._written(total)
        payload["currency"] = self.random.choices(
            [currency, currency.lower(), f" {currency}\t", None, "XXX", "", 5],
            [88, 3, 3, 2, 2, 1, 1])[0]

    def _draw_refund(self, payload, sale):
        """What is refunded at the statement's time: nothing, a share, or amounts."""
        if sale["is_advanced"] and self.chance(0.7):
            payload["advancedCommerceInfo"] = self._advanced(sale)
        if not sale["cancels"] or self.chance(0.4):
            return
        payload["revocationDate"] = self._written(self.refund_ms(sale))
        if self.chance(0.7):
            payload["revocationReason"] = self.pick(0, 1, "1", "=7")
        if self.chance(0.75):
            quantity = sale["quantity"]
            share = 100_000 * self.random.randrange(quantity + 1) / quantity
            near = round(share) + self.pick(0, 0, 0, 1, -1, 2)
            payload["revocationPercentage"] = self._written(self.pick(
                near, near, near, 50_000, 33_333, 0, 100_000, 1, -1, 100_001))

    def _advanced(self, sale):
        micros, _ = sale["price"]
        total = micros * sale["quantity"] // 1000
        refunds = []
        for _ in range(self.pick(0, 1, 1, 2, 3)):
            refund = {"refundDate": self.refund_ms(sale) if self.chance(0.95) else None,
                      "refundAmount": self.pick(total, total // 2, total // 3 + 1, 1, 0, total + 1)}
            if self.chance(0.06):
                refund["refundAmount"] = self.pick(None, "x", -1)
            refunds.append(refund)
        half = self.random.randrange(len(refunds) + 1)
        items = [{"SKU": "a", "refunds": refunds[:half]}, {"SKU": "b", "refunds": refunds[half:]}, {}]
        if self.chance(0.03):
            return self.pick({}, {"items": None}, {"items": [5, {"refunds": {}}]}, None, "x")
        return {"items": items}

    def _spoil_payload(self, payload, sale):
        """Sometimes a field that is missing, odd, or different from before."""
        if self.chance(0.05):
            payload["quantity"] = self.pick(0, 1_000_001, "abc", Raw("1.5"), True, None, 2, 3)
        if self.chance(0.02):
            payload["productId"] = self.pick("coins", "pro.month")
        if self.chance(0.05):
            payload.pop(self.pick("productId", "transactionId", "originalTransactionId", "purchaseDate",
                                  "originalPurchaseDate", "quantity"))
        if self.chance(0.02):
            for name in self.pick(("transactionId", "originalTransactionId"),
                                  ("purchaseDate", "originalPurchaseDate")):
                payload.pop(name, None)
        if self.chance(0.01):
            # In seconds instead of milliseconds.
            for name in ("purchaseDate", "originalPurchaseDate"):
                if name in payload:
                    payload[name] = int(payload[name]) // 1000
        if self.chance(0.1):
            # As before September 2022.
            payload["environment"] = self.pick(None, "")
            if self.chance(0.8):
                del payload["environment"]
        if self.nasty and self.chance(0.08):
            name = self.random.choice(sorted(payload.keys() - {"bundleId", "environment", "signedDate"}))
            payload[name] = self.pick(Raw("1e3"), Raw("-5"), "9" * 30, [], {}, " 1", "１", Raw("-0"), "",
                                      "9223372036854775808", Raw("253402300800000"), Raw("1.0"), False)

    def _sign(self, payload, fault=None):
        """A placeholder of the signed object; rarely of one whose payload is not compact JSON."""
        if self.chance(0.05):
            text = json.dumps(json.loads(encoded(payload)), indent=1)
            if all(not isinstance(value, Raw) for value in payload.values()):
                return self.orders.add(payload, fault, text)
        return self.orders.add(payload, fault)

    # Lines.

    def upload_line(self, sales, at_ms, fields):
        """A client's signed transactions; `fields`: country, user and the like."""
        payloads = [self.payload(sale, at_ms) for sale in sales for _ in range(self.pick(1, 1, 1, 2, 3))]
        self.random.shuffle(payloads)
        line = {"marketplace": "itunes", **fields}
        line["signed_transactions"] = [self._sign(payload) for payload in payloads]
        if not all(payload.get("environment") for payload in payloads) or self.chance(0.02):
            line["environment"] = sales[0]["environment"]
        if self.chance(0.01):
            line["environment"] = self.pick(None, "", "Xcode", "production", 5)
        return line

    def notification_line(self, sale, at_ms, bundle, environment):
        """A notification, mostly about a transaction; sometimes one that came before."""
        if not self.notified or not self.chance(0.05):
            self.notified += 1
        outer = {"notificationType": self.pick(*TYPES), "subtype": self.pick(*SUBTYPES),
                 "notificationUUID": f"00000000-0000-4000-8000-{self.notified:012}", "version": "2.0",
                 "signedDate": at_ms}
        about = {"bundleId": bundle, "environment": environment, "bundleVersion": "1"}
        if sale is None:
            outer[self.pick("data", "data", "summary")] = about
        else:
            about["signedTransactionInfo"] = self._sign(self.payload(sale, at_ms))
            if self.chance(0.3):
                about["signedRenewalInfo"] = self._sign(self._renewal(sale, environment, at_ms))
            outer["data"] = about
        if outer["subtype"] is None:
            del outer["subtype"]
        line = {"notification": self._sign(outer)}
        if self.chance(0.5):
            line["marketplace"] = "itunes"
        if self.chance(0.1):
            line["country_code"] = "passed over"
        return line

    def _renewal(self, sale, environment, at_ms):
        """Renewal information of the sale's subscription, each member possibly absent."""
        info = {
            "originalTransactionId": sale["original"], "productId": sale["product"],
            "autoRenewProductId": self.pick(sale["product"], "pro.year"),
            "autoRenewStatus": self.pick(0, 1, 1),
            "expirationIntent": self.pick(1, 2, "3", "=4"), "isInBillingRetryPeriod": self.pick(True, False),
            "gracePeriodExpiresDate": self._written(sale["date_ms"] + self.pick(36, 46) * DAY_MS)}
        told = {name: value for name, value in info.items() if self.chance(0.8)}
        signed_ms = self.pick(at_ms, self.statement_ms(sale, at_ms))
        return told | {"environment": environment, "signedDate": signed_ms}

    def bad_signed_line(self, sale, at_ms):
        """A notification that an import refuses as a whole."""
        good = self.payload(sale, at_ms)
        lost = self.pick("signedDate", "bundleId", "environment")
        other = self.pick("com.example.two", "com.example.three")
        bad = [self.orders.add(good, self.pick(*FAULTS)),
               self.orders.add({name: value for name, value in good.items() if name != lost}),
               self.orders.add(good | {"environment": self.pick("Xcode", "LocalTesting", "production", 5)}),
               self.orders.add(good | {"signedDate": 4_102_444_800_000})]
        whole = [[], "text", None, [5], [""], ["no signed object"]]
        if self.chance(0.2):
            return {"signed_transactions": self.pick(*whole)}
        if self.chance(0.2):
            return {"notification": self.pick(*bad, *whole)}
        if self.chance(0.15):
            # Of two app families.
            pair = [good | {"bundleId": "com.example.one"}, good | {"bundleId": other}]
            return {"signed_transactions": [self._sign(payload) for payload in pair]}
        line = {"signed_transactions": [self._sign(good), self.pick(*bad)]}
        return line | ({"receipt": "cg=="} if self.chance(0.1) else {})
