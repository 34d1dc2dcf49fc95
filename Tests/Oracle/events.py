# Reads import files, price lists and rates into events, with positions as an import assigns them.
import base64
import binascii
import csv
import gzip
import hashlib
import io
import ipaddress
import re
from dataclasses import dataclass
from fractions import Fraction

import dates
from currencies import COUNTRIES, MINOR_DIGITS
from money import Price, PriceProblem, Rate, micros_from_text, read_currency
from receipt_file import read_receipt
from rows import bundle_of, source_rows
from signed import NotSigned, SignedEvent, SignedRenewal, Statement, decoded, trust_of
from values import Number, NotJSON, date_ms, identifier, integer, members, parse

ENVIRONMENTS = ("Production", "Sandbox")
# The kinds of lines.
FORMS = ("receipt", "signed_transactions", "notification", "notification_v1")
MOST_TRANSACTIONS = 100
# signedDate: how far it may be in the future.
AHEAD_MS = 60_000


class BadLine(Exception):
    """Why an import would refuse the line."""


@dataclass(frozen=True)
class Upload:
    position: int
    occurred_at_ms: int
    country_code: str | None
    user_identifier: str | None
    metadata: dict
    # Identifies the receipt; None for signed transactions.
    receipt_id: object = None


@dataclass(frozen=True)
class Verification:
    position: int
    upload: Upload
    occurred_at_ms: int
    endpoint: str | None
    reply: dict
    # As in a log's event; an import file's line leaves it to the reply.
    counts: bool | None = None
    status: int | None = None
    environment: str | None = None
    # The app family whose declared products the rows are checked against, if the bundle does not give it.
    declared_by: str | None = None
    # Where the reply came from.
    trust: str = "imported"
    # The bundle, if it does not come from the reply.
    bundle_id: str | None = None
    # The facts of the version 1 notification that brought the reply, and when it came.
    notification: dict | None = None
    notified_ms: int | None = None


@dataclass(frozen=True)
class ListedPrice:
    """An entry of a price list; `order` is (position, index in the list)."""

    product_id: str
    country_code: str | None
    price: Price
    effective_from_ms: int
    order: tuple


class Positions:
    """Assigns positions, one for each event, in the order of appending."""

    def __init__(self):
        self.next = 0

    def take(self):
        self.next += 1
        return self.next - 1


