# Redacted lines and their erasures: a line that an erasure lists holds, and anything else is
# refused.
import base64
import contextlib
import hashlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import redactions
import signed_objects
import verify

AT = "2026-01-02T03:04:05.679Z"
REQUEST = "00112233-4455-4677-8899-aabbccddeeff"
DATA = '{"name":"Tide","user_identifier":"42"}'
KEPT = '{"name":"Tide","user_identifier":"(redacted 2)"}'
OPENING = {"request": REQUEST, "scope": "user", "reason": "user_request"}
ZERO = base64.b64encode(bytes(16)).decode()
OBJECT = '{"outcome":"valid","payload":{}}'


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def salt_of(position):
    return hashlib.sha256(b"salt %d" % position).digest()[:16]


def header_of(position, kind, data):
    digest = hashlib.sha256(salt_of(position) + data.encode()).hexdigest()
    return f'{{"seq":{position},"type":"{kind}","v":1,"at":"{AT}","digest":"{digest}"'


def new_salt(salt, times=1):
    for _ in range(times):
        salt = hashlib.sha256(b"redact" + salt).digest()[:16]
    return salt


class Log:
    """A log that is made event by event, and redacted."""

    def __init__(self, *events):
        """`events`: data, or (type, data)."""
        self.events, self.redacted = [], {}
        for event in events:
            self.append(*(event if isinstance(event, tuple) else ("app.registered", event)))

    def append(self, kind, data):
        self.events.append((kind, data if isinstance(data, str) else compact(data)))
        return len(self.events) - 1

    def redact(self, position, by, kept=KEPT, times=1):
        """Removes an event's data; returns the list's entry for it."""
        salt = new_salt(salt_of(position), times)
        self.redacted[position] = (by, salt, kept)
        return {"position": position, "sha256": hashlib.sha256(salt + kept.encode()).hexdigest()}

    def open(self, **changes):
        return self.append("data.redacted", OPENING | changes)

    def list(self, by, *lines, part=1, parts=1):
        data = {"erasure": by, "part": part, "parts": parts, "reason": "user_request", "lines": lines}
        return self.append("data.redacted", data)

    def lines(self):
        for position, (kind, data) in enumerate(self.events):
            header = header_of(position, kind, data)
            salt = base64.b64encode(salt_of(position)).decode()
            text = f'{header},"salt":"{salt}","data":{data}}}\n'
            if position in self.redacted:
                by, salt, kept = self.redacted[position]
                salt = base64.b64encode(salt).decode()
                text = (f'{header},"salt":null,"data":null,"redacted":'
                        f'{{"by":{by},"salt":"{salt}","kept":{kept}}}}}\n')
            yield text.encode()

    def check(self, trust=None):
        return verify.check_log(self.lines(), None, trust)


def redacted_log():
    """Events 0 and 1, and an erasure at 2 that redacted event 1."""
    log = Log(DATA, DATA)
    by = log.open()
    log.list(by, log.redact(1, by))
    return log


