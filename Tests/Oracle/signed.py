# Signed transactions and notifications: their payloads, and their statements (R12).
import base64
import binascii
import hashlib
from dataclasses import dataclass
from fractions import Fraction

from money import Price, PriceProblem, read_currency
from storefronts import country_of
from values import Number, NotJSON, date_ms, elements, flag, identifier, integer, members, parse, token_user

APPLE_ROOT_G3 = "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179"
MOST_QUANTITY = 1_000_000
# revocationPercentage: 100 %.
WHOLE = 100_000
# The fields of a row, by their names in a signed transaction.
FIELDS = {
    "product_id": "productId",
    "transaction_id": "transactionId",
    "original_transaction_id": "originalTransactionId",
    "web_order_line_item_id": "webOrderLineItemId",
    "purchase_date_ms": "purchaseDate",
    "original_purchase_date_ms": "originalPurchaseDate",
    "expires_date_ms": "expiresDate",
}


class NotSigned(Exception):
    """Why a text is not a signed object."""


def decoded(text):
    """(header, payload, SHA-256 of the chain's last certificate) of a JWS, whose signature is not checked."""
    if not isinstance(text, str) or len(text) > 131_072:
        raise NotSigned("no text, or too large")
    parts = text.split(".")
    if len(parts) != 3:
        raise NotSigned("not three parts")
    header, payload = (_object(_unbase64url(part)) for part in parts[:2])
    chain = header.get("x5c")
    if header.get("alg") != "ES256" or not isinstance(chain, list) or len(chain) != 3:
        raise NotSigned("another algorithm or chain")
    if len(_unbase64url(parts[2])) != 64:
        raise NotSigned("no signature of 64 bytes")
    try:
        root = base64.b64decode(chain[2], validate=True)
    except (TypeError, ValueError):
        raise NotSigned("a certificate is not base64") from None
    return header, payload, hashlib.sha256(root).hexdigest()


def _unbase64url(text):
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise NotSigned("not base64url") from None
    if base64.urlsafe_b64encode(data).decode().rstrip("=") != text:
        raise NotSigned("not base64url")
    return data


def _object(data):
    try:
        value = parse(data)
    except NotJSON:
        raise NotSigned("not JSON") from None
    if not isinstance(value, dict):
        raise NotSigned("no JSON object")
    return value


def payload_of(text):
    """The payload of a JWS inside another object; None if there is none to read."""
    try:
        return decoded(text)[1]
    except NotSigned:
        return None


def trust_of(root_sha256):
    """The source of a statement, in the words of reports."""
    return "app_store" if root_sha256 == APPLE_ROOT_G3 else "configured"


@dataclass(frozen=True)
class Share:
    """R12: the part of a sale that is refunded; `is_units` if it is a whole number of units."""

    part: Fraction
    is_units: bool


NONE = Share(Fraction(0), True)
ALL = Share(Fraction(1), True)


@dataclass(frozen=True)
class Statement:
    """One signed transaction's payload, read by the names of a reply's rows where they have one."""

    fields: dict
    trust: str = "configured"
    # R12, Counts: the environment of what brought it, used if it names none itself.
    brought_environment: str | None = None

    def identifier(self, name):
        return identifier(self.fields.get(FIELDS.get(name)))

    def date_ms(self, name):
        return date_ms(self.fields.get(FIELDS.get(name)))

    @property
    def bundle_id(self):
        return identifier(self.fields.get("bundleId"))

    @property
    def environment(self):
        return identifier(self.fields.get("environment")) or self.brought_environment

    @property
    def signed_ms(self):
        return date_ms(self.fields.get("signedDate"))

    @property
    def quantity(self):
        """R12: an integer from 1 to 1,000,000, else None."""
        value = integer(self.fields.get("quantity"))
        return value if value is not None and 1 <= value <= MOST_QUANTITY else None

    @property
    def offer_type(self):
        return integer(self.fields.get("offerType"))

    @property
    def is_trial(self):
        return self.fields.get("offerDiscountType") == "FREE_TRIAL"

    @property
    def kind(self):
        """R12, kinds: the first match."""
        if self.fields.get("inAppOwnershipType") == "FAMILY_SHARED":
            return "family_shared"
        if self.is_trial:
            return "trial"
        return "regular" if self.offer_type is None else "offer"

    @property
    def may_be_trial(self):
        """R12: an introductory offer of which neither the type nor the price is known yet."""
        unknown = (self.fields.get(name) is None for name in ("offerDiscountType", "price"))
        return self.kind == "offer" and self.offer_type == 1 and all(unknown)

    @property
    def expires_ms(self):
        return self.date_ms("expires_date_ms")

    @property
    def is_upgraded(self):
        return flag(self.fields.get("isUpgraded"))

    @property
    def country_code(self):
        return country_of(self.fields.get("storefront"))

    @property
    def user_token(self):
        return token_user(self.fields.get("appAccountToken"))

    @property
    def account(self):
        return identifier(self.fields.get("appTransactionId"))

    @property
    def is_multi_seat(self):
        return isinstance(self.fields.get("multiSeatInfo"), dict)

    @property
    def price(self):
        """R12: the charge for the whole quantity; None if it cannot be read."""
        micros = _milliunits(self.fields.get("price"))
        if micros is None or self.is_multi_seat:
            return None
        try:
            return Price(micros, read_currency(self.fields.get("currency")))
        except PriceProblem:
            return None

    # What is refunded.

    @property
    def revocation_ms(self):
        return date_ms(self.fields.get("revocationDate"))

    @property
    def reason(self):
        return identifier(self.fields.get("revocationReason")) or ""

    @property
    def percentage(self):
        """R12: from 0 to 100,000; any other value counts as absent."""
        value = integer(self.fields.get("revocationPercentage"))
        return value if value is not None and 0 <= value <= WHOLE else None

    def share(self, quantity):
        """R12, Returns: the refunded share of this many units."""
        if self.revocation_ms is None:
            return NONE
        if self.percentage is None:
            return ALL
        units = round(Fraction(self.percentage * quantity, WHOLE))
        # Within 0.0005 % of a number of whole units.
        if 2 * abs(self.percentage * quantity - WHOLE * units) <= quantity:
            return Share(Fraction(units, quantity), True)
        return Share(Fraction(self.percentage, WHOLE), False)

    @property
    def is_advanced(self):
        return isinstance(self.fields.get("advancedCommerceInfo"), dict)

    def advanced_refunds(self):
        """R12, Advanced Commerce: (date, micros) of every refund; None if one is missing."""
        for item in elements(members(self.fields.get("advancedCommerceInfo")).get("items")):
            for refund in elements(members(item).get("refunds")):
                if isinstance(refund, dict):
                    yield date_ms(refund.get("refundDate")), _milliunits(refund.get("refundAmount"))


def _milliunits(value):
    """An integer of at most 14 digits, 0 or more, as micros; else None."""
    number = integer(value)
    text = value.text if isinstance(value, Number) else value
    if number is None or number < 0 or len(text.lstrip("-")) > 14:
        return None
    return number * 1000


@dataclass(frozen=True)
class SignedRenewal:
    """Signed renewal information; environment and bundle are those of what it came with."""

    fields: dict
    environment: str
    bundle_id: str


@dataclass(frozen=True)
class SignedEvent:
    """Signed transactions that came together; a notification has no upload."""

    position: int
    occurred_at_ms: int
    upload: object
    statements: tuple
    declared_by: str | None = None
    renewals: tuple = ()
