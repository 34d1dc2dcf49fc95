# Tests of a log read event by event: what is malformed, and the exception for it.
import base64
import json
import unittest

import generate_fetched
import reports
from generate_cases import transaction_receipt
from log import LaterProgram, read_log
from support import HEADER, exceptions, jws, row, signed, table

TIME = "2026-01-03T00:00:00.000Z"
FAMILY = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
APP = {"app_family_id": FAMILY, "name": "App", "bundle_ids": ["app"], "products": {}}
UPLOAD = {
    "receipt_id": "11111111-2222-5333-8444-555555555555",
    "app_family_id": FAMILY,
    "style": "unified",
    "bundle_id": "app",
    "receipt_sha256": "00",
    "occurred_at": TIME,
    "via": "http",
    "country_code": "DE",
    "receipt": "cg==",
}
VERIFIED = {
    "upload": 0,
    "authority": "app_store",
    "outcome": "valid",
    "status": 0,
    "attempt": 1,
    "endpoint": "production",
    "occurred_at": TIME,
    "reply": {"status": 0, "receipt": {"bundle_id": "app", "in_app": [row()]}},
}

PAYLOAD = signed(at="2026-01-02", price=9990, currency="EUR", storefront="DEU")
OBJECT = {
    "outcome": "valid",
    "root_sha256": "ab" * 32,
    "signed_at": TIME,
    "payload": PAYLOAD,
    "signature": "AA",
    "header": HEADER,
}
RECEIVED = {
    "upload_id": UPLOAD["receipt_id"],
    "app_family_id": FAMILY,
    "occurred_at": TIME,
    "via": "http",
    "country_code": "FR",
    "user_identifier": "42",
    "outcome": "valid",
    "transactions": [OBJECT],
}
NOTIFIED = {
    "notification_uuid": "n",
    "app_family_id": FAMILY,
    "bundle_id": "app",
    "environment": "Production",
    "occurred_at": TIME,
    "via": "http",
    "type": "REFUND",
    "transaction": {"outcome": "valid", "root_sha256": "ab" * 32, "signed_at": TIME},
    "notification": {**OBJECT, "payload": {"data": {"signedTransactionInfo": jws(PAYLOAD)}}},
}
FETCHED = {
    "app_family_id": FAMILY,
    "bundle_id": "app",
    "environment": "Production",
    "occurred_at": TIME,
    "call": "history",
    "host": "api.storekit.apple.com",
    "transaction_id": "1",
    "revision": "r",
    "has_more": False,
    "transactions": [OBJECT],
    "renewals": [],
}


def lines(*events):
    """A log of (type, data), or (type, data, version)."""
    lines = []
    for position, (kind, data, *version) in enumerate(events):
        event = {"seq": position, "type": kind, "v": version[0] if version else 1, "at": TIME, "data": data}
        lines.append(json.dumps(event).encode())
    return lines


def book(*events):
    """The book of such a log."""
    return read_log(lines(*events))


def without(data, name):
    return {key: value for key, value in data.items() if key != name}


def malformed(a_book):
    shown = table("exceptions", a_book, "exception", "position", "detail")
    return [row[1:] for row in shown if row[0] == "malformed_event"]


