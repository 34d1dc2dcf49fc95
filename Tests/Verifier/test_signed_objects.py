# Signed objects in a log: good ones hold, and one forged byte anywhere is refused.
import base64
import hashlib
import json
import re
import subprocess
import tempfile
import time
import unittest
import uuid
from pathlib import Path

import signed_objects
import verify

FIXTURES = Path(__file__).resolve().parents[3] / "shared" / "fixtures" / "storekit2"
FAMILY = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
ROOT, INTERMEDIATE, LEAF = (
    "basicConstraints=critical,CA:TRUE",
    "basicConstraints=critical,CA:TRUE,pathlen:0\n1.2.840.113635.100.6.2.1=ASN1:NULL",
    "1.2.840.113635.100.6.11.1=ASN1:NULL",
)


def openssl(*arguments, data=b""):
    return subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=True).stdout


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Authority:
    """Keys and certificates like Apple's, made here."""

    def __init__(self, folder, name, extensions=(ROOT, INTERMEDIATE, LEAF),
                 curves=("P-384", "P-384", "P-256")):
        self.folder, self.name, self.chain = Path(folder), name, []
        for place, (extension, curve) in enumerate(zip(extensions, curves)):
            paths = {end: self.path(place, end) for end in ("key", "request", "der", "extensions")}
            openssl("genpkey", "-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{curve}",
                    "-out", paths["key"])
            openssl(
                "req", "-new", "-key", paths["key"], "-subj", f"/CN=Test {place}",
                "-out", paths["request"])
            paths["extensions"].write_text(extension + "\n", encoding="ascii")
            by = ["-signkey", paths["key"]] if place == 0 else [
                "-CA", self.path(place - 1, "der"), "-CAform", "DER", "-CAkey", self.path(place - 1, "key"),
                "-CAcreateserial"]
            openssl("x509", "-req", "-in", paths["request"], "-days", "3650", "-sha256", *by,
                    "-extfile", paths["extensions"], "-outform", "DER", "-out", paths["der"])
            self.chain.insert(0, paths["der"].read_bytes())
        self.root = hashlib.sha256(self.chain[2]).hexdigest()
        self.leaf = hashlib.sha256(self.chain[0]).hexdigest()

    def path(self, place, end):
        return self.folder / f"{self.name}-{place}.{end}"

    def sign(self, payload, header=None):
        """A JWS of the payload, a value or JSON text."""
        text = payload if isinstance(payload, str) else compact(payload)
        header = header or {"alg": "ES256", "x5c": [base64.b64encode(der).decode() for der in self.chain]}
        signed = ".".join(signed_objects.base64url(part.encode()) for part in (compact(header), text))
        der = openssl("dgst", "-sha256", "-sign", self.path(2, "key"), data=signed.encode())
        first = 4 + der[3]
        numbers = (der[4:first], der[first + 2:])
        raw = b"".join(number.lstrip(b"\0").rjust(32, b"\0") for number in numbers)
        return signed + "." + signed_objects.base64url(raw)


