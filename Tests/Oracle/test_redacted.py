# Tests of redacted lines: the kept data gives the same figures, and no person's name.
import json
import unittest

from catalogue import CATALOGUE
from log import read_log
from support import exceptions, jws, row, table
from test_log import APP, FETCHED, NOTIFIED, OBJECT, PAYLOAD, RECEIVED, TIME, UPLOAD, VERIFIED
from test_log import malformed, without
from values import is_forgotten

KEPT_OBJECT = without(without(OBJECT, "signature"), "header")
OPENING = {"request": "00112233-4455-4677-8899-aabbccddeeff", "scope": "user", "reason": "user_request"}
LIST = {
    "erasure": 2,
    "part": 1,
    "parts": 1,
    "reason": "user_request",
    "lines": [{"position": 0, "sha256": "ab" * 32}, {"position": 1, "sha256": "cd" * 32}],
}
TOKEN = "3f2a7c11-aaaa-4bbb-8ccc-000000000001"
CONSUMABLE = {**APP, "products": {"coins": "consumable"}}


def name(erasure, number=None):
    return f"(redacted {erasure})" if number is None else f"(redacted {erasure}.{number})"


class Redacted:
    """An event of which this was kept."""

    def __init__(self, kind, kept, by=9):
        self.kind, self.kept, self.by = kind, kept, by


def book(*events):
    """The book of a log of (type, data) and of redacted events."""
    lines = []
    for position, event in enumerate(events):
        whole = {"seq": position, "type": "", "v": 1, "at": TIME, "digest": "ab" * 32}
        if isinstance(event, Redacted):
            whole |= {"type": event.kind, "salt": None, "data": None,
                      "redacted": {"by": event.by, "salt": "", "kept": event.kept}}
        else:
            whole |= {"type": event[0], "salt": "", "data": event[1]}
        lines.append(json.dumps(whole).encode())
    return read_log(lines)


def uploaded(user):
    # The receipt stands last.
    return ("receipt.uploaded", without(UPLOAD, "receipt") | {"user_identifier": user, "receipt": "cg=="})


def kept_upload(erasure=9, receipt=None, **changes):
    """What is kept of an upload, with facts in place of its receipt."""
    kept = without(without(UPLOAD, "receipt"), "receipt_sha256")
    kept |= {"receipt_id": "0e7c2f4a-9a0b-4c5d-8e6f-112233445577", "user_identifier": name(erasure)}
    bought = {"transaction_id": "1", "product_type": "consumable"}
    facts = {"environment": "Production", "purchases": [bought]}
    return Redacted("receipt.uploaded", kept | changes | {"receipt": receipt or facts}, erasure)


def verified(upload):
    return ("receipt.verified", VERIFIED | {"upload": upload})


def kept_reply(upload, erasure=9):
    return Redacted("receipt.verified", VERIFIED | {"upload": upload}, erasure)


