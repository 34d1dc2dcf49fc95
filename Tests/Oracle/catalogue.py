# The data of each event type, and what a redaction keeps of it (docs/format.md, the catalogue).
import base64
import re

import dates
from events import MOST_TRANSACTIONS
from settlement_values import month_from_name
from values import Number

PRODUCT_TYPES = ("consumable", "non_consumable", "auto_renewable", "non_renewing")
INTEGERS = range(-(2**63), 2**63)


class Malformed(Exception):
    """An event that deviates from the catalogue; the text names the first wrong member."""


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


def _merged_ledger(value):
    return (
        _head(value)
        and _is_text(value.get("origin"))
        and _is_text(value.get("id"))
        and _is_position(value.get("first"))
        and int(value["first"].text) <= int(value["size"].text)
        and ("user_prefix" not in value or _is_text(value["user_prefix"]))
    )


def _merged_ledgers(value):
    return isinstance(value, list) and all(map(_merged_ledger, value))


def _merged_erasures(value):
    return isinstance(value, list) and all(
        isinstance(erasure, dict)
        and _is_text(erasure.get("origin"))
        and _is_position(erasure.get("position"))
        for erasure in value
    )


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


# The members of a signed object, and of the verdict on an inner one: the type of each, and whether it may be
# absent.
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


# The most signed objects in each list of a fetched page.
MOST_FETCHED = 1000
# The most lines in each list of an erasure.
MOST_REDACTED = 60_000
CALLS = ("history", "transaction", "statuses", "refund_lookup", "notification_history")


def _has(members_of_it):
    def is_right(value):
        return _is_object(value) and all(
            is_right(value[name]) if name in value else may_be_absent
            for name, is_right, may_be_absent in members_of_it
        )

    return is_right


def _list_of(members_of_each, least, most):
    def is_right(value):
        is_list = isinstance(value, list) and least <= len(value) <= most
        return is_list and all(map(_has(members_of_each), value))

    return is_right


_signed_objects = _list_of(SIGNED_OBJECT, 1, MOST_TRANSACTIONS)
_fetched_objects = _list_of(SIGNED_OBJECT, 0, MOST_FETCHED)


def _lists_of_texts(value):
    return _is_object(value) and all(map(_texts, value.values()))


def _is_apple_id(value):
    return _is_integer(value) and int(value.text) >= 1


def _is_number(value):
    return _is_integer(value) and int(value.text) >= 1


def _is_fiscal_month(value):
    return _is_text(value) and month_from_name(value) is not None


def _is_region(value):
    return _is_text(value) and re.fullmatch("[A-Z]{2}|Z1", value, re.ASCII) is not None


def _is_reason(value):
    return _is_text(value) and re.fullmatch("[a-z][a-z0-9_]{0,31}", value, re.ASCII) is not None


def _rise(values):
    return all(first < second for first, second in zip(values, values[1:]))


def _accepted(value):
    """Indexes in a list of a page with verdicts, by index."""
    of_one = [("index", _is_position, False), ("outcome", _word("valid"), False),
              ("root_sha256", _is_digest, False)]
    is_list = isinstance(value, list) and all(map(_has(of_one), value))
    return is_list and _rise([int(one["index"].text) for one in value])


def _redacted_lines(value):
    """At most this many positions with their digests, by position."""
    of_line = [("position", _is_position, False), ("sha256", _is_digest, False)]
    if not _list_of(of_line, 0, MOST_REDACTED)(value):
        return False
    return _rise([int(line["position"].text) for line in value])


