# Checks of a log read event by event: what is malformed, and what it is called.
import json
import unittest

import reports
from log import LaterProgram, read_log
from support import exceptions, row, table

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


def book(*events):
    """The book of a log of (type, data), or (type, data, version)."""
    lines = []
    for position, (kind, data, *version) in enumerate(events):
        event = {"seq": position, "type": kind, "v": version[0] if version else 1, "data": data}
        lines.append(json.dumps(event).encode())
    return read_log(lines)


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

    def test_an_event_of_a_later_program_ends_the_reading(self):
        for event in [("app.removed", {}), ("app.registered", APP, 2)]:
            with self.assertRaises(LaterProgram):
                book(event)


if __name__ == "__main__":
    unittest.main()