class Importer:
    """Reads import files like successive imports."""

    def __init__(self, positions, now_ms):
        self.positions = positions
        self.now_ms = now_ms
        self.refused = []
        self._seen = set()
        self._notifications = set()

    def events(self, data, name=""):
        """The verifications and signed transactions that the file's lines record, in order."""
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, start=1):
            digest = hashlib.sha256(line).digest()
            if digest in self._seen:
                continue
            try:
                event = self._line(line)
            except (BadLine, NotJSON, NotSigned) as error:
                self.refused.append(f"{name}:{number}: {error}")
                continue
            self._seen.add(digest)
            if event is not None:
                yield event

    def _line(self, line):
        document = parse(line)
        if not isinstance(document, dict):
            raise BadLine("not an object")
        if document.get("marketplace", "itunes") != "itunes":
            raise BadLine("marketplace is not itunes")
        if "notification_type" in document and "unified_receipt" in document:
            # A version 1 notification's body unchanged, its time next to its content.
            occurred_at = document.get("occurred_at")
            if occurred_at is None:
                occurred_at = _latest_ms(document)
            document = {"notification_v1": document, "occurred_at": occurred_at}
        if sum(document.get(name) is not None for name in FORMS) != 1:
            raise BadLine(f"not exactly one of {', '.join(FORMS)}")
        if document.get("notification") is not None:
            return self._notification(document)
        if document.get("notification_v1") is not None:
            return self._version_1(document)
        country_code = _country(document.get("country_code"))
        user_identifier = _text(document, "user_identifier") or _text(document, "user_identifer")
        _text(document, "identifier_for_vendor")
        _check_address(_text(document, "ip_address"))
        metadata = document.get("metadata")
        if metadata is not None and not isinstance(metadata, dict):
            raise BadLine("metadata is no object")
        told = (country_code, user_identifier, metadata or {})
        occurred_at_ms = _time(document.get("occurred_at"))
        if document.get("receipt") is not None:
            return self._verification(document, occurred_at_ms, told)
        statements = self._statements(document)
        if occurred_at_ms is None:
            occurred_at_ms = max(statement.signed_ms for statement in statements)
        position = self.positions.take()
        return SignedEvent(position, occurred_at_ms, Upload(position, occurred_at_ms, *told), statements)

    def _verification(self, document, occurred_at_ms, told):
        """A receipt's; `told`: country, user and metadata of the upload."""
        receipt = _receipt(document["receipt"])
        recorded = document.get("verification")
        if recorded is None:
            # Only checked locally: without a reply of the App Store it counts as an upload of its user and
            # nothing else.
            found = read_receipt(receipt)
            if found is None:
                return None
            at_ms = self.now_ms if occurred_at_ms is None else occurred_at_ms
            upload = Upload(self.positions.take(), at_ms, *told, (found.bundle_id, receipt))
            self.positions.take()
            return upload
        if not isinstance(recorded, dict) or not isinstance(recorded.get("reply"), dict):
            raise BadLine("verification has no reply")
        reply, endpoint = recorded["reply"], recorded.get("endpoint")
        if endpoint is None and identifier(reply.get("environment")) is not None:
            endpoint = "sandbox" if reply["environment"] == "Sandbox" else "production"
        if endpoint not in ("production", "sandbox"):
            raise BadLine("verification has no known endpoint")
        bundle_id = _bundle(bundle_of(reply), reply, receipt)
        if occurred_at_ms is None:
            occurred_at_ms = date_ms(members(reply.get("receipt")).get("request_date_ms"))
        if occurred_at_ms is None:
            occurred_at_ms = self.now_ms
        verified_at_ms = _time(recorded.get("occurred_at"))
        if verified_at_ms is None:
            verified_at_ms = occurred_at_ms
        upload = Upload(self.positions.take(), occurred_at_ms, *told, (bundle_id, receipt))
        return Verification(
            self.positions.take(), upload, verified_at_ms, endpoint, reply, bundle_id=bundle_id)

    def _statements(self, document):
        """The signed transactions of a line, all of them good."""
        texts = document["signed_transactions"]
        if not isinstance(texts, list) or not 1 <= len(texts) <= MOST_TRANSACTIONS:
            raise BadLine("not 1 to 100 signed transactions")
        environment = document.get("environment")
        if environment is not None and environment not in ENVIRONMENTS:
            raise BadLine("environment is neither Production nor Sandbox")
        statements = tuple(self._statement(text, environment) for text in texts)
        if environment is not None and any(one.environment != environment for one in statements):
            raise BadLine("an object names another environment than the line")
        # The cases' apps have one bundle each.
        if len({statement.bundle_id for statement in statements}) > 1:
            raise BadLine("bundles of several app families")
        return statements

    def _statement(self, text, environment):
        """`environment`: for an object that names none."""
        _, payload, root_sha256 = decoded(text)
        self._check_dated(payload)
        statement = Statement(payload, trust_of(root_sha256), environment)
        if statement.bundle_id is None:
            raise BadLine("no bundleId")
        if statement.environment not in ENVIRONMENTS:
            raise BadLine("another environment, or none")
        return statement

    def _check_dated(self, payload):
        signed_ms = date_ms(payload.get("signedDate"))
        if signed_ms is None or signed_ms > self.now_ms + AHEAD_MS:
            raise BadLine("no signedDate, or one in the future")
        return signed_ms

    def _notification(self, document):
        occurred_at_ms = _time(document.get("occurred_at"))
        _, payload, _ = decoded(document["notification"])
        signed_ms = self._check_dated(payload)
        name = payload.get("notificationUUID")
        if not isinstance(name, str):
            raise BadLine("no notificationUUID")
        parts = members(payload.get("data")) or members(payload.get("summary"))
        if not identifier(parts.get("bundleId")) or parts.get("environment") not in ENVIRONMENTS:
            raise BadLine("no bundleId, or another environment")
        statements = renewals = ()
        if parts.get("signedTransactionInfo") is not None:
            statements = (self._statement(parts["signedTransactionInfo"], parts["environment"]),)
        if parts.get("signedRenewalInfo") is not None:
            renewal = decoded(parts["signedRenewalInfo"])[1]
            self._check_dated(renewal)
            renewals = (SignedRenewal(renewal, parts["environment"], identifier(parts["bundleId"])),)
        if name in self._notifications:
            return None
        self._notifications.add(name)
        if occurred_at_ms is None:
            occurred_at_ms = signed_ms
        position = self.positions.take()
        return SignedEvent(position, occurred_at_ms, None, statements, renewals=renewals)

    def _version_1(self, document):
        """A version 1 notification, as a receipt with the reply that it holds."""
        occurred_at_ms = _time(document.get("occurred_at"))
        body = members(document["notification_v1"])
        reply = body.get("unified_receipt")
        if occurred_at_ms is None or not isinstance(reply, dict):
            raise BadLine("no occurred_at, or no unified_receipt")
        receipt = _receipt(reply.get("latest_receipt"))
        bundle_id = _bundle(identifier(body.get("bid")), reply, receipt)
        upload = Upload(self.positions.take(), occurred_at_ms, None, None, {}, (bundle_id, receipt))
        return Verification(self.positions.take(), upload, occurred_at_ms, None, reply,
                            bundle_id=bundle_id, notification=body, notified_ms=occurred_at_ms)


