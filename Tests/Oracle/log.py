# A ledger's log, read event by event: what is malformed becomes an exception and nothing else.
import base64
import re
from fractions import Fraction

import dates
from currencies import MINOR_DIGITS
from events import ListedPrice, Upload, Verification
from events import ENVIRONMENTS, MOST_TRANSACTIONS
from journal import Book
from money import Price, PriceProblem, Rate, micros_from_text, read_currency
from sales import Fold
from signed import SignedEvent, SignedRenewal, Statement, payload_of, trust_of
from values import Number, members, parse

PRODUCT_TYPES = ("consumable", "non_consumable", "auto_renewable", "non_renewing")
INTEGERS = range(-(2**63), 2**63)


class Malformed(Exception):
    """An event that is not what the catalogue says; the text names its first member at fault."""


class LaterProgram(Exception):
    """An event of a type or version that these rules do not know."""


def _is_text(value):
    return isinstance(value, str)


def _is_integer(value):
    return isinstance(value, Number) and value.is_integer and int(value.text) in INTEGERS


def _is_position(value):
    return _is_integer(value) and int(value.text) >= 0


def _is_uuid(value):
    digits = "[0-9a-f]"
    form = f"{digits}{{8}}-{digits}{{4}}-{digits}{{4}}-{digits}{{4}}-{digits}{{12}}"
    return _is_text(value) and re.fullmatch(form, value, re.ASCII) is not None


def _is_time(value):
    form = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
    if not _is_text(value) or not re.fullmatch(form, value, re.ASCII):
        return False
    try:
        return dates.time_from_text(value) >= 0
    except ValueError:
        return False


def _word(*words):
    return lambda value: value in words if _is_text(value) else False


def _texts(value):
    return isinstance(value, list) and all(map(_is_text, value))


def _products(value):
    return isinstance(value, dict) and all(_word(*PRODUCT_TYPES)(kind) for kind in value.values())


def _entries(value):
    names = ("product_id", "currency", "price", "effective_from")
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and all(_is_text(entry.get(name)) for name in names)
        and _is_text(entry.get("country_code", ""))
        for entry in value
    )


def _days(value):
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and _is_text(entry.get("date"))
        and _is_text(entry.get("base"))
        and isinstance(entry.get("rates"), dict)
        and all(map(_is_text, entry["rates"].values()))
        for entry in value
    )


def _is_root(value):
    try:
        return _is_text(value) and len(base64.b64decode(value, validate=True)) == 32
    except ValueError:
        return False


def _is_digest(value):
    return _is_text(value) and re.fullmatch("[0-9a-f]{64}", value, re.ASCII) is not None


def _versions(value):
    return isinstance(value, dict) and all(map(_is_integer, value.values()))


def _head(value):
    is_object = isinstance(value, dict)
    return is_object and _is_position(value.get("size")) and _is_root(value.get("root"))


def _signed_heads(value):
    return _head(value) and _is_position(value.get("checkpoints"))


def _is_name(value):
    return _is_text(value) and value != ""


def _digests(value):
    return isinstance(value, list) and all(map(_is_digest, value))


def _certificates(value):
    return isinstance(value, list) and all(
        isinstance(entry, dict) and _is_text(entry.get("name")) and _is_digest(entry.get("sha256"))
        for entry in value
    )


def _is_object(value):
    return isinstance(value, dict)


# The members of a signed object and of the verdict on an inner one: what each must be, and may it be absent.
VERDICT = [
    ("outcome", _word("valid", "invalid"), False),
    ("reason", _is_text, True),
    ("root_sha256", _is_digest, True),
    ("signer_sha256", _is_digest, True),
    ("signed_at", _is_time, True),
]
SIGNED_OBJECT = [
    *VERDICT,
    ("payload", _is_object, False),
    ("payload_base64url", _is_text, True),
    ("signature", _is_text, False),
    ("header", _is_object, False),
    ("header_base64url", _is_text, True),
]


# How many signed objects each list of a fetched page holds at most.
MOST_FETCHED = 1000
CALLS = ("history", "transaction", "statuses", "refund_lookup", "notification_history")


