# The independent verifier of signed objects (JWS) in a log: StoreKit 2's transactions and notifications.
"""Judges every signed object of an event again, from docs/format.md alone, with the `openssl` command."""

import base64
import binascii
import datetime
import hashlib
import json
import re
import ssl
import subprocess
import tempfile
import uuid
from pathlib import Path
from typing import NamedTuple

APPLE_ROOT_G3 = "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179"
# The extensions of Apple's certificates: signers of receipts, and issuers of such signers.
SIGNS_RECEIPTS = "1.2.840.113635.100.6.11.1"
DEVELOPER_RELATIONS = "1.2.840.113635.100.6.2.1"
LOCAL = ("Xcode", "LocalTesting")
# How far `signedDate` may be ahead of the clock that judged it.
AHEAD_MS = 60_000
MEMBERS = ["outcome", "reason", "root_sha256", "signer_sha256", "signed_at", "payload", "payload_base64url",
           "signature", "header", "header_base64url"]


class Forged(Exception):
    """Why an object, or an event's record of it, does not hold."""


# Text


def unbase64url(text):
    """The bytes of canonical base64url without padding."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise Forged("a part is not base64url") from None
    if base64url(data) != text:
        raise Forged("a part is not canonical base64url")
    return data


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _refuse(name):
    raise ValueError(name)


DECODER = json.JSONDecoder(parse_constant=_refuse)


def members_of(text):
    """The members of a JSON object without white space between tokens, each as written."""
    found, place = {}, 1
    try:
        while text[place] != "}":
            place += text[place] == ","
            name, place = DECODER.raw_decode(text, place)
            if text[place] != ":" or not isinstance(name, str) or name in found:
                raise Forged("a member has no name of its own")
            start = place + 1
            _, place = DECODER.raw_decode(text, start)
            found[name] = text[start:place]
    except (IndexError, ValueError, RecursionError):
        raise Forged("not a JSON object without white space") from None
    return found


def elements_of(text):
    """The elements of a JSON array without white space between tokens, each as written."""
    found, place = [], 1
    try:
        while text[place] != "]":
            place += text[place] == ","
            _, end = DECODER.raw_decode(text, place)
            found.append(text[place:end])
            place = end
    except (IndexError, ValueError, RecursionError):
        raise Forged("not a JSON array without white space") from None
    return found


def value_of(text):
    """A value as written, in Python's types; a number with a fraction keeps its text."""
    if text is None:
        return None
    try:
        return json.loads(text, parse_float=lambda number: number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Forged("a part is not JSON") from None


def compact(text):
    """JSON without the white space outside strings."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+', lambda match: match.group(1) or "", text)


def time_text(ms):
    seconds, thousandths = divmod(ms, 1000)
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{thousandths:03}Z"


def time_ms(text):
    moment = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
    moment = moment.replace(tzinfo=datetime.timezone.utc)
    return round(moment.timestamp() * 1000)


# Certificates


def openssl(*arguments, data=b""):
    """(whether the command succeeded, its standard output)."""
    done = subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=False)
    return done.returncode == 0, done.stdout


class Certificate:
    def __init__(self, der):
        self.der = der
        self.sha256 = hashlib.sha256(der).hexdigest()
        self.pem = ssl.DER_cert_to_PEM_cert(der).encode()
        is_read, text = openssl("x509", "-noout", "-text", "-dates", data=self.pem)
        if not is_read:
            raise Forged("a certificate can't be read")
        text = text.decode(errors="replace")
        dates = dict(line.split("=", 1) for line in text.splitlines() if line.startswith("not"))
        self.first_second = ssl.cert_time_to_seconds(dates["notBefore"])
        self.last_second = ssl.cert_time_to_seconds(dates["notAfter"])
        extensions = text.partition("X509v3 extensions:")[2]
        self.purposes = set(re.findall(r"(?m)^ {12}([0-9.]+): *(?:critical)?$", extensions))
        self.is_authority = "CA:TRUE" in extensions
        curve = re.search(r"ASN1 OID: (\S+)", text)
        self.curve = curve.group(1) if curve else None
        self._public_key = None

    def is_valid(self, ms):
        return self.first_second <= ms // 1000 <= self.last_second

    def has_signed(self, message, signature):
        """Whether the key has signed the message; `signature`: R and S, 32 bytes each."""
        if self._public_key is None:
            _, self._public_key = openssl("x509", "-noout", "-pubkey", data=self.pem)
        with tempfile.TemporaryDirectory() as folder:
            key, path = Path(folder, "key"), Path(folder, "signature")
            key.write_bytes(self._public_key)
            path.write_bytes(der_signature(signature))
            return openssl("dgst", "-sha256", "-verify", key, "-signature", path, data=message)[0]


def der_signature(signature):
    def integer(data):
        data = data.lstrip(b"\0") or b"\0"
        data = (b"\0" if data[0] & 0x80 else b"") + data
        return bytes([2, len(data)]) + data

    both = integer(signature[:32]) + integer(signature[32:])
    return bytes([0x30, len(both)]) + both


class Trust:
    """The trusted fingerprints: roots, and signers of local tests."""

    def __init__(self, roots=(), signers=()):
        self.roots = {APPLE_ROOT_G3, *(root.lower().replace(":", "") for root in roots)}
        self.signers = {signer.lower().replace(":", "") for signer in signers}
        self._chains = {}
        self._then = None

    def declare(self, roots):
        """Records whom the log trusted from here on, by which earlier refusals are judged."""
        self._then = Trust(self.roots & set(roots), self.signers)

    @property
    def then(self):
        return self._then or self

    def chain(self, certificates):
        """Leaf, intermediate and root, each in DER, as a chain that ends in a trusted root."""
        if certificates not in self._chains:
            self._chains[certificates] = self._proven(*map(Certificate, certificates))
        return self._chains[certificates]

    def _proven(self, leaf, intermediate, root):
        if root.sha256 not in self.roots:
            raise Forged(f"the root {root.sha256} is not trusted")
        if SIGNS_RECEIPTS not in leaf.purposes or DEVELOPER_RELATIONS not in intermediate.purposes:
            raise Forged("a certificate is for another purpose")
        if not intermediate.is_authority or not root.is_authority:
            raise Forged("an authority is none")
        authorities = {"secp384r1"} if root.sha256 == APPLE_ROOT_G3 else {"secp384r1", "prime256v1"}
        if leaf.curve != "prime256v1" or not {intermediate.curve, root.curve} <= authorities:
            raise Forged("a key is on another curve")
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, name) for name in ("leaf", "intermediate", "root")]
            for path, certificate in zip(paths, (leaf, intermediate, root)):
                path.write_bytes(certificate.pem)
            is_chain, _ = openssl(
                "verify", "-no_check_time", "-no-CApath", "-no-CAstore", "-CAfile", paths[2],
                "-untrusted", paths[1], paths[0])
        if not is_chain:
            raise Forged("the certificates are no chain")
        return leaf, intermediate, root


# Objects


class SignedObject:
    """A JWS, from its header and payload as they were signed."""

    def __init__(self, header, payload, signature):
        self.header, self.payload, self.signature = header, payload, signature
        self.signed = f"{base64url(header)}.{base64url(payload)}".encode()
        self.text = self.signed.decode() + "." + signature
        self.fields = value_of(_utf8(payload))
        if not isinstance(self.fields, dict):
            raise Forged("the payload is no object")
        members_of(compact(_utf8(payload)))

    @classmethod
    def read(cls, text):
        """One in compact serialization."""
        parts = text.split(".") if isinstance(text, str) else []
        if len(parts) != 3 or len(text) > 131_072:
            raise Forged("not three parts")
        return cls(unbase64url(parts[0]), unbase64url(parts[1]), parts[2])

    @property
    def environment(self):
        if self.fields.get("receiptType") is not None:
            return self.fields["receiptType"]
        places = [self.fields, *(self.fields.get(name) for name in ("data", "summary", "appData"))]
        named = [place.get("environment") for place in places if isinstance(place, dict)]
        return next((name for name in named if name is not None), None)

    @property
    def signed_ms(self):
        date = self.fields.get("signedDate", self.fields.get("receiptCreationDate"))
        may_have_fraction = self.environment in LOCAL or self.fields.get("receiptType") is not None
        if may_have_fraction and isinstance(date, str):
            date = date.partition(".")[0]
        is_number = isinstance(date, int) and not isinstance(date, bool)
        if not is_number and not (isinstance(date, str) and re.fullmatch("[0-9]{1,15}", date)):
            raise Forged("no signedDate")
        return int(date)

    def check(self, trust, now_ms):
        """The verdict's member and fingerprint; Forged if the object does not hold."""
        header = value_of(_utf8(self.header))
        if not isinstance(header, dict) or header.get("alg") != "ES256":
            raise Forged("the algorithm is not ES256")
        chain = header.get("x5c")
        if not isinstance(chain, list) or not all(isinstance(one, str) for one in chain):
            raise Forged("there is no chain")
        try:
            chain = tuple(base64.b64decode(one, validate=True) for one in chain)
        except (binascii.Error, ValueError):
            raise Forged("a certificate is not base64") from None
        if self.environment in LOCAL:
            certificates = [Certificate(chain[0])] if chain else []
            if not certificates or certificates[0].sha256 not in trust.signers:
                raise Forged("a local test whose signer is not named")
            found = ("signer_sha256", certificates[0].sha256)
        else:
            if len(chain) != 3:
                raise Forged("not three certificates")
            certificates = trust.chain(chain)
            found = ("root_sha256", certificates[2].sha256)
        signature = unbase64url(self.signature)
        if len(signature) != 64 or not certificates[0].has_signed(self.signed, signature):
            raise Forged("the signature is wrong")
        if not all(certificate.is_valid(self.signed_ms) for certificate in certificates):
            raise Forged("a certificate was not valid at signedDate")
        if self.signed_ms > now_ms + AHEAD_MS:
            raise Forged("signed in the future")
        return found


def _utf8(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Forged("a part is not UTF-8") from None


def stored_object(text):
    """(the object, its members) of a signed object as an event holds it."""
    members = members_of(text)
    if [name for name in MEMBERS if name in members] != list(members):
        raise Forged("a signed object has other members")
    parts = []
    for name in ("header", "payload"):
        stored = members.get(name, "")
        if not stored.startswith("{") or compact(stored) != stored:
            raise Forged(f"the {name} is no object without white space")
        exact = value_of(members.get(f"{name}_base64url"))
        part = stored.encode() if exact is None else unbase64url(exact)
        if exact is not None and (part == stored.encode() or compact(_utf8(part)) != stored):
            raise Forged(f"the {name} is not what its base64url holds")
        parts.append(part)
    signature = value_of(members.get("signature"))
    if not isinstance(signature, str):
        raise Forged("there is no signature")
    return SignedObject(*parts, signature), members


def check_verdict(signed, members, trust, now_ms):
    """Judges the object again; Forged if the recorded verdict differs."""
    recorded = {name: value_of(members.get(name)) for name in MEMBERS[:5]}
    if recorded["outcome"] == "invalid":
        if recorded["reason"] == "missing_environment" and signed.environment is None:
            return
        try:
            signed.check(trust.then, now_ms)
        except Forged:
            return
        raise Forged("it is recorded as invalid, and holds")
    if recorded["outcome"] != "valid" or recorded["reason"] is not None:
        raise Forged("the verdict is neither valid nor invalid")
    name, fingerprint = signed.check(trust, now_ms)
    other = "signer_sha256" if name == "root_sha256" else "root_sha256"
    if recorded[name] != fingerprint or recorded[other] is not None:
        raise Forged("the verdict names another root or signer")
    if recorded["signed_at"] != time_text(signed.signed_ms):
        raise Forged("signed_at is not the payload's signedDate")


# Events


def check_transactions(members, trust, now_ms):
    """transactions.received; how many objects it has."""
    stated = value_of(members.get("environment"))
    if stated not in (None, "Production", "Sandbox"):
        raise Forged("environment is neither Production nor Sandbox")
    texts = elements_of(members.get("transactions", "[]"))
    if "app_transaction" in members:
        texts.append(members["app_transaction"])
    objects = [stored_object(text) for text in texts]
    for signed, its_members in objects:
        check_verdict(signed, its_members, trust, now_ms)
    outcomes = {value_of(its_members["outcome"]) for _, its_members in objects}
    if value_of(members.get("outcome")) == "valid" and outcomes != {"valid"}:
        raise Forged("the event is valid, and an object is not")
    if value_of(members.get("fraud_reason")) == "signature_invalid" and "invalid" not in outcomes:
        raise Forged("no signature is invalid")
    digest = hashlib.sha256("\n".join(signed.text for signed, _ in objects).encode()).hexdigest()
    family = uuid.UUID(value_of(members["app_family_id"]))
    if value_of(members.get("upload_id")) != str(uuid.uuid5(family, digest)):
        raise Forged("upload_id is not that of the objects")
    return len(objects)


def check_notification(members, trust, now_ms):
    """notification.received; how many objects it has, inner ones included."""
    outer, its_members = stored_object(members.get("notification", "{}"))
    check_verdict(outer, its_members, trust, now_ms)
    told = [("notification_uuid", "notificationUUID"), ("type", "notificationType"), ("subtype", "subtype")]
    for member, name in told:
        if value_of(members.get(member)) != outer.fields.get(name):
            raise Forged(f"{member} is not what the notification says")
    data = outer.fields.get("data")
    data = data if isinstance(data, dict) else {}
    verdicts = {"signedTransactionInfo": "transaction", "signedRenewalInfo": "renewal"}
    count = 1
    for name, member in verdicts.items():
        if (data.get(name) is None) != (member not in members):
            raise Forged(f"{member} and the notification's {name} do not belong together")
        if member in members:
            inner = SignedObject.read(data[name])
            check_verdict(inner, members_of(members[member]), trust, now_ms)
            count += 1
    return count


def check_fetched(members, trust, now_ms):
    """transactions.fetched; how many objects it has."""
    texts = [text for name in ("transactions", "renewals") for text in elements_of(members[name])]
    for signed, its_members in map(stored_object, texts):
        check_verdict(signed, its_members, trust, now_ms)
    return len(texts)


CHECKS = {
    b"transactions.received": check_transactions,
    b"notification.received": check_notification,
    b"transactions.fetched": check_fetched,
}


class Count(NamedTuple):
    """How many signed objects hold, and how many cannot be judged because they were redacted."""

    held: int
    redacted: int

    def __add__(self, other):
        return Count(self.held + other.held, self.redacted + other.redacted)


def check_event(kind, version, at, data, trust):
    """How many signed objects of an event hold; Forged if one does not."""
    check = CHECKS.get(kind)
    if check is None:
        return 0
    return _as_catalogued(
        kind, version, lambda: check(members_of(_utf8(data)), trust, time_ms(at.decode())))


def check_kept(kind, version, at, kept, trust):
    """The same for a redacted event's kept data. An object without its signature cannot be judged."""
    if kind not in CHECKS:
        return Count(0, 0)
    return _as_catalogued(
        kind, version, lambda: _kept(kind, members_of(_utf8(kept)), trust, time_ms(at.decode())))


def _as_catalogued(kind, version, check):
    if version != 1 and (kind, version) != (b"transactions.received", 2):
        raise Forged("an event of a later version")
    try:
        return check()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Forged(f"not as the catalogue says: {error}") from error


def _kept(kind, members, trust, now_ms):
    if kind == b"notification.received":
        # Its content was removed with its payload.
        return Count(0, 1 + sum(name in members for name in ("transaction", "renewal")))
    lists = ("transactions", "renewals") if kind == b"transactions.fetched" else ("transactions",)
    texts = [text for name in lists for text in elements_of(members[name])]
    if "app_transaction" in members and kind == b"transactions.received":
        texts.append(members["app_transaction"])
    count = Count(0, 0)
    for text in texts:
        its_members = members_of(text)
        if "signature" not in its_members and "header" not in its_members:
            count += Count(0, 1)
            continue
        signed, its_members = stored_object(text)
        check_verdict(signed, its_members, trust, now_ms)
        count += Count(1, 0)
    return count