class Kept(unittest.TestCase):
    def test_an_upload_keeps_its_sales(self):
        columns = ("sale_key", "country_code", "user_identifier", "user_position")
        for receipt in (None, "cg==", {"purchases": []}):
            found = book(kept_upload(receipt=receipt), Redacted("receipt.verified", VERIFIED))
            self.assertEqual(table("sales", found, *columns), [("1", "DE", "(redacted 9)", "0")])
            self.assertEqual(exceptions(found), [("unpriced", "no_price")])
            self.assertEqual(table("users", found, "user_identifier", "receipts"), [("(redacted 9)", "1")])

    def test_an_upload_may_lack_its_receipt(self):
        kept = kept_upload()
        del kept.kept["receipt"]
        found = book(kept, ("receipt.verified", VERIFIED))
        self.assertEqual(table("sales", found, "sale_key"), [("1",)])

    def test_a_price_in_the_metadata_stays(self):
        prices = {"prices": [{"transaction_id": "1", "price": "9.99", "currency": "EUR"}]}
        found = book(kept_upload(metadata=prices), Redacted("receipt.verified", VERIFIED))
        self.assertEqual(table("sales", found, "unit_price", "price_basis"), [("9.99", "client_transaction")])
        # A mark is unreadable, as the value was.
        for member, problem in (("price", "price_unreadable"), ("currency", "currency_unknown")):
            marked = {"prices": [prices["prices"][0] | {member: "?"}]}
            found = book(kept_upload(metadata=marked), Redacted("receipt.verified", VERIFIED))
            self.assertIn((problem, "client_transaction"), exceptions(found))

    def test_marks_of_quantities_differ_as_the_quantities_did(self):
        shown = [row(quantity="?"), row(quantity="?2")]
        reply = {"receipt": {"bundle_id": "app", "in_app": shown}}
        reply["status"] = 0
        found = book(kept_upload(), Redacted("receipt.verified", VERIFIED | {"reply": reply}))
        bad = [detail for kind, detail in exceptions(found) if kind == "bad_quantity"]
        self.assertEqual(sorted(bad), ["?", "?2"])

    def test_a_reply_of_a_redacted_reply_is_used_again(self):
        again = without(VERIFIED, "reply") | {"upload": 0, "reply_of": 1}
        verification = Redacted("receipt.verified", VERIFIED)
        found = book(kept_upload(), verification, Redacted("receipt.verified", again))
        self.assertEqual(table("sales", found, "sale_key"), [("1",)])
        no_json = without(VERIFIED, "reply") | {"outcome": "invalid", "reply_base64": ""}
        found = book(kept_upload(), Redacted("receipt.verified", no_json))
        self.assertEqual(exceptions(found), [("reply_not_valid", "status 0 at 1")])

    def test_signed_objects_count_without_signature_and_header(self):
        columns = ("sale_key", "country_code", "user_identifier", "price_basis")
        received = RECEIVED | {"user_identifier": name(9), "transactions": [KEPT_OBJECT]}
        received["app_transaction"] = KEPT_OBJECT
        told = {"transaction": NOTIFIED["transaction"] | {"payload": PAYLOAD},
                "notification": KEPT_OBJECT | {"payload": {}}}
        mixed = FETCHED | {"transactions": [KEPT_OBJECT, OBJECT]}
        for event, user in ((Redacted("transactions.received", received), name(9)),
                            (Redacted("notification.received", NOTIFIED | told), ""),
                            (Redacted("transactions.fetched", mixed), "")):
            found = book(("app.registered", APP), event)
            self.assertEqual(malformed(found), [])
            self.assertEqual(table("sales", found, *columns), [("1", "DE", user, "signed_transaction")])

    def test_a_token_is_renamed(self):
        payload = PAYLOAD | {"appAccountToken": name(9, 2)}
        kept = RECEIVED | {"transactions": [KEPT_OBJECT | {"payload": payload}]}
        kept = without(kept, "user_identifier")
        found = book(("app.registered", APP), Redacted("transactions.received", kept))
        self.assertEqual(table("sales", found, "user_identifier"), [("token:(redacted 9.2)",)])

    def test_a_notification_holds_what_lay_inside_it_with_the_verdicts(self):
        renewal = {"originalTransactionId": "1", "signedDate": PAYLOAD["signedDate"], "autoRenewStatus": 1}
        verdict = NOTIFIED["transaction"]
        kept = NOTIFIED | {"transaction": verdict | {"payload": PAYLOAD},
                           "renewal": verdict | {"payload": renewal},
                           "notification": KEPT_OBJECT | {"payload": {}}}
        cases = [(kept, 1, 1), (kept | {"transaction": verdict}, 0, 1), (kept | {"renewal": verdict}, 1, 0),
                 (kept | {"renewal": kept["renewal"] | {"outcome": "invalid"}}, 1, 0),
                 (without(kept, "transaction"), 0, 1),
                 (kept | {"notification": KEPT_OBJECT | {"payload": {}, "outcome": "invalid"}}, 0, 0)]
        for told, sales, renewals in cases:
            found = book(("app.registered", APP), Redacted("notification.received", told))
            self.assertEqual(malformed(found), [])
            self.assertEqual(len(table("sales", found, "sale_key")), sales)
            known = found.subscriptions.known.values()
            self.assertEqual(sum(len(one.renewals) for one in known), renewals)

    def test_what_lies_inside_a_redacted_notification_no_longer_counts(self):
        payload = {"data": {"signedTransactionInfo": jws(PAYLOAD)}}
        kept = NOTIFIED | {"notification": KEPT_OBJECT | {"payload": payload}}
        found = book(("app.registered", APP), Redacted("notification.received", kept))
        self.assertEqual(table("sales", found, "sale_key") + exceptions(found), [])

    def test_what_is_kept_has_a_form_too(self):
        upload = kept_upload().kept
        cases = [("receipt.uploaded", upload, "receipt", {}), ("receipt.uploaded", upload, "receipt", 5),
                 ("receipt.uploaded", upload, "receipt", {"purchases": [5]}),
                 ("receipt.uploaded", upload, "receipt", {"environment": 5, "purchases": []}),
                 ("receipt.uploaded", upload, "receipt_id", None),
                 ("transactions.received", RECEIVED, "transactions", [without(KEPT_OBJECT, "payload")]),
                 ("notification.received", NOTIFIED, "transaction", {"outcome": "valid", "payload": 5}),
                 ("transactions.fetched", FETCHED, "renewals", [5])]
        for kind, kept, member, value in cases:
            found = book(("app.registered", APP), Redacted(kind, kept | {member: value}))
            self.assertEqual(malformed(found), [("1", f"{kind} {member}")], (member, value))

    def test_what_only_a_redacted_event_may_lack(self):
        cases = [("receipt.uploaded", without(UPLOAD, "receipt_sha256"), "receipt_sha256"),
                 ("receipt.uploaded", without(UPLOAD, "receipt"), "receipt"),
                 ("receipt.uploaded", UPLOAD | {"receipt": {"purchases": []}}, "receipt"),
                 ("transactions.received", RECEIVED | {"transactions": [KEPT_OBJECT]}, "transactions"),
                 ("notification.received", NOTIFIED | {"notification": KEPT_OBJECT}, "notification"),
                 ("transactions.fetched", FETCHED | {"transactions": [KEPT_OBJECT]}, "transactions")]
        for kind, data, member in cases:
            found = book(("app.registered", APP), (kind, data))
            self.assertEqual(malformed(found), [("1", f"{kind} {member}")])
            self.assertEqual(malformed(book(("app.registered", APP), Redacted(kind, data))), [], member)


