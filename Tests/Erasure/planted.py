# People with identifiers of every kind, and the history in which these are planted.
import base64
import hashlib
import json
import pathlib
import random
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Oracle"))
from signing import Orders  # noqa: E402

BUNDLE = "com.example.game"
PRODUCTS = ["coins", "pro.month"]
# 2026-01-10, and a day later for each line.
START_MS = 1_768_003_200_000
DAY_MS = 86_400_000
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
# How people are called: plainly, and in the ways that JSON, CSV, SQL and URLs write otherwise.
NAMES = [
    "account-{}", 'Pat "{}" O\'Neil', "jürgen-{}-straße", "anna.{}@example.com", "back\\slash\\{}",
    "ユーザー{}", "{}; DROP TABLE users", "=cmd|{}", "👩‍🚀{}", "tab\tand,{}", "100% <{}> & co",
    "-{}",
]  # fmt: skip


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Person:
    """A user, with every identifier that the history gives it: (kind, value)."""

    def __init__(self, number, chance, is_nameless=False):
        self.number, self.chance, self.is_nameless = number, chance, is_nameless
        self.identifiers = []
        self.tokens = [self.plant("token", self.uuid()) for _ in range(2)]
        if is_nameless:
            # Nobody says who it is: its token is all that a ledger knows it by.
            self.tokens = self.tokens[:1] * 2
            self.identifiers.pop()
            self.user = "token:" + self.tokens[0]
        else:
            self.user = self.plant("user", NAMES[number % len(NAMES)].format(self.code()))
        # Receipts as bytes; the first is uploaded again after the erasure.
        self.receipts = []
        self.first_row = None
        self.serial = 0

    def code(self, count=12):
        return "".join(self.chance.choice(LETTERS) for _ in range(count))

    def uuid(self):
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))

    def plant(self, kind, value):
        self.identifiers.append((kind, value))
        return value

    def text(self, kind):
        """Free text that names the person."""
        return self.plant(kind, f"{kind} von Bob {self.code()}")

    def address(self):
        if self.chance.random() < 0.5:
            groups = [f"{self.chance.randrange(0x1000, 0xFFFF):x}" for _ in range(6)]
            return self.plant("ip", "2001:4db8:" + ":".join(groups))
        parts = [self.chance.randrange(100, 256) for _ in range(4)]
        return self.plant("ip", ".".join(map(str, parts)))

    def next_id(self):
        """A transaction's id: it stays."""
        self.serial += 1
        return f"7{self.number:05}{self.serial:06}"

    def fields(self, names_user=True):
        """What a client sends beside a receipt."""
        metadata = {
            "note": self.text("note"),
            "nested": {"deep": [self.text("deep")]},
            self.text("key"): 1,
            "prices": [
                {"product_id": "coins", "price": self.plant("price", f"€ 9,99 von Bob {self.code()}"),
                 "currency": self.plant("currency", f"EUR für {self.code()}"),
                 "customer": self.text("entry")},
                {"product_id": self.text("product"), "kind": self.text("kind"), "price": "3.49",
                 "currency": "EUR"},
                self.text("entry_text"),
            ],
        }  # fmt: skip
        fields = {
            "country_code": self.chance.choice(["DE", "US", "FR"]),
            "identifier_for_vendor": self.plant("vendor", self.uuid().upper()),
            "ip_address": self.address(),
            "metadata": metadata,
        }
        is_named = names_user and not self.is_nameless
        return fields | ({"user_identifier": self.user} if is_named else {})

    # Receipts, and the App Store's replies.

    def receipt(self):
        """A receipt that nobody can read, with the device's number in it."""
        inside = self.plant("receipt_inside", f"device serial {self.code()}")
        data = self.chance.randbytes(90) + inside.encode() + self.chance.randbytes(90)
        self.plant_receipt(data)
        return data

    def plant_receipt(self, data):
        self.receipts.append(data)
        text = base64.b64encode(data).decode()
        # A part alone, so that a part that stayed would be found too: of a signature, if there is one, since
        # receipts share their certificates.
        self.plant("receipt_base64", text[-64:-4] if data[0] == 0x30 else text[100:160])
        self.plant("receipt_sha256", hashlib.sha256(data).hexdigest())

    def plant_receipt_id(self, family, data):
        digest = hashlib.sha256(data).digest()
        made = hashlib.sha1(uuid.UUID(family).bytes + digest).digest()[:16]
        self.plant("receipt_id", str(uuid.UUID(bytes=made, version=5)))

    def row(self, at_ms, product):
        own = self.next_id()
        row = {
            "product_id": product, "transaction_id": own, "original_transaction_id": own,
            "purchase_date_ms": str(at_ms), "original_purchase_date_ms": str(at_ms), "quantity": "1",
            "app_account_token": self.tokens[0],
            "unique_vendor_identifier": self.plant("reply_vendor", self.uuid().upper()),
        }  # fmt: skip
        self.first_row = self.first_row or row
        if product == "pro.month":
            row |= {"expires_date_ms": str(at_ms + 30 * DAY_MS), "web_order_line_item_id": "8" + own}
        return row

    def reply(self, at_ms):
        rows = [self.row(at_ms - 60_000, product) for product in PRODUCTS]
        again = b"latest " + self.plant("latest_receipt", f"receipt {self.code()}").encode()
        return {
            "status": 0, "environment": "Production",
            "receipt": {
                "bundle_id": BUNDLE, "request_date_ms": str(at_ms), "in_app": rows,
                "unique_identifier": self.plant("device", self.chance.randbytes(20).hex()),
                "app_item_id": "1", "original_application_version": self.text("version"),
            },
            "latest_receipt": base64.b64encode(again).decode(),
            "pending_renewal_info": [
                {"original_transaction_id": rows[1]["original_transaction_id"],
                 "auto_renew_product_id": "pro.month", "auto_renew_status": "1",
                 "app_account_token": self.tokens[0], "remark": self.text("remark")}],
        }  # fmt: skip

    def later_reply(self, at_ms):
        """A reply about another receipt of the same purchases."""
        reply = self.reply(at_ms)
        reply["receipt"]["in_app"].insert(0, self.first_row)
        return reply

    def mention(self, at_ms, other):
        """A line of another person's in which only this one's tokens stand, in capitals and not."""
        rows = []
        for product, token in zip(PRODUCTS, (self.tokens[0].upper(), self.tokens[1])):
            own = other.next_id()
            rows.append({
                "product_id": product, "transaction_id": own, "original_transaction_id": own,
                "purchase_date_ms": str(at_ms), "quantity": "1", "app_account_token": token,
            })  # fmt: skip
        line = other.receipt_line(at_ms, other.receipt(), reply={
            "status": 0, "environment": "Production",
            "receipt": {"bundle_id": BUNDLE, "request_date_ms": str(at_ms), "in_app": rows},
            "pending_renewal_info": [{"app_account_token": self.tokens[1].swapcase()}],
        })  # fmt: skip
        return line

    def receipt_line(self, at_ms, data, names_user=True, reply=None):
        line = {"receipt": base64.b64encode(data).decode(), "occurred_at": at_ms}
        line |= self.fields(names_user)
        line["verification"] = {"occurred_at": at_ms + 500, "endpoint": "production"}
        line["verification"]["reply"] = reply or self.reply(at_ms)
        return line

    # Signed objects.

    def transaction(self, at_ms, token, of=None):
        """The payload of a transaction; `of`: an earlier one of the same subscription."""
        own = self.next_id()
        original = own if of is None else of["originalTransactionId"]
        return {
            "bundleId": BUNDLE, "environment": "Production", "productId": "pro.month",
            "transactionId": own, "originalTransactionId": original, "webOrderLineItemId": "9" + own,
            "purchaseDate": at_ms - 60_000, "originalPurchaseDate": at_ms - 60_000,
            "expiresDate": at_ms + 30 * DAY_MS, "quantity": 1, "type": "Auto-Renewable Subscription",
            "price": 9990, "currency": "EUR", "storefront": "DEU", "signedDate": at_ms,
            "appAccountToken": token, "inAppOwnershipType": "PURCHASED",
            "appTransactionId": self.plant("app_transaction", self.code(18)),
            "offerIdentifier": self.text("offer"),
        }  # fmt: skip

    def app_transaction(self, at_ms):
        return {
            "bundleId": BUNDLE, "receiptType": "Production", "applicationVersion": "1",
            "originalPurchaseDate": at_ms, "receiptCreationDate": at_ms, "requestDate": at_ms,
            "signedDate": at_ms, "environment": "Production",
            "appTransactionId": self.plant("app_transaction", self.code(18)),
            "deviceVerification": self.plant("device_hash", base64_text(self.chance.randbytes(48).hex())),
            "deviceVerificationNonce": self.plant("device_nonce", self.uuid()),
        }  # fmt: skip

    def notification(self, at_ms, orders, transaction):
        again = dict(self.transaction(at_ms, self.tokens[1], of=transaction))
        renewal = {
            "originalTransactionId": transaction["originalTransactionId"], "productId": "pro.month",
            "autoRenewProductId": "pro.month", "autoRenewStatus": 1, "environment": "Production",
            "signedDate": at_ms, "appAccountToken": self.tokens[1],
            "appTransactionId": self.plant("app_transaction", self.code(18)),
        }  # fmt: skip
        return {
            "notificationType": "DID_RENEW", "notificationUUID": self.uuid(), "version": "2.0",
            "signedDate": at_ms,
            "data": {
                "bundleId": BUNDLE, "environment": "Production", "bundleVersion": "1",
                "consumptionRequestReason": self.text("consumption"),
                "signedTransactionInfo": orders.add(again), "signedRenewalInfo": orders.add(renewal),
            },
        }  # fmt: skip

    def page(self, call, family, at, transaction):
        """A page of the App Store Server API, as an event's data; nobody checks its objects' signatures."""
        told = self.transaction(transaction["signedDate"] + DAY_MS, self.tokens[1], of=transaction)
        renewal = {
            "originalTransactionId": transaction["originalTransactionId"], "productId": "pro.month",
            "autoRenewProductId": "pro.month", "autoRenewStatus": 1, "environment": "Production",
            "signedDate": transaction["signedDate"], "appAccountToken": self.tokens[1],
        }  # fmt: skip

        def signed(payload):
            signature = base64.urlsafe_b64encode(self.chance.randbytes(64)).decode().rstrip("=")
            return {
                "outcome": "valid", "root_sha256": "ab" * 32, "signed_at": at, "payload": payload,
                "signature": self.plant("signature", signature), "header": {"alg": "ES256", "x5c": []},
            }  # fmt: skip

        return {
            "app_family_id": family, "bundle_id": BUNDLE, "environment": "Production",
            "occurred_at": at, "call": call, "host": "api.storekit.apple.com",
            "transaction_id": transaction["transactionId"], "has_more": False,
            "transactions": [signed(told)], "renewals": [signed(renewal)] if call == "statuses" else [],
        }  # fmt: skip


