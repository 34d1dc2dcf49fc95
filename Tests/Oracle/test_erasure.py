# Checks that a comparison passes for a faithful erasure and fails for each kind of unfaithful one.
import argparse
import contextlib
import io
import json
import unittest

import compare
import erasure
import reports
from log import read_log
from revenue_oracle import add_report_arguments, report_options
from support import row
from test_log import APP, TIME, UPLOAD, VERIFIED, without

MATRIX = [
    "sales --environment all", "journal", "revenue --by country,product", "users --sort net --top 1",
    "exceptions --environment all", "exceptions --user 42", "sales --user 42 --sort sale_date",
    "sales --columns user_identifier,sale_key", "subscriptions",
]
IDS = ("11111111-2222-5333-8444-555555555555", "11111111-2222-5333-8444-666666666666")


def whole(position, kind, data):
    return {"seq": position, "type": kind, "v": 1, "at": TIME, "digest": "ab" * 32, "salt": "", "data": data}


def encoded(events):
    return [json.dumps(event, separators=(",", ":")).encode() for event in events]


def history():
    """Uploads of four users, of which "42" and "shares" upload one receipt; "42" has the most events."""
    events = [("app.registered", APP | {"products": {"coins": "consumable"}})]
    people = [("42", 0, 1), ("42", 0, 2), ("43", 1, 3), ("42", 0, 1), ("shares", 0, 1), (None, 1, 4),
              ("43", 1, 1), ("-44", 1, 5)]
    for user, receipt, transaction in people:
        upload = without(UPLOAD, "receipt") | {"receipt_id": IDS[receipt]}
        if user is not None:
            upload["user_identifier"] = user
        price = {"transaction_id": str(transaction), "price": "9.99", "currency": "EUR"}
        upload |= {"metadata": {"prices": [price], "name": "A. Person"}, "receipt": "cg=="}
        shown = row(transaction=str(transaction))
        reply = {"status": 0, "receipt": {"bundle_id": "app", "in_app": [shown]}}
        events += [("receipt.uploaded", upload),
                   ("receipt.verified", VERIFIED | {"upload": len(events), "reply": reply})]
    return [whole(position, *event) for position, event in enumerate(events)]


class Ledger:
    """Stands in for a ledger of ledgerctl's: erases users of a log as a program with a fault would."""

    directory = "ledger"

    def __init__(self, fault=""):
        self.events, self.fault, self.commands = history(), fault, []

    def lines(self):
        return encoded(self.events)

    def export(self, arguments):
        parser = argparse.ArgumentParser()
        add_report_arguments(parser)
        parser.add_argument("--as-of", type=int)
        options = parser.parse_args(arguments[1:])
        end = len(self.events) if options.as_of is None else options.as_of + 1
        book = read_log(self.lines()[:end])
        text = reports.csv_text(*reports.report(arguments[0], book, report_options(options)))
        if self.fault == "a cell" and self.commands:
            text = text.replace(",DE,", ",FR,")
        return text.encode(), None

    def run(self, *arguments):
        self.commands.append(arguments)
        parser = argparse.ArgumentParser()
        for name in ("--user", "--reason", "--ledger"):
            parser.add_argument(name, required=True)
        parser.add_argument("--yes", action="store_true", required=True)
        user = parser.parse_args(arguments[1:]).user
        by = len(self.events)
        name = "(redacted 99)" if self.fault == "one name" else f"(redacted {by})"
        positions = [event["seq"] for event in self.events
                     if (event["data"] or {}).get("user_identifier") == user]
        if self.fault == "one upload":
            positions = positions[:1]
        for position in positions:
            event = self.events[position]
            data = event["data"]
            kept = without(without(data, "receipt"), "receipt_sha256")
            kept |= {"user_identifier": name, "metadata": {"prices": data["metadata"]["prices"]}}
            if self.fault == "a price":
                kept["metadata"] = {}
            event |= {"salt": None, "data": None, "redacted": {"by": by, "salt": "", "kept": kept}}
            if self.fault == "a header":
                event["at"] = "2026-01-03T00:00:00.001Z"
        opening = {"request": IDS[0], "scope": "user", "reason": "user_request"}
        self.events.append(whole(by, "data.redacted", opening))