class Erasures(unittest.TestCase):
    def test_the_events_of_an_erasure_change_nothing(self):
        empty = LIST | {"lines": []}
        found = book(("data.redacted", OPENING), ("data.redacted", LIST), ("data.redacted", empty))
        self.assertEqual(exceptions(found), [])

    def test_the_first_member_at_fault_is_named(self):
        lines = LIST["lines"]
        cases = [(OPENING, "request", "1"), (OPENING, "scope", "all"), (OPENING, "reason", "User"),
                 (OPENING, "reason", "a" * 33), (LIST, "erasure", -1), (LIST, "part", 0),
                 (LIST, "parts", "1"), (LIST, "reason", ""), (LIST, "lines", {}),
                 (LIST, "lines", lines[::-1]),
                 (LIST, "lines", [lines[0], lines[0]]), (LIST, "lines", [lines[0] | {"sha256": "ab"}])]
        for data, member, value in cases:
            found = book(("data.redacted", data | {member: value}))
            self.assertEqual(malformed(found), [("0", f"data.redacted {member}")], value)
        self.assertEqual(malformed(book(("data.redacted", {}))), [("0", "data.redacted request")])

    def test_an_erasures_event_is_of_every_catalogue(self):
        self.assertEqual([name for name, _, _ in CATALOGUE["data.redacted"]], list(OPENING))