class History:
    """Import lines of some people; the same for a seed, but for signatures."""

    def __init__(self, seed, count, receipts=3, nameless=()):
        self.chance = random.Random(seed)
        self.people = [Person(number, self.chance, number in nameless) for number in range(count)]
        self.orders, self.made = Orders(), []
        # The first signed transaction of each person.
        self.transactions = {}
        for turn in range(receipts):
            for person in self.people:
                if not person.is_nameless:
                    self._add_receipt(person, turn)
                self._add_signed(person)
        for person in self.people:
            for _ in range(2):
                notice = person.notification(self._now(), self.orders, self.transactions[person])
                self._add(person, {"notification": self.orders.add(notice), "occurred_at": self._now()})

    def _now(self):
        return START_MS + len(self.made) * DAY_MS // 24

    def _add(self, person, line):
        self.made.append((person, compact({"marketplace": "itunes"} | line)))

    def _add_receipt(self, person, turn):
        self._add(person, person.receipt_line(self._now(), person.receipt()))
        if turn == 0:
            # The same receipt, without a user.
            self._add(person, person.receipt_line(self._now(), person.receipts[0], False))
            # Another receipt of the same purchases, before the person said who it is.
            reply = person.later_reply(self._now())
            self._add(person, person.receipt_line(self._now(), person.receipt(), False, reply))

    def mention(self, person, other):
        """Lets another person's line hold the tokens of this one."""
        self._add(other, person.mention(self._now(), other))

    def _add_signed(self, person):
        now = self._now()
        first = person.transaction(now, person.tokens[0])
        second = person.transaction(now, person.tokens[1])
        self.transactions.setdefault(person, second)
        line = {"signed_transactions": [self.orders.add(first), self.orders.add(second)]}
        line |= {"app_transaction": self.orders.add(person.app_transaction(now)), "occurred_at": now}
        self._add(person, line | person.fields())

    def share_receipt(self, owner, other):
        """Lets another person upload the owner's last receipt, who keeps it."""
        line = {"receipt": base64.b64encode(owner.receipts[-1]).decode(), "occurred_at": self._now()}
        line |= other.fields()
        line["verification"] = {"occurred_at": self._now(), "endpoint": "production",
                                "reply": owner.reply(self._now())}  # fmt: skip
        self._add(other, line)

    def lines(self, sign, family):
        """The import file's lines; plants what follows from them."""
        lines = self.orders.resolve([line for _, line in self.made], sign)
        for (person, _), line in zip(self.made, lines, strict=True):
            person.plant("line_sha256", hashlib.sha256(line.encode()).hexdigest())
            found = json.loads(line)
            signed = found.get("signed_transactions", [])
            texts = [*signed, *filter(None, [found.get("app_transaction"), found.get("notification")])]
            for text in texts:
                person.plant("signature", text.rpartition(".")[2])
            if signed:
                digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
                person.plant("upload_id", str(uuid.uuid5(uuid.UUID(family), digest)))
        for person in self.people:
            for data in person.receipts:
                person.plant_receipt_id(family, data)
        return lines

    def fetched(self, family, at):
        """(type, data) of pages that a server fetched about everybody."""
        made = []
        for person in self.people:
            for call in ("history", "statuses"):
                page = person.page(call, family, at, self.transactions[person])
                made.append(("transactions.fetched", compact(page)))
        return made


def base64_text(text):
    return base64.b64encode(text.encode()).decode()


def base64_bytes(text):
    """What base64 or base64url holds, padded or not."""
    text = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(text + "=" * (-len(text) % 4))
