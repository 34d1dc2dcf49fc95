# Draws subscriptions over time: periods, lapses, refunds, renewal information, by both kinds (rule R13).
import base64
import random

from dates import DAY_MS, days_from_text, readable_text, time_text
from generate_metadata import encoded
from signing import Orders

START_MS = days_from_text("2025-09-01") * DAY_MS
BUNDLES = ["com.example.one", "com.example.two", "com.example.one.more"]
# App account tokens, one in capitals, and a text that is not a token.
TOKENS = ["7e3fb204-2d4a-4c2b-9d31-00000000000a", "7E3FB204-2D4A-4C2B-9D31-00000000000B", "=t"]
AUTO = "Auto-Renewable Subscription"
PRICE_LIST = "product_id,country_code,currency,price,effective_from\nplus,,CHF,4.90,2025-09-01\n"
# The reports by which subscriptions are compared, from the imported files and from the log.
REPORTS = [
    "subscriptions --environment all --at 2025-10-10",
    "subscriptions --at 2025-12-01T12:34:56.789Z",
    "subscriptions --environment Sandbox --at 2026-01-15 --timezone Pacific/Apia",
    "subscriptions --environment all --at 2026-02-01",
    "subscriptions --at 2026-03-29 --timezone Europe/Berlin",
    "subscriptions --environment all --at 2027-06-01",
    "subscriptions --by month --at 2026-03-01",
    "subscriptions --by month --environment all --at 2026-01-17T08:00:00Z",
    "subscriptions --by month --at 2026-12-31 --timezone America/Los_Angeles",
    "subscriptions --by month --at 2026-04-01 --timezone Europe/Berlin --environment all",
    "sales --environment all",
    "journal --environment all",
    "exceptions --environment all",
]
LOG_REPORTS = [
    "subscriptions",
    "subscriptions --environment all",
    "subscriptions --by month --environment all",
    "subscriptions --environment all --at 2026-01-20",
    "sales --environment all",
    "exceptions --environment all",
]


class Period:
    """What all statements of one period have in common; its end may be given in two ways."""

    def __init__(self, number, start_ms, end_ms, kind, product, total):
        self.line_item, self.transaction = f"5{number:06}", f"2{number:06}"
        self.start_ms, self.end_ms, self.kind = start_ms, end_ms, kind
        self.product, self.total = product, total
        self.revoked_ms = None
        self.is_upgraded = False


class Life:
    """One subscription of one user."""

    def __init__(self, bundle, environment, account, periods):
        self.bundle, self.environment, self.account = bundle, environment, account
        self.original, self.periods = periods[0].transaction, periods