class RedactionTests(unittest.TestCase):
    def refused(self, log, why):
        with self.assertRaisesRegex(verify.Refused, why):
            log.check()

    def test_a_redacted_line_leaves_the_root_as_it_was(self):
        log = redacted_log()
        found = log.check()
        self.assertEqual((found.size, found.redacted, found.unredacted), (4, 1, []))
        log.redacted.clear()
        self.assertEqual(log.check().root, found.root)

    def test_a_line_that_is_redacted_twice_is_the_later_erasures(self):
        log = redacted_log()
        earlier = dict(log.redacted)
        again = log.open()
        log.list(again, log.redact(1, again, '{"name":"Tide"}', times=2))
        self.assertEqual(log.check().unredacted, [])
        # The earlier line holds more than the later erasure left.
        log.redacted = earlier
        self.assertEqual(log.check().unredacted, [(1, again)])

    def test_what_an_earlier_erasure_listed_no_longer_counts(self):
        log = redacted_log()
        again = log.open()
        log.list(again, log.redact(1, again, '{"name":"Tide"}', times=2))
        by, salt, _ = log.redacted[1]
        log.redacted[1] = (by, new_salt(salt_of(1)), KEPT)
        self.refused(log, f"position 1: the erasure at {again} does not list")

    def test_another_kept_or_salt_than_listed_is_refused(self):
        log = redacted_log()
        by, salt, kept = log.redacted[1]
        for forged in ((by, salt, kept.replace("Tide", "Ebb")), (by, bytes(16), kept)):
            log.redacted[1] = forged
            self.refused(log, "position 1: the erasure at 2 does not list what the line holds")

    def test_a_line_without_a_list_is_refused(self):
        log = Log(DATA, DATA)
        by = log.open()
        log.redact(1, by)
        self.refused(log, "position 1: the erasure at 2 does not list")
        # The first such line is named, and a list of other lines does not help.
        log.redact(0, by)
        log.list(by, {"position": 1, "sha256": log.redact(1, by)["sha256"]})
        self.refused(log, "position 0: the erasure at 2 does not list")

    def test_several_lists_make_up_an_erasure(self):
        log = Log(DATA, DATA, DATA)
        by = log.open()
        lines = [log.redact(position, by) for position in range(3)]
        log.list(by, *lines[:2], parts=2)
        self.refused(log, "position 2: ")
        log.list(by, *lines[2:], part=2, parts=2)
        self.assertEqual(log.check().redacted, 3)

    def test_a_line_of_another_erasure_is_refused(self):
        log = Log(DATA, DATA)
        first, second = log.open(), log.open()
        line = log.redact(1, first)
        log.list(second, line)
        self.refused(log, "position 1: the erasure at 2 does not list")

    def test_a_line_by_an_event_that_opens_no_erasure_is_refused(self):
        for kind, data in (("app.registered", DATA), ("data.redacted", OPENING | {"scope": "all"}),
                           ("data.redacted", OPENING | {"reason": "User"}),
                           ("data.redacted", OPENING | {"request": "1"})):
            log = Log(DATA, DATA, (kind, data))
            log.list(2, log.redact(1, 2))
            self.refused(log, "position 1: 2, which redacted the line, opens no erasure")
        # Nor does a list open one.
        log = redacted_log()
        log.list(3, log.redact(1, 3))
        self.refused(log, "position 1: 3, which redacted the line, opens no erasure")

    def test_a_line_by_an_earlier_event_or_itself_is_refused(self):
        for by in (0, 1):
            log = redacted_log()
            log.redact(1, by)
            self.refused(log, "position 1: the line was redacted by an earlier event")

    def test_a_log_that_ends_before_the_erasure_is_refused(self):
        log = redacted_log()
        del log.events[2:]
        self.refused(log, "position 1: the log ends before 2")

    def test_a_malformed_list_lists_nothing(self):
        wrong = [{"part": 2}, {"part": 0}, {"reason": "a b"}, {"reason": None}, {"lines": [5]}, {"lines": {}},
                 {"lines": [{"position": 1, "sha256": "ab"}]}, {"more": 1}, {"erasure": "2"}]
        for changes in wrong:
            log = redacted_log()
            log.events[3] = ("data.redacted", compact(json.loads(log.events[3][1]) | changes))
            self.refused(log, "position 1: the erasure at 2 does not list")
        log = redacted_log()
        lines = json.loads(log.events[3][1])["lines"]
        # Out of order, and a line that is not before the erasure.
        for more in ([{"position": 0, "sha256": "ab" * 32}], [{"position": 2, "sha256": "ab" * 32}]):
            other = redacted_log()
            other.events.pop()
            other.list(2, *lines, *more)
            self.refused(other, "position 1: the erasure at 2 does not list")
        # A duplicate member is refused.
        log.events[3] = ("data.redacted", log.events[3][1].replace('"part":1', '"part":1,"part":1'))
        self.refused(log, "position 1: ")

    def test_a_line_that_holds_what_an_erasure_took_out_is_told(self):
        log = redacted_log()
        log.list(2, {"position": 0, "sha256": "ab" * 32})
        found = log.check()
        self.assertEqual((found.redacted, found.unredacted), (1, [(0, 2)]))
        self.assertIn("1 still hold data that an erasure took out", verify.told_log(found, False))
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            verify.warn(found)
            verify.warn(found._replace(unredacted=[(place, 2) for place in range(12)]))
        self.assertEqual(
            shown.getvalue().splitlines()[0],
            "warning: position 0 still holds data that the erasure at 2 took out")
        self.assertEqual(len(shown.getvalue().splitlines()), 1 + verify.NAMED_MAX + 1)

    def test_other_forms_of_a_redacted_line_are_no_events(self):
        good = list(redacted_log().lines())
        self.assertEqual(verify.check_log(good, None).size, 4)
        for old, new in ((b'"data":null', b'"data":{}'), (b'"salt":null', b'"salt":""'),
                         (b'"by":2', b'"by":02'), (b'"by":2', b'"by":"2"'), (b',"salt":null', b''),
                         (b'}}}', b'}}'), (b'}}}', b'}}}}'), (b'"data":null,', b'"data":null, '),
                         (b'"kept":{', b'"kept":[{')):
            self.assertIn(old, good[1])
            altered = [good[0], good[1].replace(old, new), *good[2:]]
            with self.assertRaisesRegex(verify.Refused, "position 1: "):
                verify.check_log(altered, None)

    def test_data_that_looks_like_a_redacted_line_is_data(self):
        inner = '"redacted":{"by":2,"salt":"' + ZERO + '","kept":{}}'
        log = Log('{"salt":null,"data":null,' + inner + '}', compact({"a": '","salt":null,' + inner}))
        self.assertEqual((log.check().size, log.check().redacted), (2, 0))