def _has(members_of_it):
    def is_right(value):
        return _is_object(value) and all(
            is_right(value[name]) if name in value else may_be_absent
            for name, is_right, may_be_absent in members_of_it
        )

    return is_right


def _signed_objects(value):
    is_list = isinstance(value, list) and 1 <= len(value) <= MOST_TRANSACTIONS
    return is_list and all(map(_has(SIGNED_OBJECT), value))


def _fetched_objects(value):
    is_list = isinstance(value, list) and len(value) <= MOST_FETCHED
    return is_list and all(map(_has(SIGNED_OBJECT), value))


APPLE_HOSTS = ("buy.itunes.apple.com", "sandbox.itunes.apple.com")


def _trust(data):
    """What vouches for a verification's reply, in the word of reports."""
    if "host" in data:
        return "app_store" if data["host"] in APPLE_HOSTS else "configured"
    return "imported" if data.get("via") == "import" else "not_recorded"


def _lists_of_texts(value):
    return _is_object(value) and all(map(_texts, value.values()))


def _is_apple_id(value):
    return _is_integer(value) and int(value.text) >= 1


# The members of each type in the catalogue's order: name, what it must be, whether it may be absent.
CATALOGUE = {
    "app.registered": [
        ("app_family_id", _is_uuid, False),
        ("name", _is_text, False),
        ("bundle_ids", _texts, False),
        ("products", _products, False),
        ("app_apple_id", _is_apple_id, True),
        ("entitlements", _lists_of_texts, True),
    ],
    "receipt.uploaded": [
        ("receipt_id", _is_uuid, False),
        ("app_family_id", _is_uuid, False),
        ("style", _word("unified", "transaction"), False),
        ("bundle_id", _is_text, False),
        ("receipt_sha256", _is_text, False),
        ("occurred_at", _is_time, False),
        ("via", _word("http", "import"), False),
        ("line", _is_integer, True),
        ("line_sha256", _is_text, True),
        ("country_code", _is_text, True),
        ("identifier_for_vendor", _is_text, True),
        ("user_identifier", _is_text, True),
        ("ip_address", _is_text, True),
        ("metadata", lambda value: isinstance(value, dict), True),
        ("receipt", _is_text, False),
    ],
    "receipt.verified": [
        ("upload", _is_position, False),
        ("authority", _word("local", "app_store"), False),
        ("outcome", _word("valid", "invalid", "unreachable"), False),
        ("environment", _is_text, True),
        ("status", _is_integer, True),
        ("reason", _is_text, True),
        ("attempt", _is_integer, False),
        ("endpoint", _word("production", "sandbox"), True),
        ("mismatch", _is_text, True),
        ("host", _is_name, True),
        ("via", _word("import"), True),
        ("occurred_at", _is_time, False),
        ("reply", lambda value: True, True),
        ("reply_base64", _is_text, True),
        ("reply_of", _is_position, True),
    ],
    "transactions.received": [
        ("upload_id", _is_uuid, False),
        ("app_family_id", _is_uuid, False),
        ("occurred_at", _is_time, False),
        ("via", _word("http", "import"), False),
        ("line", _is_integer, True),
        ("line_sha256", _is_text, True),
        ("country_code", _is_text, True),
        ("identifier_for_vendor", _is_text, True),
        ("user_identifier", _is_text, True),
        ("ip_address", _is_text, True),
        ("metadata", _is_object, True),
        ("outcome", _word("valid", "invalid"), False),
        ("fraud_reason", _is_text, True),
        ("transactions", _signed_objects, False),
        ("app_transaction", _has(SIGNED_OBJECT), True),
    ],
    "notification.received": [
        ("notification_uuid", _is_text, False),
        ("app_family_id", _is_uuid, False),
        ("bundle_id", _is_text, False),
        ("environment", _is_text, False),
        ("occurred_at", _is_time, False),
        ("via", _word("http", "import", "fetch"), False),
        ("line", _is_integer, True),
        ("line_sha256", _is_text, True),
        ("type", _is_text, False),
        ("subtype", _is_text, True),
        ("transaction", _has(VERDICT), True),
        ("renewal", _has(VERDICT), True),
        ("notification", _has(SIGNED_OBJECT), False),
    ],
    "transactions.fetched": [
        ("app_family_id", _is_uuid, False),
        ("bundle_id", _is_text, False),
        ("environment", _word("Production", "Sandbox"), False),
        ("occurred_at", _is_time, False),
        ("call", _word(*CALLS), False),
        ("host", _is_name, False),
        ("transaction_id", _is_text, True),
        ("from", _is_time, True),
        ("to", _is_time, True),
        ("revision", _is_text, True),
        ("error_code", _is_integer, True),
        ("has_more", lambda value: isinstance(value, bool), False),
        ("transactions", _fetched_objects, False),
        ("renewals", _fetched_objects, False),
    ],
    "prices.declared": [
        ("source", _is_text, False),
        ("source_sha256", _is_text, False),
        ("entries", _entries, False),
    ],
    "rates.declared": [
        ("source", _is_text, False),
        ("source_sha256", _is_text, False),
        ("days", _days, False),
    ],
    # These change nothing in the books.
    "snapshot.created": [
        ("size", _is_position, False),
        ("root", _is_root, False),
        ("projections", _versions, False),
        ("content_sha256", _is_digest, False),
        ("file_sha256", _is_digest, False),
    ],
    "history.accepted": [
        ("log", _head, False),
        ("projections", _head, True),
        ("heads", _signed_heads, True),
    ],
    "trust.declared": [
        ("production_host", _is_name, False),
        ("sandbox_host", _is_name, False),
        ("roots_sha256", _digests, False),
        ("intermediates", _certificates, False),
        ("local_testing_signers_sha256", _digests, False),
    ],
}
# What stands last, so that a reader need not look behind it.
LAST = {"receipt.uploaded": "receipt", "receipt.verified": "reply"}