def _latest_ms(body):
    """The time of the latest event that a bare body names (docs/import-format.md), or None."""
    times = [date_ms(body.get("auto_renew_status_change_date_ms"))]
    for row in source_rows(members(body.get("unified_receipt"))):
        times += row.date_ms("purchase_date_ms"), row.date_ms("cancellation_date_ms")
    latest_ms = max((time for time in times if time is not None), default=None)
    return None if latest_ms is None else Number(str(latest_ms))


def _bundle(named, reply, receipt):
    """R2: the bundle named, else the receipt's, which a valid reply must match if it can be read."""
    found = read_receipt(receipt)
    if named is None:
        named = bundle_beside(reply, found)
        if named is None:
            raise BadLine("no bundle id")
    elif found is not None and integer(reply.get("status")) in (0, 21006):
        if found.bundle_id != named or found.is_of_others(list(source_rows(reply))):
            raise BadLine("the reply is not about the receipt")
    return named


def bundle_beside(reply, receipt):
    """R2: the bundle of the upload's receipt, if the reply shows one of its ids; None otherwise."""
    is_about_it = receipt is not None and receipt.shares(source_rows(reply))
    return receipt.bundle_id if is_about_it else None


def _receipt(receipt):
    """The decoded receipt."""
    if not isinstance(receipt, str) or not receipt:
        raise BadLine("no receipt")
    cleaned = re.sub(r"[\r\n\t]", "", receipt).replace(" ", "+")
    try:
        decoded_receipt = base64.b64decode(cleaned.encode("utf-8"), validate=True)
    except binascii.Error:
        raise BadLine("receipt is not base64") from None
    if not decoded_receipt:
        raise BadLine("no receipt")
    return decoded_receipt


def _country(value):
    if value is None:
        return None
    if not isinstance(value, str) or value.upper() not in COUNTRIES or not value.isascii():
        raise BadLine("country_code is no ISO 3166-1 alpha-2 code")
    return value.upper()


def _text(document, name):
    """A string that is not empty, or None."""
    value = document.get(name)
    if value is not None and not isinstance(value, str):
        raise BadLine(f"{name} is no string")
    return identifier(value)


def _check_address(address):
    if address is None or address == "NULL":
        return
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise BadLine("ip_address is no address") from None


def _time(value):
    if value is None:
        return None
    if isinstance(value, Number) and date_ms(value) is not None:
        return date_ms(value)
    try:
        if isinstance(value, str):
            return dates.time_from_text(value)
    except ValueError:
        pass
    raise BadLine("occurred_at is no time")


def _csv_rows(data, columns):
    reader = csv.DictReader(io.StringIO(data.decode("utf-8"), newline=""), strict=True)
    if reader.fieldnames != columns:
        raise ValueError(f"the columns are not {','.join(columns)}")
    for place, row in enumerate(reader):
        if None in row or None in row.values():
            raise ValueError(f"row {place + 1} hasn't {len(columns)} cells")
        yield place, row


def listed_prices(data, position):
    """A price list (R7, 5): product_id,country_code,currency,price,effective_from."""
    columns = ["product_id", "country_code", "currency", "price", "effective_from"]
    entries = []
    for place, row in _csv_rows(data, columns):
        micros = micros_from_text(row["price"])
        if micros is None or not row["product_id"]:
            raise ValueError(f"row {place + 1} of the price list is no price")
        try:
            currency = read_currency(row["currency"])
            country_code = _country(row["country_code"] or None)
        except (PriceProblem, BadLine) as error:
            raise ValueError(f"row {place + 1} of the price list: {error}") from None
        entries.append(
            ListedPrice(
                row["product_id"],
                country_code,
                Price(micros, currency),
                dates.days_from_text(row["effective_from"]) * dates.DAY_MS,
                (position, place),
            )
        )
    return entries


def declared_rates(data, position):
    """Exchange rates (R10): date,base,quote,rate."""
    rates = []
    for place, row in _csv_rows(data, ["date", "base", "quote", "rate"]):
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", row["rate"]) or Fraction(row["rate"]) == 0:
            raise ValueError(f"row {place + 1} of the rates is no rate")
        if row["base"] not in MINOR_DIGITS or row["quote"] not in MINOR_DIGITS:
            raise ValueError(f"row {place + 1} of the rates names no known currency")
        rates.append(
            Rate(
                dates.days_from_text(row["date"]),
                row["base"],
                row["quote"],
                Fraction(row["rate"]),
                (position, place),
            )
        )
    return rates
