# The rows of a reply, and which sale each belongs to (revenue rules, R2, R3 and R5).
from dataclasses import dataclass

from dates import readable_ms
from values import date_ms, elements, flag, identifier, integer, members, token_user

# R2: the App Store's first day, 2008-07-10.
FIRST_SALE_MS = 1_215_648_000_000


@dataclass(frozen=True)
class Key:
    """R3: what makes two rows one sale."""

    environment: str
    bundle_id: str
    kind: str
    text: str

    @property
    def order(self):
        """R9: line items before transactions."""
        texts = (self.environment, self.bundle_id, self.text)
        return (*(text.encode() for text in texts), self.kind != "line item")


@dataclass
class Row:
    """A well-formed purchase object of a reply."""

    fields: dict
    is_latest: bool = False
    place: tuple = ()
    # Only signed transactions name one.
    account = None

    def identifier(self, name):
        return identifier(self.fields.get(name))

    def date_ms(self, name):
        """Milliseconds; if there are none, Apple's texts."""
        value = date_ms(self.fields.get(name))
        if value is None and name.endswith("_ms"):
            readable = name.removesuffix("_ms")
            for text in (self.fields.get(readable), self.fields.get(readable + "_pst")):
                value = readable_ms(text) if value is None else value
        return value

    def flag(self, name):
        return flag(self.fields.get(name))

    @property
    def expires_ms(self):
        """`expires_date_ms`, else `expires_date`: milliseconds in the legacy form, else a text."""
        written = self.fields.get("expires_date")
        for value in (date_ms(self.fields.get("expires_date_ms")), date_ms(written),
                      self.date_ms("expires_date_ms"),
                      readable_ms(self.fields.get("expires_date_formatted"))):
            if value is not None:
                return value
        return None

    @property
    def is_upgraded(self):
        return self.flag("is_upgraded")

    @property
    def user_token(self):
        return token_user(self.fields.get("app_account_token"))

    @property
    def quantity(self):
        """R4: an integer from 1 to 10, else None."""
        value = integer(self.fields.get("quantity"))
        return value if value is not None and 1 <= value <= 10 else None

    @property
    def order(self):
        """R2: which of several rows of one sale is the primary one."""
        purchased = self.date_ms("purchase_date_ms")
        transaction = (self.identifier("transaction_id") or "").encode()
        return (
            not self.is_latest,
            purchased is not None,
            purchased or 0,
            transaction,
            self.place,
        )


def bundle_of(reply):
    """R2: the bundle that a reply names itself; None if it names none."""
    receipt = members(reply.get("receipt"))
    return identifier(receipt.get("bundle_id")) or identifier(receipt.get("bid"))


def is_legacy(reply):
    """R2: whether the flat `receipt` is itself a row."""
    receipt = members(reply.get("receipt"))
    names = ("bid", "product_id", "transaction_id", "original_transaction_id")
    return receipt.get("in_app") is None and any(
        identifier(receipt.get(name)) is not None for name in names
    )


def source_rows(reply):
    """R2: (object, whether it is in latest_receipt_info, index among the sources) of every row."""
    latest = reply.get("latest_receipt_info")
    receipt = members(reply.get("receipt"))
    sources = [
        [latest] if isinstance(latest, dict) else elements(latest),
        elements(receipt.get("in_app")),
        [receipt] if is_legacy(reply) else [],
        [reply.get("latest_expired_receipt_info")],
    ]
    for source, objects in enumerate(sources):
        for index, fields in enumerate(objects):
            if isinstance(fields, dict):
                yield Row(fields, source == 0, (source, index))


def fault_of(row, environment, bundle_id):
    """R2: what is wrong with a malformed row; None for a good one."""
    missing = []
    if row.identifier("product_id") is None:
        missing.append("product_id")
    if row.identifier("transaction_id") is None:
        if row.identifier("original_transaction_id") is None:
            missing.append("transaction_id")
    if row.date_ms("purchase_date_ms") is None:
        if row.date_ms("original_purchase_date_ms") is None:
            missing.append("purchase_date")
    if not missing and sale_date_ms(row, key_of(row, environment, bundle_id)) < FIRST_SALE_MS:
        return "before_2008"
    return "+".join(missing)


def key_of(row, environment, bundle_id):
    """R3: line item, else transaction."""
    line_item = row.identifier("web_order_line_item_id")
    if line_item is not None and line_item != "0":
        return Key(environment, bundle_id, "line item", line_item)
    transaction = row.identifier("original_transaction_id") or row.identifier("transaction_id")
    return Key(environment, bundle_id, "transaction", transaction)


def sale_date_ms(row, key):
    """R3: each date defaults to the other."""
    purchased = row.date_ms("purchase_date_ms")
    originally = row.date_ms("original_purchase_date_ms")
    first, second = (
        (purchased, originally) if key.kind == "line item" else (originally, purchased)
    )
    return second if first is None else first


def kind_of(row):
    """R5: the first match."""
    if row.fields.get("in_app_ownership_type") == "FAMILY_SHARED":
        return "family_shared"
    if row.flag("is_trial_period"):
        return "trial"
    offers = ("promotional_offer_id", "offer_code_ref_name")
    if row.flag("is_in_intro_offer_period") or any(row.identifier(name) for name in offers):
        return "offer"
    return "regular"


def is_unkeyed_renewal(row, key):
    """R3: a renewal that counts as its first period, because it lacks a line item."""
    if key.kind == "line item":
        return False
    transaction = row.identifier("transaction_id")
    original = row.identifier("original_transaction_id")
    return row.expires_ms is not None and None not in (transaction, original) and transaction != original