def _check(kind, data):
    """The data without what follows its last member; Malformed for the first member at fault."""
    last = LAST.get(kind)
    names = list(data)
    is_cut = last in names and names[-1] != last
    if is_cut:
        data = {name: data[name] for name in names[: names.index(last) + 1]}
    for name, is_right, may_be_absent in CATALOGUE[kind]:
        if name not in data:
            if may_be_absent:
                continue
            raise Malformed(f"{kind} {name}")
        if not is_right(data[name]) or (is_cut and name == last == "receipt"):
            raise Malformed(f"{kind} {name}")
    if is_cut:
        raise Malformed(f"{kind} {last}")
    return data


def _upload(position, data):
    return Upload(
        position,
        dates.time_from_text(data["occurred_at"]),
        data.get("country_code"),
        data.get("user_identifier") or None,
        data.get("metadata", {}),
        data.get("receipt_id"),
    )


class LogReader:
    """Folds a log's events, given as lines in position order."""

    def __init__(self):
        self.fold = Fold()
        self.prices = []
        self.rates = []
        self._uploads = {}
        self._bundles = set()
        # When the last event was recorded.
        self._last_ms = None
        # The replies of verifications that are well-formed in themselves, whatever they name.
        self._replies = {}

    def read(self, lines):
        for line in lines:
            event = parse(line)
            position = int(event["seq"].text)
            self._last_ms = dates.time_from_text(event["at"])
            try:
                self._take(position, event["type"], int(event["v"].text), event["data"])
            except Malformed as fault:
                self.fold.note_malformed(position, str(fault))
        return Book(self.fold, self.prices, self.rates, self._last_ms)

    def _take(self, position, kind, version, data):
        if kind not in CATALOGUE or version != 1:
            raise LaterProgram(f"{kind} in version {version} at {position}")
        data = _check(kind, data)
        if kind == "app.registered":
            self.fold.declared[data["app_family_id"]] = data["products"]
            self._bundles |= set(data["bundle_ids"])
        elif kind == "receipt.uploaded":
            upload = _upload(position, data)
            self._uploads[position] = (data["app_family_id"], upload)
            self.fold.meet(upload)
        elif kind == "receipt.verified":
            # A reply that is no object has neither status nor rows.
            self._replies[position] = members(data["reply"]) if "reply" in data else None
            self._verify(position, data)
        elif kind == "transactions.received":
            upload = _upload(position, data)
            self.fold.meet(upload)
            if data["outcome"] == "valid":
                found = [self._statement(one, one["payload"]) for one in data["transactions"]]
                self._add_signed(position, data, found, upload)
        elif kind == "notification.received":
            if data["notification"]["outcome"] == "valid":
                self._notify(position, data)
        elif kind == "transactions.fetched":
            found = [self._statement(one, one["payload"]) for one in data["transactions"]]
            renewals = tuple(
                SignedRenewal(one["payload"], data["environment"], data["bundle_id"])
                for one in data["renewals"] if one["outcome"] == "valid"
            )
            self._add_signed(position, data, found, renewals=renewals)
        elif kind == "prices.declared":
            self._declare_prices(position, data["entries"])
        elif kind == "rates.declared":
            self._declare_rates(position, data["days"])

    def _statement(self, verdict, payload):
        """R12, Counts: the statement; None where it counts for nothing."""
        if payload is None or verdict["outcome"] != "valid":
            return None
        statement = Statement(payload, trust_of(verdict.get("root_sha256")))
        known = statement.bundle_id in self._bundles and statement.signed_ms is not None
        return statement if known and statement.environment in ENVIRONMENTS else None

    def _notify(self, position, data):
        """R12, R13: what a notification holds."""
        inner = members(data["notification"]["payload"].get("data"))
        found = renewals = ()
        if "transaction" in data:
            payload = payload_of(inner.get("signedTransactionInfo"))
            found = (self._statement(data["transaction"], payload),)
        if "renewal" in data and data["renewal"]["outcome"] == "valid":
            fields = payload_of(inner.get("signedRenewalInfo"))
            if fields is not None:
                renewals = (SignedRenewal(fields, data["environment"], data["bundle_id"]),)
        self._add_signed(position, data, found, renewals=renewals)

    def _add_signed(self, position, data, found, upload=None, renewals=()):
        # R12's Counts holds for renewal information too. A list of a client's has none, and names no bundle.
        if renewals and data["bundle_id"] not in self._bundles:
            renewals = ()
        self.fold.add(
            SignedEvent(
                position,
                dates.time_from_text(data["occurred_at"]),
                upload,
                tuple(statement for statement in found if statement is not None),
                data["app_family_id"],
                renewals,
            )
        )

    def _verify(self, position, data):
        found = self._uploads.get(int(data["upload"].text))
        if found is None:
            raise Malformed("receipt.verified upload")
        family, upload = found
        reply = self._replies[position]
        if "reply_of" in data:
            earlier = int(data["reply_of"].text)
            if earlier >= position or earlier not in self._replies:
                raise Malformed("receipt.verified reply_of")
            reply = self._replies[earlier]
        if data["authority"] != "app_store" or (reply is None and "reply_base64" not in data):
            return
        status = data.get("status")
        self.fold.add(
            Verification(
                position,
                upload,
                dates.time_from_text(data["occurred_at"]),
                data.get("endpoint"),
                reply or {},
                counts=data["outcome"] == "valid" and reply is not None,
                status=None if status is None else int(status.text),
                environment=data.get("environment"),
                declared_by=family,
                trust=_trust(data),
            )
        )

    def _declare_prices(self, position, entries):
        for place, entry in enumerate(entries):
            micros = micros_from_text(entry["price"])
            try:
                currency = read_currency(entry["currency"])
                day = dates.days_from_text(entry["effective_from"])
            except (PriceProblem, ValueError):
                continue
            if micros is None:
                continue
            self.prices.append(
                ListedPrice(
                    entry["product_id"],
                    entry.get("country_code"),
                    Price(micros, currency),
                    day * dates.DAY_MS,
                    (position, place),
                )
            )

    def _declare_rates(self, position, days):
        place = 0
        for entry in days:
            try:
                day = dates.days_from_text(entry["date"])
            except ValueError:
                continue
            for quote, text in entry["rates"].items():
                place += 1
                is_decimal = re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII)
                if not is_decimal or Fraction(text) == 0 or quote not in MINOR_DIGITS:
                    continue
                if entry["base"] in MINOR_DIGITS:
                    rate = Fraction(text)
                    self.rates.append(Rate(day, entry["base"], quote, rate, (position, place)))


def read_log(lines):
    """The book of a log; its lines are those that `ledgerctl replay` prints."""
    return LogReader().read(lines)