class SignedObjectTests(unittest.TestCase):
    """Objects without a signature cannot be judged: they are counted."""

    def count(self, kind, kept):
        log = Log((kind, DATA))
        by = log.open()
        log.list(by, log.redact(0, by, kept))
        found = log.check(signed_objects.Trust())
        return found, found.objects

    def test_objects_without_signature_are_skipped_and_counted(self):
        received = f'{{"transactions":[{OBJECT},{OBJECT}],"app_transaction":{OBJECT}}}'
        cases = [
            ("transactions.received", received, 3),
            ("notification.received", f'{{"transaction":{OBJECT},"notification":{OBJECT}}}', 2),
            ("notification.received", f'{{"notification":{OBJECT}}}', 1),
            ("transactions.fetched", f'{{"transactions":[{OBJECT}],"renewals":[{OBJECT}]}}', 2),
            ("receipt.uploaded", "{}", 0)]
        for kind, kept, count in cases:
            found, objects = self.count(kind, kept)
            self.assertEqual(objects, (0, count), kind)
            told = verify.told_log(found, True)
            self.assertEqual(f"{count} redacted ones skipped" in told, count > 0)

    def test_an_object_that_was_not_redacted_is_judged(self):
        forged = '{"outcome":"valid","payload":{},"signature":"AA","header":{}}'
        listed = f'{{"transactions":[{OBJECT},{forged}],"renewals":[]}}'
        for kept in (listed, '{"transactions":[5]}', "{}"):
            with self.assertRaisesRegex(verify.Refused, "position 0: "):
                self.count("transactions.fetched", kept)


class CommandTests(unittest.TestCase):
    def run_verifier(self, *arguments, data=b""):
        """(exit status, standard output, standard error)."""
        streams = io.StringIO(), io.StringIO()
        source = mock.Mock(buffer=io.BytesIO(data))
        with (mock.patch.object(sys, "argv", ["verify.py", *arguments]),
              mock.patch.object(sys, "stdin", source),
              contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1])):
            try:
                verify.main()
                status = 0
            except SystemExit as end:
                status = end.code
        return status, *(stream.getvalue() for stream in streams)

    def test_a_redacted_log_is_told(self):
        status, told, errors = self.run_verifier("log", data=b"".join(redacted_log().lines()))
        self.assertEqual((status, errors), (0, ""))
        self.assertRegex(told, r"^4 events, root .*, 1 redacted\n$")

    def test_a_forged_log_is_refused(self):
        log = redacted_log()
        log.redact(1, 2, "{}")
        status, told, errors = self.run_verifier("log", data=b"".join(log.lines()))
        self.assertEqual((status, told), (20, ""))
        self.assertEqual(errors, "refused: position 1: the erasure at 2 does not list what the line holds\n")

    def test_a_redacted_event_is_the_one_that_was_proven(self):
        lines = list(redacted_log().lines())
        record = verify.check_line(lines[1].rstrip(b"\n"), 1).record
        proven = (record, mock.Mock(origin=b"example.com/redacted"))
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(verify, "check_proof", return_value=proven), \
                mock.patch.object(verify, "Key"):
            path = Path(folder, "event")
            command = ("proof", str(path), "--key", "a key", "--event", str(path))
            path.write_bytes(lines[1])
            status, told, _ = self.run_verifier(*command)
            self.assertEqual(status, 0)
            self.assertIn("redacted by the erasure at 2: check what is kept with the log", told)
            path.write_bytes(lines[1].replace(b'"digest":"', b'"digest":"0')[:-1])
            self.assertEqual(self.run_verifier(*command)[0], 20)
            other = record.replace(b"app.registered", b"app.registerea")
            path.write_bytes(lines[1].replace(record[:-1], other[:-1]))
            status, _, errors = self.run_verifier(*command)
            self.assertEqual((status, errors), (20, "refused: the line is not the event that was proven\n"))


class FormTests(unittest.TestCase):
    def test_what_is_no_erasures_event_is_nothing(self):
        for data in ("{", "{}", "[]".join("{}"), compact(OPENING | {"lines": []}), '{"reason":"a"}'):
            self.assertIsNone(redactions.read_event(data.encode()))
        self.assertEqual(redactions.read_event(compact(OPENING).encode()), redactions.Opening())


if __name__ == "__main__":
    unittest.main()