class Comparisons(unittest.TestCase):
    def verdict(self, fault, count=2, matrix=MATRIX):
        """(passed, failed, output) of a comparison with a ledger of that fault."""
        comparison, ledger, shown = compare.Comparison(count), Ledger(fault), io.StringIO()
        with contextlib.redirect_stdout(shown):
            comparison.erase(ledger, matrix)
        self.commands = ledger.commands
        return comparison.passed, comparison.failed, shown.getvalue()

    def test_a_faithful_erasure_passes(self):
        passed, failed, shown = self.verdict("")
        self.assertEqual(failed, 0, shown)
        self.assertGreater(passed, 4 * len(MATRIX))
        self.assertIn("2 users erased", shown)
        self.assertEqual([command[2] for command in self.commands], ["42", "43"])

    def test_a_user_that_looks_like_an_option(self):
        passed, failed, shown = self.verdict("", count=4)
        self.assertEqual(failed, 0, shown)
        self.assertIn("--user=-44", [command[1] for command in self.commands])

    def test_nothing_is_erased_unless_it_is_asked_for(self):
        self.assertEqual(self.verdict("", count=0), (0, 0, ""))

    def test_each_fault_is_found(self):
        for fault, told in (("one upload", "DIFFERS: no event names an erased user"),
                            ("one upload", "DIFFERS: user 1 in the log"),
                            ("a header", "DIFFERS: the events are the same"),
                            ("a price", "DIFFERS: journal as of"),
                            ("a price", "DIFFERS: journal, before and after"),
                            ("a cell", "DIFFERS: export sales --environment all\n"),
                            ("a cell", "DIFFERS: export sales --environment all --as-of"),
                            ("one name", "DIFFERS: exceptions --environment all, before and after")):
            _, failed, shown = self.verdict(fault)
            self.assertGreater(failed, 0)
            self.assertIn(told, shown, fault)


class Parts(unittest.TestCase):
    def test_users_with_the_most_events_and_one_who_shares_a_receipt(self):
        lines = encoded(history())
        self.assertEqual(erasure.chosen(lines, 1), ["42"])
        self.assertEqual(erasure.chosen(lines, 9), ["42", "43", "-44", "shares"])
        # Without "42", who shares a receipt with "shares".
        events = [event for event in history() if event["data"].get("user_identifier") != "42"]
        for event in events:
            if event["data"].get("user_identifier") == "-44":
                event["data"]["receipt_id"] = IDS[0]
        self.assertEqual(erasure.chosen(encoded(events), 2), ["43", "-44"])
        self.assertEqual(erasure.chosen(encoded(history()[:1]), 2), [])

    def test_a_report_without_what_orders_and_cuts_it(self):
        self.assertEqual(erasure.comparable("users --sort net:asc --in EUR --top 9"), "users --in EUR")

    def test_a_report_about_a_user_follows_the_name(self):
        names = {"42": "(redacted 9)", "7": None}
        line = "sales --user '(redacted 9)' --top 1"
        self.assertEqual(erasure.about("sales --user 42 --top 1", names), line)
        for line in ("sales --user 7", "sales --user 8", "sales"):
            self.assertIsNone(erasure.about(line, names))

    def test_only_what_names_people_may_differ(self):
        before = b"user_identifier,net,detail\n42,1,a\n43,2,b\n"
        cases = [(b"user_identifier,net,detail\nx,2,c\ny,1,d\n", []),
                 (b"user_identifier,net,detail\nx,2,c\ny,3,d\n", ["+3", "-1"]),
                 (b"user_identifier,net,detail\nx,2,c\n", ["-1"]),
                 (b"user_identifier,gross,detail\n", ["columns ('net',) before, ('gross',) after"])]
        for after, expected in cases:
            self.assertEqual(erasure.difference((before, None), (after, None)), expected)
        tokens = [b"user_identifier,sales,net\ntoken:a,3,1.50 EUR 2 USD\n8,1,1 EUR\n",
                  b"user_identifier,sales,net\ntoken:a,2,1.00 EUR\ntoken:b,1,0.50 EUR 2 USD\n8,1,1 EUR\n"]
        self.assertEqual(erasure.difference(*((data, None) for data in tokens), "users"), [])
        self.assertNotEqual(erasure.difference(*((data, None) for data in tokens)), [])
        other = tokens[1].replace(b"0.50", b"0.51")
        self.assertEqual(erasure.difference((tokens[0], None), (other, None), "users"),
                         ["+all,EUR,2.51", "-all,EUR,2.5"])
        reasons = [b"reason\n1\n=7\n", b"reason\n1\n?\n", b"reason\n?\n?\n"]
        self.assertEqual(erasure.difference((reasons[0], None), (reasons[1], None)), [])
        self.assertEqual(erasure.difference((reasons[0], None), (reasons[2], None)), ["+?", "-1"])
        failed = (None, "exit status 1: an amount")
        self.assertEqual(erasure.difference(failed, failed), [])
        self.assertEqual(len(erasure.difference(failed, (before, None))), 1)


if __name__ == "__main__":
    unittest.main()