class Log(unittest.TestCase):
    def test_good_events_give_the_sales_that_they_show(self):
        found = book(("receipt.uploaded", UPLOAD), ("receipt.verified", VERIFIED))
        self.assertEqual(table("sales", found, "sale_key", "country_code"), [("1", "DE")])
        self.assertEqual(exceptions(found), [("unpriced", "no_price")])

    def test_an_upload_in_version_2_has_facts_in_place_of_its_receipt(self):
        facts = {"environment": "Production", "purchases": [{"transaction_id": "1"}]}
        reduced = without(UPLOAD, "receipt") | {"receipt": facts}
        forged = without(without(VERIFIED, "reply"), "status") | {"authority": "local", "outcome": "invalid"}
        found = book(("receipt.uploaded", reduced, 2), ("receipt.verified", forged))
        self.assertEqual((table("sales", found, "sale_key"), malformed(found)), ([], []))
        for data, version in ((reduced, 1), (UPLOAD, 2), (without(UPLOAD, "receipt"), 2)):
            found = book(("receipt.uploaded", data, version))
            self.assertEqual(malformed(found), [("0", "receipt.uploaded receipt")])

    def test_the_first_member_at_fault_is_named(self):
        cases = [
            ("app.registered", {}, "app_family_id"),
            ("app.registered", {**APP, "bundle_ids": [1]}, "bundle_ids"),
            ("app.registered", {**APP, "products": {"a": "toy"}, "name": None}, "name"),
            ("receipt.uploaded", without(UPLOAD, "receipt"), "receipt"),
            ("receipt.uploaded", {**UPLOAD, "occurred_at": "2026-01-03"}, "occurred_at"),
            ("receipt.uploaded", {**UPLOAD, "more": 1}, "receipt"),
            ("receipt.verified", {**VERIFIED, "upload": -1}, "upload"),
            ("receipt.verified", {**VERIFIED, "upload": 1}, "upload"),
            ("receipt.verified", {**VERIFIED, "status": "0"}, "status"),
            ("receipt.verified", {**without(VERIFIED, "reply"), "reply_of": 1}, "reply_of"),
            ("prices.declared", {"source": "a", "source_sha256": "", "entries": [{}]}, "entries"),
            ("rates.declared", {"source": "a", "source_sha256": ""}, "days"),
        ]
        for kind, data, member in cases:
            found = book(("receipt.uploaded", UPLOAD), (kind, data))
            self.assertEqual(malformed(found), [("1", f"{kind} {member}")], (kind, member))
            self.assertEqual(table("sales", found, "sale_key"), [])

    def test_an_event_that_was_passed_over_is_named_in_vain(self):
        found = book(("receipt.uploaded", {}), ("receipt.verified", VERIFIED))
        names = [("0", "receipt.uploaded receipt_id"), ("1", "receipt.verified upload")]
        self.assertEqual(malformed(found), names)

    def test_two_alike_are_told_once(self):
        found = book(("app.registered", {}), ("app.registered", {}))
        self.assertEqual(malformed(found), [("0", "app.registered app_family_id")])

    def test_it_is_never_left_out(self):
        found = book(("app.registered", {}))
        options = reports.Options(environments=("Sandbox",), from_day=0, to_day=1)
        _, body = reports.REPORTS["exceptions"](found, options)
        self.assertEqual(len(list(body)), 1)

    def test_every_event_of_signed_transactions_give_sales(self):
        columns = ("sale_key", "country_code", "user_identifier", "price_basis")
        for event, user in ((("transactions.received", RECEIVED), "42"),
                            (("notification.received", NOTIFIED), ""),
                            (("notification.received", {**NOTIFIED, "via": "fetch"}), ""),
                            (("transactions.fetched", FETCHED), "")):
            found = book(("app.registered", APP), event)
            self.assertEqual(table("sales", found, *columns), [("1", "DE", user, "signed_transaction")])
            by_trust = table("revenue", found, "trust", "net", by=("trust",))
            self.assertEqual(by_trust, [("configured", "9.99")])

    def test_an_object_without_environment_has_that_of_what_brought_it(self):
        payload = without(PAYLOAD, "environment")
        nameless = {"transactions": [{**OBJECT, "payload": payload}]}
        told = {"data": {"signedTransactionInfo": jws(payload)}}
        for word in ("Production", "Sandbox"):
            for event in (("notification.received", {**NOTIFIED, "environment": word,
                                                     "notification": {**OBJECT, "payload": told}}),
                          ("transactions.fetched", {**FETCHED, "environment": word, **nameless})):
                found = book(("app.registered", APP), event)
                self.assertEqual(table("sales", found, "environment", environments=None), [(word,)])
        found = book(("app.registered", APP), ("transactions.received", {**RECEIVED, **nameless}))
        self.assertEqual(table("sales", found, "sale_key", environments=None), [])

    def test_a_reply_without_bundle_is_of_the_receipts_app_if_it_shows_its_ids(self):
        shown = {"status": 0, "receipt": {"in_app": [row(transaction="2", original_transaction_id="1")]}}
        verified = VERIFIED | {"reply": shown}
        for original, expected in (("1", "app"), ("3", "")):
            whole = base64.b64encode(transaction_receipt("app", "9", original, "0")).decode()
            facts = {"purchases": [{"transaction_id": "9", "original_transaction_id": original}]}
            for receipt, version in ((whole, 1), (facts, 2)):
                upload = without(UPLOAD, "receipt") | {"receipt": receipt}
                found = book(("receipt.uploaded", upload, version), ("receipt.verified", verified))
                self.assertEqual(table("sales", found, "bundle_id"), [(expected,)])

    def test_what_does_not_count(self):
        def listed(**changes):
            return {**RECEIVED, "transactions": [{**OBJECT, **changes}]}

        refused = {**RECEIVED, "outcome": "invalid", "fraud_reason": "signature_invalid"}
        forged = {**FETCHED, "transactions": [{**OBJECT, "outcome": "invalid"}]}
        cases = [("transactions.received", refused),
                 ("transactions.received", listed(outcome="invalid")),
                 ("notification.received", without(NOTIFIED, "transaction")),
                 ("notification.received", {**NOTIFIED, "transaction": {"outcome": "invalid"}}),
                 ("notification.received", {**NOTIFIED, "notification": {**OBJECT, "payload": {}}})]
        for fields in ({"bundleId": "other"}, {"environment": "Xcode"}, {"signedDate": None}):
            cases.append(("transactions.received", listed(payload={**PAYLOAD, **fields})))
        for event in cases:
            found = book(("app.registered", APP), event)
            self.assertEqual(table("sales", found, "sale_key") + exceptions(found), [], event)
        found = book(("app.registered", APP), ("transactions.fetched", forged))
        self.assertEqual(table("sales", found, "sale_key"), [])
        self.assertEqual(exceptions(found), [("signature_refused", "none at 1, transactions[0]")])
        # The app was registered too late; the other objects of a list count.
        found = book(("transactions.received", RECEIVED), ("app.registered", APP))
        self.assertEqual(table("sales", found, "sale_key"), [])
        two = {**RECEIVED, "transactions": [{**OBJECT, "outcome": "invalid"}, OBJECT]}
        found = book(("app.registered", APP), ("transactions.received", two))
        self.assertEqual(table("sales", found, "sale_key"), [("1",)])

    def test_a_signed_object_at_fault(self):
        cases = [("transactions.received", RECEIVED, "transactions", []),
                 ("transactions.received", RECEIVED, "transactions", [OBJECT, 5]),
                 ("transactions.received", RECEIVED, "transactions", [without(OBJECT, "signature")]),
                 ("transactions.received", RECEIVED, "transactions", [{**OBJECT, "signed_at": 5}]),
                 ("transactions.received", RECEIVED, "transactions", [{**OBJECT, "root_sha256": "ab"}]),
                 ("transactions.received", RECEIVED, "app_transaction", {}),
                 ("transactions.received", RECEIVED, "fraud_reason", 5),
                 ("transactions.received", RECEIVED, "via", "fetch"),
                 ("transactions.fetched", FETCHED, "call", "prices"),
                 ("transactions.fetched", FETCHED, "environment", "Xcode"),
                 ("transactions.fetched", FETCHED, "host", ""),
                 ("transactions.fetched", FETCHED, "has_more", "false"),
                 ("transactions.fetched", FETCHED, "transactions", [OBJECT] * 1001),
                 ("transactions.fetched", FETCHED, "renewals", [5]),
                 ("notification.received", NOTIFIED, "transaction", {"outcome": "good"}),
                 ("notification.received", NOTIFIED, "notification", without(OBJECT, "header")),
                 ("notification.received", NOTIFIED, "type", None)]
        for kind, data, member, value in cases:
            found = book(("app.registered", APP), (kind, {**data, member: value}))
            self.assertEqual(malformed(found), [("1", f"{kind} {member}")], (member, value))
            self.assertEqual(table("sales", found, "sale_key"), [])

    def test_the_app_stores_number_of_an_app_is_an_integer_from_1(self):
        for number, is_right in ((1, True), (2**63 - 1, True), (0, False), (2**63, False), ("1", False),
                                 (1.5, False), (True, False)):
            found = exceptions(book(("app.registered", APP | {"app_apple_id": number})))
            expected = [] if is_right else [("malformed_event", "app.registered app_apple_id")]
            self.assertEqual(found, expected, number)

    def test_pages_made_of_a_log_are_well_formed_and_count(self):
        info = {"originalTransactionId": "1", "signedDate": PAYLOAD["signedDate"], "autoRenewStatus": 1}
        payload = {"data": {"signedTransactionInfo": jws(PAYLOAD), "signedRenewalInfo": jws(info)}}
        notified = NOTIFIED | {"renewal": NOTIFIED["transaction"],
                               "notification": OBJECT | {"payload": payload}}
        log = [("app.registered", APP), ("transactions.received", RECEIVED),
               ("notification.received", notified)]
        written = generate_fetched.events(lines(*log), 1)
        self.assertEqual(
            {kind for kind, _ in written},
            {"transactions.fetched", "notification.received", "signatures.accepted"})
        found = book(*log, *((kind, json.loads(data)) for kind, data in written))
        faults = {detail.split()[0] for name, detail in exceptions(found) if name == "malformed_event"}
        self.assertLessEqual(faults, {"signatures.accepted"})
        known = next(iter(found.subscriptions.known.values()))
        self.assertGreater(len(known.renewals), 5)

    def test_what_was_refused_for_time_or_trust_counts_from_where_it_is_accepted(self):
        accepted = {"page": 1, "occurred_at": NOTIFIED["occurred_at"], "renewals": [],
                    "transactions": [{"index": 0, "outcome": "valid", "root_sha256": "ab" * 32}]}
        for reason, counts in (("untrusted_root", True), ("signed_in_future", True),
                               ("certificate_expired", True), ("certificate_not_yet_valid", True),
                               ("wrong_signature", False), ("broken_chain", False)):
            page = {**FETCHED, "transactions": [{**OBJECT, "outcome": "invalid", "reason": reason}]}
            log = [("app.registered", APP), ("transactions.fetched", page),
                   ("signatures.accepted", accepted)]
            found = book(*log)
            self.assertEqual(table("sales", found, "sale_key", "first_position"),
                             [("1", "2")] if counts else [], reason)
            refusal = ("signature_refused", f"{reason} at 1, transactions[0]")
            fault = [] if counts else [("malformed_event", "signatures.accepted page")]
            self.assertEqual(exceptions(found), [refusal] + fault)

    def test_a_list_that_is_withdrawn_prices_nothing(self):
        def listed(price):
            entry = {"product_id": "coins", "currency": "EUR", "price": price, "effective_from": "2026-01-01"}
            return "prices.declared", {"source": "a", "source_sha256": "", "entries": [entry]}

        shown = [("receipt.uploaded", UPLOAD), ("receipt.verified", VERIFIED), listed("1.00"), listed("2.00")]
        for positions, expected in (((), "2.00"), ((3,), "1.00"), ((3, 3), "1.00"), ((2, 3), None)):
            events = [("prices.withdrawn", {"position": position}) for position in positions]
            found = book(*shown, *events)
            self.assertEqual(table("sales", found, "unit_price"), [(expected or "",)], positions)
            self.assertEqual(malformed(found), [])
        for kind, position in (("prices.withdrawn", 1), ("prices.withdrawn", 9), ("rates.withdrawn", 3)):
            found = book(*shown, (kind, {"position": position}))
            self.assertEqual(table("sales", found, "unit_price"), [("2.00",)])
            self.assertEqual(malformed(found), [("4", f"{kind} position")])

    def test_an_event_of_a_later_program_ends_the_reading(self):
        for event in [("app.removed", {}), ("app.registered", APP, 2)]:
            with self.assertRaises(LaterProgram):
                book(event)


if __name__ == "__main__":
    unittest.main()