class LogOfSignedObjects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.authority = Authority(cls.temporary.name, "own")
        cls.trust = signed_objects.Trust([cls.authority.root.upper()])
        cls.now_ms = int(time.time() * 1000) + 5000

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def payload(self, **fields):
        return {"bundleId": "app", "environment": "Production", "productId": "ünï", "price": 5,
                "signedDate": self.now_ms, **fields}

    def stored(self, text, root=None, **changes):
        """The object as an event holds it; `changes`: members that differ, None to leave one out."""
        parts = [signed_objects.unbase64url(part).decode() for part in text.split(".")[:2]]
        members = {"outcome": "valid", "root_sha256": root or self.authority.root,
                   "signed_at": signed_objects.time_text(json.loads(parts[1]).get("signedDate", 0))}
        members = {name: compact(value) for name, value in members.items()}
        for name, part in (("payload", parts[1]), ("header", parts[0])):
            members[name] = signed_objects.compact(part)
            if members[name] != part:
                members[name + "_base64url"] = compact(signed_objects.base64url(part.encode()))
        members["signature"] = compact(text.split(".")[2])
        for name, value in changes.items():
            members.pop(name, None)
            if value is not None:
                members[name] = compact(value)
        ordered = [name for name in signed_objects.MEMBERS if name in members]
        return "{" + ",".join(f'"{name}":{members[name]}' for name in ordered) + "}"

    def transactions(self, texts, stored=None, **fields):
        """The data of an upload of signed transactions."""
        digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
        listed = ",".join(stored or map(self.stored, texts))
        data = {"upload_id": str(uuid.uuid5(uuid.UUID(FAMILY), digest)), "app_family_id": FAMILY,
                "outcome": "valid", **fields}
        return compact(data)[:-1] + f',"transactions":[{listed}]}}'

    def notification(self, inner, verdict=True, **fields):
        """The data of a notification about a signed transaction."""
        outer = self.authority.sign({"notificationUUID": "n", "notificationType": "REFUND", **self.payload(),
                                     "data": {"signedTransactionInfo": inner}})
        data = {"notification_uuid": "n", "type": "REFUND"}
        if verdict:
            data["transaction"] = {"outcome": "valid", "root_sha256": self.authority.root,
                                   "signed_at": signed_objects.time_text(self.now_ms)}
        return compact(data | fields)[:-1] + f',"notification":{self.stored(outer)}}}'

    def fetched(self, transactions, renewals=(), stored=None):
        """The data of a fetched page."""
        lists = [stored or [*map(self.stored, transactions)], [*map(self.stored, renewals)]]
        texts = [",".join(one) for one in lists]
        data = {"app_family_id": FAMILY, "call": "statuses", "has_more": False}
        return compact(data)[:-1] + f',"transactions":[{texts[0]}],"renewals":[{texts[1]}]}}'

    def log(self, *events):
        """Event lines of (type, data), consistent in themselves."""
        salt = bytes(16)
        at = signed_objects.time_text(self.now_ms)
        for position, (kind, data) in enumerate(events):
            digest = hashlib.sha256(salt + data.encode()).hexdigest()
            yield (f'{{"seq":{position},"type":"{kind}","v":1,"at":"{at}","digest":"{digest}",'
                   f'"salt":"{base64.b64encode(salt).decode()}","data":{data}}}\n').encode()

    def count(self, *events, trust=None):
        return verify.check_log(self.log(*events), None, trust or self.trust).objects.held

    def refused(self, kind, data, why="", trust=None):
        """The log is consistent, but its signed objects are not."""
        self.assertEqual(verify.check_log(self.log((kind, data)), None).size, 1)
        with self.assertRaisesRegex(verify.Refused, f"position 0: .*{why}"):
            self.count((kind, data), trust=trust)

    def test_good_objects_hold(self):
        plain, spaced = self.authority.sign(self.payload()), self.authority.sign(
            json.dumps(self.payload(), indent=1))
        events = [("transactions.received", self.transactions([plain, spaced])),
                  ("notification.received", self.notification(plain)),
                  ("transactions.fetched", self.fetched([plain, spaced], [plain])),
                  ("transactions.fetched", self.fetched([])),
                  ("rates.declared", "{}")]
        self.assertIn("payload_base64url", events[0][1])
        self.assertEqual(self.count(*events), 7)

    def test_a_fetched_page_with_a_forged_object(self):
        text = self.authority.sign(self.payload())[:-8] + "AAAAAAAA"
        good = self.authority.sign(self.payload())
        for page in (self.fetched([good, text]), self.fetched([good], [text])):
            self.refused("transactions.fetched", page, "the signature is wrong")
        stored = self.stored(text, outcome="invalid", reason="wrong_signature")
        self.assertEqual(self.count(("transactions.fetched", self.fetched([], stored=[stored]))), 1)

    def test_what_was_refused_for_its_root_holds_once_that_is_declared(self):
        text = self.authority.sign(self.payload())
        stored = self.stored(text, root=None, outcome="invalid", root_sha256=None, reason="untrusted_root")
        trusted = "trust.declared", compact({"roots_sha256": [self.authority.root]})
        nobody = "trust.declared", compact({"roots_sha256": []})
        page = "transactions.fetched", self.fetched([], stored=[stored])

        def accepted(root, place=0, at=1):
            one = {"index": place, "outcome": "valid", "root_sha256": root}
            return "signatures.accepted", compact(
                {"page": at, "occurred_at": "2026-01-01T00:00:00.000Z", "transactions": [one],
                 "renewals": []})

        self.assertEqual(self.count(nobody, page, trusted, accepted(self.authority.root)), 2)
        for event, why in ((accepted("ab" * 32), "another root"),
                           (accepted(self.authority.root, place=1), "no refused object"),
                           (accepted(self.authority.root, at=0), "no refused object")):
            with self.assertRaisesRegex(verify.Refused, f"position 3: {why}|position 3: the verdict.*{why}"):
                self.count(nobody, page, trusted, event)
        # An event recorded while the root was trusted may not call the object bad.
        with self.assertRaisesRegex(verify.Refused, "position 1: it is recorded as invalid, and holds"):
            self.count(trusted, page)

    def test_an_app_transaction_stands_last(self):
        plain = self.authority.sign(self.payload())
        app = self.authority.sign({"receiptType": "Sandbox", "receiptCreationDate": self.now_ms})
        at = signed_objects.time_text(self.now_ms)
        data = self.transactions([plain, app], [self.stored(plain)])
        data = data[:-1] + f',"app_transaction":{self.stored(app, signed_at=at)}}}'
        self.assertEqual(self.count(("transactions.received", data)), 2)

    def test_one_byte_of_payload_signature_or_header(self):
        text = self.authority.sign(self.payload())
        good = self.stored(text)
        signature = text.split(".")[2]
        flipped = ("B" if signature[5] == "A" else "A") + signature[6:]
        chain = re.search(r'"x5c":\["([^"]{200})', good).group(1)
        for old, new in (('"price":5', '"price":6'), (signature, signature[:5] + flipped),
                         ('"alg":"ES256"', '"alg":"ES256","kid":1'),
                          ('"productId":"ünï"', '"productId":"uni"'),
                         (chain, chain[:-1] + ("B" if chain[-1] == "A" else "A"))):
            forged = good.replace(old, new)
            self.assertNotEqual(forged, good, old)
            parts = [signed_objects.members_of(forged)[name] for name in ("header", "payload")]
            again = [signed_objects.base64url(part.encode()) for part in parts]
            new_text = ".".join([*again, json.loads(signed_objects.members_of(forged)["signature"])])
            self.refused("transactions.received", self.transactions([new_text], [forged]))

    def test_an_inner_object_of_a_notification(self):
        inner = self.authority.sign(self.payload())
        head, payload, signature = inner.split(".")
        payload = compact(self.payload(price=6)).encode()
        forged = ".".join([head, signed_objects.base64url(payload), signature])
        self.refused("notification.received", self.notification(forged), "the signature is wrong")
        self.refused("notification.received", self.notification(inner, verdict=False), "belong together")
        self.refused("notification.received", self.notification(None), "belong together")
        self.refused("notification.received", self.notification(inner, notification_uuid="m"), "uuid")
        for member, value in (("root_sha256", "ab" * 32), ("signed_at", "2026-01-01T00:00:00.000Z")):
            verdict = {"outcome": "valid", "root_sha256": self.authority.root,
                       "signed_at": signed_objects.time_text(self.now_ms), member: value}
            self.refused("notification.received", self.notification(inner, transaction=verdict))

    def test_the_recorded_verdict_must_agree(self):
        text = self.authority.sign(self.payload())
        for changes, why in (({"outcome": "invalid", "reason": "wrong_signature"}, "and holds"),
                             ({"root_sha256": "ab" * 32}, "another root"),
                              ({"root_sha256": None}, "another root"),
                             ({"signed_at": "2026-01-01T00:00:00.000Z"}, "signedDate"),
                             ({"signed_at": None}, "signedDate"), ({"outcome": "good"}, "neither"),
                             ({"payload_base64url": text.split(".")[1]}, "base64url"),
                             ({"signature": None}, "no signature"), ({"extra": 1}, "")):
            stored = self.stored(text, **changes)
            if "extra" in changes:
                stored = stored[:-1] + ',"extra":1}'
            self.refused("transactions.received", self.transactions([text], [stored]), why)
        self.refused("transactions.received", self.transactions([text], upload_id=FAMILY), "upload_id")

    def test_evidence_is_invalid_and_stays_so(self):
        text = self.authority.sign(self.payload())[:-8] + "AAAAAAAA"
        stored = self.stored(text, outcome="invalid", reason="wrong_signature")
        fraud = {"outcome": "invalid", "fraud_reason": "signature_invalid"}
        data = self.transactions([text], [stored], **fraud)
        self.assertEqual(self.count(("transactions.received", data)), 1)
        self.refused("transactions.received", self.transactions([text], [stored]), "an object is not")
        good = self.authority.sign(self.payload())
        self.refused("transactions.received", self.transactions([good], **fraud), "no signature")

    def test_dates_and_roots(self):
        for ms, why in ((self.now_ms - 86_400_000, "not valid at"), (self.now_ms + 61_000, "in the future")):
            late = self.authority.sign(self.payload(signedDate=ms))
            self.refused("transactions.received", self.transactions([late]), why)
        text = self.authority.sign(self.payload())
        self.refused(
            "transactions.received", self.transactions([text]), "not trusted", signed_objects.Trust())

    def test_chains_that_prove_nothing(self):
        own = self.authority
        plans = [("purpose", {"extensions": (ROOT, INTERMEDIATE, "subjectKeyIdentifier=hash")}, "purpose"),
                 ("middle", {"extensions": (ROOT, "basicConstraints=CA:TRUE", LEAF)}, "purpose"),
                 ("none",
                  {"extensions": (ROOT, INTERMEDIATE.replace("TRUE,pathlen:0", "FALSE"), LEAF)},
                  "is none"),
                 ("curve", {"curves": ("P-384", "P-384", "P-384")}, "curve")]
        for name, plan, why in plans:
            other = Authority(self.temporary.name, name, **plan)
            stored = self.stored(own.sign(self.payload()), other.root)
            data = self.transactions([own.sign(self.payload())], [stored])
            with self.assertRaisesRegex(signed_objects.Forged, why):
                signed_objects.Trust([other.root]).chain(tuple(other.chain))
            self.refused("transactions.received", data, "another root")
        # The names are the same, the keys are not.
        stranger = Authority(self.temporary.name, "stranger")
        mixed = tuple([stranger.chain[0], own.chain[1], own.chain[2]])
        with self.assertRaisesRegex(signed_objects.Forged, "no chain"):
            self.trust.chain(mixed)

    def test_local_tests_need_a_named_signer(self):
        header = {"alg": "ES256", "x5c": [base64.b64encode(self.authority.chain[0]).decode()]}
        text = self.authority.sign(self.payload(environment="Xcode"), header)
        stored = self.stored(text, root_sha256=None, signer_sha256=self.authority.leaf)
        data = self.transactions([text], [stored])
        named = signed_objects.Trust(signers=[self.authority.leaf])
        self.assertEqual(self.count(("transactions.received", data), trust=named), 1)
        self.refused("transactions.received", data, "not named")

    def test_the_command_counts_and_refuses(self):
        text = self.authority.sign(self.payload())
        data = self.transactions([text])
        program = [str(Path(verify.__file__)), "log", "--signatures", "--root", self.authority.root]
        for written, status in ((data, 0), (data.replace('"price":5', '"price":6'), 20)):
            lines = b"".join(self.log(("transactions.received", written)))
            done = subprocess.run(["python3", *program], input=lines, capture_output=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(b"refused: position 0", done.stderr)

    @unittest.skipUnless(FIXTURES.is_dir(), "Apple's published test data is not here")
    def test_apples_published_objects(self):
        def check(name):
            text = (FIXTURES / "mock_signed_data" / name).read_text(encoding="ascii").strip()
            return signed_objects.SignedObject.read(text).check(trust, self.now_ms)

        root = hashlib.sha256((FIXTURES / "certs" / "testCA.der").read_bytes()).hexdigest()
        trust = signed_objects.Trust([root])
        self.assertEqual(check("renewalInfo"), ("root_sha256", root))
        # Two end in another certificate of the root's key, which is not an authority; one has no date,
        # one no chain.
        for name in ("testNotification", "transactionInfo", "wrongBundleId", "missingX5CHeaderClaim"):
            with self.assertRaises(signed_objects.Forged):
                check(name)


if __name__ == "__main__":
    unittest.main()