# The members of each type in the catalogue's order: name, type, whether it may be absent.
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
        ("notification", _is_object, True),
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
        ("environment", _word("Production", "Sandbox"), True),
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
    "signatures.accepted": [
        ("page", _is_position, False),
        ("occurred_at", _is_time, False),
        ("transactions", _accepted, False),
        ("renewals", _accepted, False),
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
    "prices.withdrawn": [("position", _is_position, False)],
    "rates.withdrawn": [("position", _is_position, False)],
    "settlement.declared": [
        ("source", _is_text, False),
        ("source_sha256", _is_digest, False),
        ("kind", _word("detailed", "financial", "overview"), False),
        ("month", _is_fiscal_month, False),
        ("region", _is_region, True),
        ("part", _is_number, False),
        ("parts", _is_number, False),
        ("head", _texts, False),
        ("rows", _texts, False),
        ("totals", _texts, False),
    ],
    "settlement.mapped": [
        ("sku", _is_text, False),
        ("product_id", _is_text, True),
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
    "merged.from": [
        ("before", _is_time, False),
        ("chosen_by", _word("ledgers", "operator"), False),
        ("ledgers", _merged_ledgers, False),
        ("events", _is_position, False),
        ("erasures", _merged_erasures, False),
    ],
    # The opening of an erasure; its lists are below.
    "data.redacted": [
        ("request", _is_uuid, False),
        ("scope", _word("user", "receipt", "position", "retention"), False),
        ("reason", _is_reason, False),
    ],
}
# The member that distinguishes a list of an erasure from its opening, and the list's members.
NAMES_ERASURE = "erasure"
LIST_OF_ERASURE = [
    (NAMES_ERASURE, _is_position, False),
    ("part", _is_number, False),
    ("parts", _is_number, False),
    ("reason", _is_reason, False),
    ("lines", _redacted_lines, False),
]
# The last member, so that a reader can stop there.
LAST = {"receipt.uploaded": "receipt", "receipt.verified": "reply"}


def _kept_receipt(value):
    """The original base64, or an object with the facts of the receipt's purchases."""
    if _is_text(value):
        return True
    texts = ("environment", "unsigned_environment")
    return (
        _is_object(value)
        and all(_is_text(value[name]) for name in texts if name in value)
        and isinstance(value.get("purchases"), list)
        and all(map(_is_object, value["purchases"]))
    )


# What a redaction keeps, for types where it keeps less than the data or something else.
_GONE = ("signature", "header")
KEPT_OBJECT = [
    (name, is_right, may_be_absent or name in _GONE)
    for name, is_right, may_be_absent in SIGNED_OBJECT
]
KEPT_VERDICT = [*VERDICT, ("payload", _is_object, True)]
_KEPT = {
    "receipt.uploaded": {"receipt_sha256": _is_text, "receipt": _kept_receipt},
    "transactions.received": {
        "transactions": _list_of(KEPT_OBJECT, 1, MOST_TRANSACTIONS),
        "app_transaction": _has(KEPT_OBJECT),
    },
    "notification.received": {
        "transaction": _has(KEPT_VERDICT),
        "renewal": _has(KEPT_VERDICT),
        "notification": _has(KEPT_OBJECT),
    },
    "transactions.fetched": {
        "transactions": _list_of(KEPT_OBJECT, 0, MOST_FETCHED),
        "renewals": _list_of(KEPT_OBJECT, 0, MOST_FETCHED),
    },
}
# Types with later versions than 1. In version 2 an upload has facts in place of its receipt, a result the
# version 1 notification that brought it, and an upload of signed transactions the environment that they
# lack.
VERSIONS = {"receipt.uploaded": (1, 2), "receipt.verified": (1, 2), "transactions.received": (1, 2)}
# Members that only a redacted event may lack.
_MAY_BE_GONE = {"receipt.uploaded": ("receipt_sha256", "receipt")}


def _is_reduced_receipt(value):
    return _is_object(value) and _kept_receipt(value)


def _members_of(kind, data, is_redacted, version):
    """(name, type, whether it may be absent) of each member, in order."""
    if kind == "data.redacted" and NAMES_ERASURE in data:
        return LIST_OF_ERASURE
    if kind == "receipt.uploaded" and not is_redacted and version == 2:
        return [*CATALOGUE[kind][:-1], ("receipt", _is_reduced_receipt, False)]
    if not is_redacted:
        return CATALOGUE[kind]
    kept, gone = _KEPT.get(kind, {}), _MAY_BE_GONE.get(kind, ())
    found = [
        (name, kept.get(name, is_right), may_be_absent or name in gone)
        for name, is_right, may_be_absent in CATALOGUE[kind]
    ]
    if kind == "receipt.uploaded":
        # The time until which a waiting receipt is kept.
        found.insert(-1, ("receipt_until", _is_time, True))
    return found


def checked(kind, data, is_redacted=False, version=1):
    """The data of an event of a known type; Malformed for the first wrong member.

    `is_redacted`: whether it is what a redaction kept.
    """
    last = LAST.get(kind)
    names = list(data)
    is_cut = last in names and names[-1] != last
    if is_cut:
        data = {name: data[name] for name in names[: names.index(last) + 1]}
    for name, is_right, may_be_absent in _members_of(kind, data, is_redacted, version):
        if name not in data:
            if may_be_absent:
                continue
            raise Malformed(f"{kind} {name}")
        if not is_right(data[name]) or (is_cut and name == last == "receipt"):
            raise Malformed(f"{kind} {name}")
    if is_cut:
        raise Malformed(f"{kind} {last}")
    return data
