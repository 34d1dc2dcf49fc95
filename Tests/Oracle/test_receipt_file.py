# Tests of what is read from a receipt's file, and of the app of a reply without a bundle (rule R2).
import base64
import json
import unittest

from generate_cases import transaction_receipt
from receipt_file import (
    BUNDLE, INTEGER, LINE_ITEM, OCTETS, ORIGINAL, PURCHASE, SEQUENCE, SET, TEXT, TRANSACTION, read_receipt,
)
from support import book, line, ms, period, row, table


def element(tag, *contents):
    content = b"".join(contents)
    size = len(content)
    return bytes([tag]) + (bytes([size]) if size < 0x80 else b"\x82" + size.to_bytes(2)) + content


def integer(number):
    return element(INTEGER, number.to_bytes(number.bit_length() // 8 + 1))


def attribute(kind, value):
    return element(SEQUENCE, integer(kind), integer(1), element(OCTETS, value))


def unified(bundle_id, transaction, original, line_item):
    """The part of a unified receipt that is read: attributes inside signed data."""
    ids = [(TRANSACTION, element(TEXT, transaction.encode())), (ORIGINAL, element(TEXT, original.encode())),
           (LINE_ITEM, integer(line_item))]
    purchase = element(SET, *(attribute(*one) for one in ids))
    attributes = [attribute(BUNDLE, element(TEXT, bundle_id.encode())), attribute(PURCHASE, purchase)]
    content = element(0xA0, element(OCTETS, element(SET, *attributes)))
    signed = element(SEQUENCE, integer(1), element(SET), element(SEQUENCE, element(0x06, b"*"), content))
    return element(SEQUENCE, element(0x06, b"*"), element(0xA0, signed))


FORMS = (unified, transaction_receipt)


class Reading(unittest.TestCase):
    def test_both_forms(self):
        for form in FORMS:
            for line_item, expected in ((0, set()), (170_000_000_007, {"170000000007"})):
                found = read_receipt(form("app", "2", "1", line_item))
                self.assertEqual((found.bundle_id, found.transactions), ("app", {"1", "2"}))
                self.assertEqual(found.line_items, expected)

    def test_what_is_no_receipt(self):
        for form in FORMS:
            whole = form("app", "2", "1", 7)
            self.assertIsNone(read_receipt(form("", "2", "1", 7)))
            for count in (0, 1, 5, len(whole) // 2, len(whole) - 1 - (form is transaction_receipt)):
                found = read_receipt(whole[:count])
                self.assertTrue(found is None or form is transaction_receipt and count > 5, count)
        for data in (b"a receipt", b"\x30\x80\x06", bytes(40), b"{}"):
            self.assertIsNone(read_receipt(data))


class Bundle(unittest.TestCase):
    def bundles(self, receipt, *rows, **named):
        reply = {"receipt": {"in_app": list(rows), **named}}
        whole = line(reply=reply, upload={"receipt": base64.b64encode(receipt).decode()})
        return table("sales", book(whole), "bundle_id")

    def test_it_is_the_receipts_where_the_reply_shows_one_of_its_ids(self):
        for form in FORMS:
            receipt = form("file", "2", "1", 7)
            shown = (row(transaction="1"), row(transaction="2"), period("8", "9", "2"), period("7", "9", "9"))
            for one in shown:
                self.assertEqual(self.bundles(receipt, one), [("file",)])
                self.assertEqual(self.bundles(receipt, one, bundle_id="file"), [("file",)])
                self.assertEqual(self.bundles(receipt, one, bundle_id="named"), [])
            self.assertEqual(self.bundles(receipt, row(transaction="3")), [])
            self.assertEqual(self.bundles(receipt, row(transaction="7")), [])
            self.assertEqual(self.bundles(receipt, row(transaction="3"), bundle_id="file"), [])
        self.assertEqual(self.bundles(unified("file", "2", "1", 0), period("0", "9", "9")), [])
        self.assertEqual(self.bundles(b"a receipt", row()), [])

    def test_a_version_1_notification_names_it_or_its_receipt_does(self):
        receipt = base64.b64encode(unified("file", "1", "1", 0)).decode()
        unified_receipt = {"status": 0, "environment": "Production", "latest_receipt": receipt,
                           "latest_receipt_info": [row()]}
        for bid, expected in (("named", []), ("file", [("file",)]), (None, [("file",)])):
            body = {"notification_type": "CANCEL", "bid": bid, "unified_receipt": unified_receipt}
            told = json.dumps({"notification_v1": body, "occurred_at": ms("2026-01-05")})
            self.assertEqual(table("sales", book(told), "bundle_id"), expected)


if __name__ == "__main__":
    unittest.main()