class Lives:
    """Draws from one seeded source, so that the seed decides every subscription."""

    def __init__(self, seed, count):
        self.random = random.Random(seed)
        self.orders = Orders()
        self.numbers = self.notified = 0
        # Some accounts have more than one subscription.
        self.count = count
        self.lives = [self._life() for _ in range(count)]

    def chance(self, part):
        return self.random.random() < part

    def pick(self, *values):
        return self.random.choice(values)

    # Events of a subscription.

    def _life(self):
        bundle = self.pick(*BUNDLES)
        environment = self.pick("Production", "Production", "Production", "Sandbox")
        start_ms = START_MS + self.random.randrange(150) * DAY_MS + self.pick(0, 3_600_000, 85_000_000)
        days = self.pick(7, 30, 30, 31, 91, 365, 3)
        product = self.pick("pro", "plus", "=gold")
        total = self.pick(9990, 4990, 59_990, 1, 0, None)
        is_shared = self.chance(0.08)
        kind = self.pick("trial", "intro", "regular", "regular", "code", "family" if is_shared else "regular")
        periods = []
        for _ in range(self.pick(1, 1, 2, 3, 4, 6)):
            length = (self.pick(3, 7) if kind == "trial" else days) * DAY_MS + self.pick(0, 0, 3_600_000)
            self.numbers += 1
            one = Period(self.numbers, start_ms, start_ms + length, kind, product, total)
            periods.append(one)
            if self.chance(0.15):
                one.revoked_ms = start_ms + self.pick(-40, -1, 0, 1, 2, length // DAY_MS, 40) * DAY_MS
            # Mostly it continues; sometimes early, after a lapse, at once, or as another product.
            start_ms = one.end_ms + self.pick(0, 0, 0, 0, -3_600_000, 1, 20 * DAY_MS, 40 * DAY_MS)
            if self.chance(0.15):
                one.is_upgraded = True
                one.revoked_ms = self.pick(one.start_ms + DAY_MS, None)
                start_ms = one.start_ms + self.pick(0, 0, 1, 2) * DAY_MS
                product, days = self.pick("pro.year", "plus"), self.pick(30, 365)
            kind = self.pick("regular", "regular", "regular", "win_back", "promo", "trial")
            kind = "family" if is_shared else kind
        return Life(bundle, environment, f"7{self.random.randrange(self.count)}", periods)

    def statement_ms(self, period):
        """Few, so that the times of statements coincide; none later than the spring of 2026."""
        length = period.end_ms - period.start_ms
        at_ms = period.start_ms + self.pick(0, 1, 2, 2, 5, length // DAY_MS, length // DAY_MS + 1) * DAY_MS
        return min(at_ms, START_MS + 215 * DAY_MS)

    # Statements.

    def signed(self, life, period):
        payload = {
            "bundleId": life.bundle, "environment": life.environment, "productId": period.product,
            "transactionId": period.transaction, "originalTransactionId": life.original,
            "webOrderLineItemId": period.line_item, "purchaseDate": period.start_ms,
            "originalPurchaseDate": life.periods[0].start_ms, "quantity": self.pick(1, 1, 1, 3),
            "expiresDate": period.end_ms, "signedDate": self.statement_ms(period), "type": AUTO}
        kinds = {"trial": 1, "intro": 1, "promo": 2, "code": 3, "win_back": 4}
        if period.kind in kinds:
            payload["offerType"] = kinds[period.kind] if self.chance(0.9) else 9
        if period.kind == "trial" and self.chance(0.9):
            payload["offerDiscountType"] = "FREE_TRIAL"
        if period.kind == "family":
            payload["inAppOwnershipType"] = "FAMILY_SHARED"
        if period.total is not None and self.chance(0.7):
            payload |= {"price": period.total, "currency": self.pick("EUR", "EUR", "USD")}
        if self.chance(0.4):
            payload["storefront"] = self.pick("DEU", "USA", "QQQ")
        if self.chance(0.3):
            payload["appAccountToken"] = self.pick(*TOKENS)
        if self.chance(0.5):
            payload["appTransactionId"] = life.account if self.chance(0.95) else "70"
        if self.chance(0.1):
            del payload["environment"]
        if period.revoked_ms is not None and self.chance(0.6):
            # Sometimes on two dates, one after the other.
            payload["revocationDate"] = period.revoked_ms + self.pick(0, 0, -25, 30) * DAY_MS
            if self.chance(0.5):
                payload["revocationPercentage"] = self.pick(100_000, 40_000, 0)
        if period.is_upgraded and self.chance(0.6):
            payload["isUpgraded"] = True
        self._spoil(payload)
        return self.orders.add(payload)

    def _spoil(self, payload):
        if self.chance(0.1):
            payload["expiresDate"] += self.pick(3, -2) * DAY_MS
        if self.chance(0.08):
            payload["type"] = self.pick(None, "", "Non-Renewing Subscription", "Consumable", "Something New")
        if self.chance(0.1):
            for name in self.pick(["type"], ["expiresDate"], ["originalTransactionId"], ["purchaseDate"],
                                  ["originalPurchaseDate"], ["productId"], ["type", "quantity"]):
                payload.pop(name, None)

    def row(self, life, period):
        row = {
            "product_id": period.product, "quantity": "1", "transaction_id": period.transaction,
            "original_transaction_id": life.original, "web_order_line_item_id": period.line_item,
            "app_account_token": self.pick(None, None, *TOKENS),
            "purchase_date_ms": str(period.start_ms),
            "original_purchase_date_ms": str(life.periods[0].start_ms)}
        self._expires(row, period.end_ms + (self.pick(3, -2) * DAY_MS if self.chance(0.1) else 0))
        names = {"trial": "is_trial_period", "intro": "is_in_intro_offer_period"}
        for kind, name in names.items():
            if period.kind == kind or self.chance(0.3):
                row[name] = "true" if period.kind == kind else "false"
        if period.kind == "promo":
            row["promotional_offer_id"] = "spring"
        if period.kind == "code":
            row["offer_code_ref_name"] = "code"
        if period.kind == "family":
            row["in_app_ownership_type"] = "FAMILY_SHARED"
        if period.revoked_ms is not None and self.chance(0.6):
            row["cancellation_date_ms"] = str(period.revoked_ms)
        if period.is_upgraded and self.chance(0.6):
            row["is_upgraded"] = "true"
        if self.chance(0.08):
            row.pop(self.pick("original_transaction_id", "purchase_date_ms", "original_purchase_date_ms",
                              "product_id", "transaction_id"))
        return row

    def _expires(self, row, ms):
        form = self.random.randrange(13)
        if form < 7:
            row["expires_date_ms"] = str(ms)
        if form in (0, 7, 8):
            row["expires_date"] = readable_text(ms, False) if form == 8 else str(ms)
        if form in (0, 12):
            row["expires_date_pst"] = readable_text(ms, True)
        if form in (1, 9, 10):
            row["expires_date_formatted"] = readable_text(ms, form == 10)

    # Renewal information.

    def _state(self, period):
        """(auto-renew, intent, in billing retry, end of the grace period), each possibly absent."""
        return (self.pick(None, 0, 1, 1), self.pick(None, None, 1, 2, 5), self.pick(None, False, True, True),
                self.pick(None, None, period.end_ms + 6 * DAY_MS, period.end_ms + 16 * DAY_MS))

    def pending(self, life):
        period = self.pick(*life.periods)
        renews, intent, retries, grace_ms = self._state(period)
        entry = {"auto_renew_product_id": self.pick(period.product, "pro.year"),
                 "auto_renew_status": None if renews is None else str(renews),
                 "expiration_intent": None if intent is None else str(intent),
                 "is_in_billing_retry_period": None if retries is None else str(int(retries)),
                 "grace_period_expires_date_ms": None if grace_ms is None else str(grace_ms)}
        if grace_ms is not None and self.chance(0.2):
            entry["grace_period_expires_date_ms"] = None
            is_pacific = self.chance(0.5)
            entry["grace_period_expires_date" + "_pst" * is_pacific] = readable_text(grace_ms, is_pacific)
        return {name: value for name, value in entry.items() if value is not None}

    def signed_renewal(self, life):
        period = self.pick(*life.periods)
        renews, intent, retries, grace_ms = self._state(period)
        entry = {"originalTransactionId": life.original, "productId": period.product,
                 "autoRenewProductId": self.pick(period.product, "pro.year", None), "autoRenewStatus": renews,
                 "expirationIntent": intent, "isInBillingRetryPeriod": retries,
                 "gracePeriodExpiresDate": grace_ms, "signedDate": self.statement_ms(period),
                 "environment": life.environment}
        if self.chance(0.03):
            entry["originalTransactionId"] = None
        return self.orders.add({name: value for name, value in entry.items() if value is not None})

    # Lines.

    def reply(self, life, sandbox_or_not):
        periods = self.random.sample(life.periods, self.random.randrange(len(life.periods) + 1))
        rows = [self.row(life, period) for period in periods for _ in range(self.pick(1, 1, 2))]
        if self.chance(0.15):
            other = self.pick(*life.periods)
            rows.append(self.row(life, other) | {"web_order_line_item_id": "5" + other.line_item})
        receipt = {"bundle_id": life.bundle}
        asked_ms = self.statement_ms(self.pick(*life.periods))
        if self.chance(0.9):
            receipt["request_date_ms"] = str(asked_ms)
        reply = {"status": 0, "environment": life.environment, "receipt": receipt}
        if rows and self.chance(0.2):
            receipt |= {"bid": life.bundle, **rows[0]}
            del receipt["bundle_id"]
            reply |= self.pending(life) if self.chance(0.7) else {}
            if len(rows) > 1:
                reply["latest_receipt_info"] = rows[1]
        else:
            cut = self.random.randrange(len(rows) + 1)
            receipt["in_app"] = rows[:cut]
            reply["latest_receipt_info"] = rows[cut:]
            if self.chance(0.1):
                # It belongs to no subscription: the reply is not of the legacy form.
                reply["auto_renew_status"] = "1"
            if self.chance(0.6):
                named = [{"original_transaction_id": one.original, **self.pending(one)}
                         for one in [life] * self.pick(1, 1, 2) + self.neighbours(life)]
                reply["pending_renewal_info"] = named + self.pick([], [], [5, {"auto_renew_status": "1"}])
        return {"receipt": base64.b64encode(life.original.encode()).decode(),
                "verification": {"endpoint": sandbox_or_not, "occurred_at": time_text(asked_ms + 1000),
                                 "reply": reply}}

    def version_1(self, life):
        """A version 1 notification's body with the content of a reply."""
        unified = self.reply(life, "")["verification"]["reply"]
        rows, latest = unified.pop("receipt").get("in_app", []), unified.get("latest_receipt_info", [])
        unified["latest_receipt_info"] = rows + (latest if isinstance(latest, list) else [latest])
        unified["latest_receipt"] = base64.b64encode(life.original.encode()).decode()
        return {"notification_v1": {"notification_type": "DID_CHANGE_RENEWAL_STATUS", "bid": life.bundle,
                                    "auto_renew_status": "true", "unified_receipt": unified}}

    def neighbours(self, life):
        """Another subscription of the same app, sometimes."""
        same = [one for one in self.lives
                if (one.bundle, one.environment) == (life.bundle, life.environment) and one is not life]
        return [self.pick(*same)] if same and self.chance(0.3) else []

    def notification(self, life):
        self.notified += 1
        data = {"bundleId": life.bundle, "environment": life.environment}
        if self.chance(0.7):
            data["signedTransactionInfo"] = self.signed(life, self.pick(*life.periods))
        if self.chance(0.7):
            data["signedRenewalInfo"] = self.signed_renewal(self.pick(life, *self.neighbours(life)))
        return {"notification": self.orders.add({
            "notificationType": "DID_RENEW", "notificationUUID": f"life-{self.notified}",
            "signedDate": START_MS + 220 * DAY_MS, "data": data})}

    def line(self, life):
        form = self.random.random()
        if form < 0.4:
            return self.notification(life)
        if form < 0.65:
            chosen = self.random.sample(life.periods, self.pick(1, 1, len(life.periods)))
            line = {"signed_transactions": [
                self.signed(one, period) for one in [life] * self.pick(1, 1, 2) + self.neighbours(life)
                for period in (chosen if one is life else one.periods[:1])]}
            # For objects that name none.
            line["environment"] = life.environment
        elif form < 0.72:
            at_ms = self.statement_ms(self.pick(*life.periods))
            return self.version_1(life) | {"occurred_at": time_text(at_ms)}
        else:
            line = self.reply(life, "sandbox" if life.environment == "Sandbox" else "production")
        line["occurred_at"] = time_text(life.periods[0].start_ms + self.pick(1, 35) * DAY_MS)
        if self.chance(0.4):
            line["country_code"] = self.pick("FR", "DE", "JP")
        if self.chance(0.4):
            users = ("42", "43", "+u")
            line["user_identifier"] = users[int(life.account) % 3] if self.chance(0.85) else self.pick(*users)
        if self.chance(0.2):
            line["metadata"] = {"price": "7.50", "currency": "GBP"}
        return line


def lines(seed, count, sign):
    """The import lines of this many subscriptions, each in order or not, all mixed."""
    lives = Lives(seed, count)
    written = [encoded(lives.line(life)) for life in lives.lives for _ in range(lives.pick(1, 2, 3, 4, 6))]
    lives.random.shuffle(written)
    return lives.orders.resolve(written, sign)