class Claims(unittest.TestCase):
    """Once the first user was erased, a sale's user cannot be known any more."""

    CLAIMS = ("claimed_by_other_user", "transaction_replayed")

    def claims(self, *events):
        return sorted(detail for kind, detail in exceptions(book(*events)) if kind in self.CLAIMS)

    def test_the_first_upload_after_the_erasure_claims_the_sale(self):
        first = [("app.registered", CONSUMABLE), kept_upload(3), kept_reply(1, 3)]
        opening = ("data.redacted", OPENING)
        self.assertEqual(self.claims(*first, opening, uploaded("8"), verified(4)), [])
        # The first claimant holds the sale against the next, and is erased in turn.
        later = [uploaded("8"), verified(4), uploaded("7"), verified(6), uploaded("8"), verified(8)]
        self.assertEqual(self.claims(*first, opening, *later), ["7", "upload at 6"])
        later[0] = kept_upload(7)
        later[4] = uploaded("7")
        self.assertEqual(self.claims(*first, opening, *later), ["7", "upload at 6"])
        # Claims before the erasure stay, whenever they are looked up.
        first[1:] = [kept_upload(5), kept_reply(1, 5)]
        expected = ["8", "upload at 3"]
        self.assertEqual(self.claims(*first, uploaded("8"), verified(3), opening), expected)
        self.assertEqual(self.claims(*first, uploaded("8"), verified(3)), expected)
        # The upload's position decides, not its verification's.
        late = [uploaded("8"), ("app.registered", CONSUMABLE), opening, verified(3)]
        self.assertEqual(self.claims(*first, *late), expected)

    def test_a_forgotten_user_still_claims_the_sale_of_another(self):
        events = [("app.registered", CONSUMABLE), uploaded("8"), verified(1), kept_upload(9), kept_reply(3)]
        self.assertEqual(self.claims(*events), [name(9), "upload at 3"])

    def test_two_forgotten_users_are_two(self):
        events = [("app.registered", CONSUMABLE), kept_upload(8), kept_reply(1, 8), kept_upload(9),
                  kept_reply(3)]
        self.assertEqual(self.claims(*events), [name(9), "upload at 3"])
        events[3] = kept_upload(8)
        self.assertEqual(self.claims(*events), [])

    def test_a_returning_user_takes_the_subscription_over_and_what_is_sold_later(self):
        def signed(number, user=None, erased=None):
            payload = PAYLOAD | {"transactionId": str(number), "originalTransactionId": "1",
                                 "webOrderLineItemId": f"w{number}", "appAccountToken": TOKEN,
                                 "type": "Auto-Renewable Subscription",
                                 "expiresDate": PAYLOAD["purchaseDate"] + number}
            data = without(RECEIVED, "user_identifier") | {"transactions": [OBJECT | {"payload": payload}]}
            who = user if erased is None else name(erased)
            return "transactions.received", data if who is None else data | {"user_identifier": who}

        opening = ("data.redacted", {"request": UPLOAD["receipt_id"], "scope": "user",
                                     "reason": "user_request"})
        found = book(("app.registered", APP), signed(1, erased=2), opening, signed(2), signed(1, "u2"),
                     signed(3), signed(3, "u3"))
        users = table("sales", found, "sale_key", "user_identifier")
        self.assertEqual(users, [("w1", name(2)), ("w2", f"token:{TOKEN}"), ("w3", "u2")])
        self.assertEqual([one.user for one in found.subscriptions.known.values()], ["u2"])

    def test_names_of_the_forgotten(self):
        for user in ("(redacted 7)", "(redacted 7.2)", "token:(redacted 7)", "token:(redacted 7.12)"):
            self.assertTrue(is_forgotten(user, 8), user)
            self.assertFalse(is_forgotten(user, 7), user)
            self.assertFalse(is_forgotten(user, 6), user)
        for user in ("7", "(redacted)", "(redacted 07)", "(redacted 7.0)", "(redacted 7", "x(redacted 7)",
                     "(redacted 7)\n", "(redacted ٧)", "token:token:(redacted 7)"):
            self.assertFalse(is_forgotten(user, 10**17), user)


if __name__ == "__main__":
    unittest.main()
