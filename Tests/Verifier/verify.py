#!/usr/bin/env python3
# The independent verifier of checkpoints, proofs and whole logs.
"""Checks a ledger's checkpoints, proofs and history without the program that made them.

Needs Python's standard library and the `openssl` command. It follows the published formats alone: RFC
6962 hashing, C2SP signed-note, tlog-checkpoint and tlog-proof, and docs/format.md for the rest.
"""

import argparse
import base64
import binascii
import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import accepted_signatures
import redactions
import signed_objects

PROOF = b"c2sp.org/tlog-proof@v1"
CONSISTENCY = b"receipt-ledger/consistency-proof@v1"
# The bytes before the 32 bytes of an Ed25519 key in its DER form (RFC 8410).
DER_PREFIX = bytes.fromhex("302a300506032b6570032100")
HEADER = (
    rb'(\{"seq":(0|[1-9][0-9]{0,17}),"type":"([a-z][a-z0-9_.]{0,63})","v":([1-9][0-9]{0,17}),'
    rb'"at":"([0-9TZ:.-]{24})",'
    rb'"digest":"([0-9a-f]{64})")')
SALT = rb'"([A-Za-z0-9+/]{22}==)"'
LINE = re.compile(HEADER + rb',"salt":' + SALT + rb',"data":(\{.*\})\}')
REDACTED_LINE = re.compile(
    HEADER + rb',"salt":null,"data":null,"redacted":\{"by":(0|[1-9][0-9]{0,17}),"salt":' + SALT
    + rb',"kept":(\{.*\})\}\}')
# How many lines that still hold erased data are named one by one.
NAMED_MAX = 10


class Refused(Exception):
    """The input does not hold."""


def unbase64(text):
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise Refused(f"base64: {error}") from error
    if base64.b64encode(data) != bytes(text):
        raise Refused("base64 that is not canonical")
    return data


def digest_of(text):
    data = unbase64(text)
    if len(data) != 32:
        raise Refused("a hash does not have 32 bytes")
    return data


def number_of(text):
    if not re.fullmatch(rb"0|[1-9][0-9]{0,17}", text):
        raise Refused("a number is malformed")
    return int(text)


# Keys and signed notes


class Key:
    """A C2SP verifier key: name+id+base64(01 and 32 bytes)."""

    def __init__(self, text):
        parts = text.strip().split("+", 2)
        if len(parts) != 3:
            raise Refused("the verifier key is not name+id+key")
        self.name = parts[0].encode()
        data = unbase64(parts[2].encode())
        if len(data) != 33 or data[0] != 1:
            raise Refused("the verifier key is not one of Ed25519")
        self.public = data[1:]
        self.id = hashlib.sha256(self.name + b"\n\x01" + self.public).digest()[:4]
        if self.id.hex() != parts[1]:
            raise Refused("the verifier key's id does not belong to it")

    def has_signed(self, message, signature):
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, name) for name in ("key", "message", "signature")]
            for path, data in zip(paths, (DER_PREFIX + self.public, message, signature)):
                path.write_bytes(data)
            done = subprocess.run(
                ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", paths[0],
                 "-rawin", "-in", paths[1], "-sigfile", paths[2]],
                capture_output=True, check=False)
        return done.returncode == 0


def open_note(note, key):
    """The text of a signed note that the key has signed."""
    try:
        note.decode()
    except UnicodeDecodeError as error:
        raise Refused("the note is no UTF-8") from error
    if any(byte < 0x20 and byte != 0x0A for byte in note):
        raise Refused("the note holds a control character")
    end = note.rfind(b"\n\n")
    if end < 0 or not note.endswith(b"\n") or end + 2 >= len(note):
        raise Refused("the note has no signature")
    text = note[:end + 1]
    is_signed = False
    for line in note[end + 2:-1].split(b"\n"):
        parts = line.split(b" ")
        if len(parts) != 3 or parts[0] != "—".encode() or not parts[1]:
            raise Refused("a signature line is malformed")
        signature = unbase64(parts[2])
        if len(signature) < 5:
            raise Refused("a signature line is malformed")
        if parts[1] != key.name or signature[:4] != key.id:
            continue
        if not key.has_signed(text, signature[4:]):
            raise Refused("the signature is wrong")
        is_signed = True
    if not is_signed:
        raise Refused("the key has not signed it")
    return text


class Checkpoint:
    """A signed head: origin, size, root."""

    def __init__(self, note, key):
        lines = open_note(note, key).split(b"\n")
        if len(lines) < 4 or b"" in lines[:-1]:
            raise Refused("the checkpoint does not have three lines")
        self.origin, self.size, self.root = lines[0], number_of(lines[1]), digest_of(lines[2])
        if self.origin != key.name:
            raise Refused("the checkpoint is of another ledger than the key")


# The tree (RFC 6962)


def leaf_hash(record):
    return hashlib.sha256(b"\x00" + record).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


def check_inclusion(leaf, index, size, root, hashes):
    if index >= size:
        raise Refused("the index lies beyond the tree")
    place, last, result = index, size - 1, leaf
    for item in hashes:
        if last == 0:
            raise Refused("the proof is too long")
        if place & 1 or place == last:
            result = node_hash(item, result)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            result = node_hash(result, item)
        place, last = place >> 1, last >> 1
    if last or result != root:
        raise Refused("the proof does not lead to the root")


def check_consistency(old, new, hashes):
    if old.size > new.size:
        raise Refused("the older checkpoint is the larger one")
    if old.size == new.size or old.size == 0:
        expected = new.root if old.size else hashlib.sha256().digest()
        if hashes or old.root != expected:
            raise Refused("the checkpoints contradict each other")
        return
    if not hashes:
        raise Refused("the proof is empty")
    if old.size & (old.size - 1) == 0:
        hashes = [old.root] + hashes
    place, last = old.size - 1, new.size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    first = second = hashes[0]
    for item in hashes[1:]:
        if last == 0:
            raise Refused("the proof is too long")
        if place & 1 or place == last:
            first, second = node_hash(item, first), node_hash(item, second)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            second = node_hash(second, item)
        place, last = place >> 1, last >> 1
    if last or first != old.root or second != new.root:
        raise Refused("the proof does not hold")


# Files


def split_proof(data, heading):
    """The lines of a proof without its heading, and the checkpoint after the empty line."""
    head, found, checkpoint = data.partition(b"\n\n")
    lines = head.split(b"\n")
    if not found or lines[0] != heading:
        raise Refused(f"it is no {heading.decode()}")
    return lines[1:], checkpoint


def value_of(line, word):
    if not line.startswith(word + b" "):
        raise Refused(f"'{word.decode()}' is missing")
    return line[len(word) + 1:]


def check_proof(data, key):
    """The leaf record that a tlog-proof proves, with its checkpoint."""
    lines, note = split_proof(data, PROOF)
    if len(lines) < 2:
        raise Refused("the proof ends too early")
    record = unbase64(value_of(lines[0], b"extra"))
    index = number_of(value_of(lines[1], b"index"))
    checkpoint = Checkpoint(note, key)
    hashes = [digest_of(line) for line in lines[2:]]
    check_inclusion(leaf_hash(record), index, checkpoint.size, checkpoint.root, hashes)
    if not record.startswith(b'{"seq":%d,' % index):
        raise Refused("the record is of another position")
    return record, checkpoint


def check_growth(data, key):
    """Both checkpoints of a consistency proof."""
    lines, note = split_proof(data, CONSISTENCY)
    if not lines:
        raise Refused("the proof ends too early")
    old = Checkpoint(unbase64(value_of(lines[0], b"old")), key)
    new = Checkpoint(note, key)
    check_consistency(old, new, [digest_of(line) for line in lines[1:]])
    return old, new


class Line(NamedTuple):
    """An event's line: its data or, if it was redacted, the line's redaction."""

    record: bytes
    kind: bytes
    version: int
    time: bytes
    data: bytes | None
    redaction: redactions.Redaction | None


def check_line(line, position):
    """The line of the event at the position; of a redacted line only the header is checked."""
    found = LINE.fullmatch(line) or REDACTED_LINE.fullmatch(line)
    if not found:
        raise Refused(f"position {position}: the line is not an event")
    start, seq, kind, version, time, digest, *rest = found.groups()
    if int(seq) != position:
        raise Refused(f"position {position}: the line says {int(seq)}")
    data = redaction = None
    if found.re is REDACTED_LINE:
        by, salt, kept = rest
        redaction = redactions.redaction_of(by, unbase64(salt), kept)
    else:
        salt, data = rest
        if hashlib.sha256(unbase64(salt) + data).hexdigest().encode() != digest:
            raise Refused(f"position {position}: the digest is not that of the data")
    return Line(start + b"}", kind, int(version), time, data, redaction)


class Tree:
    """The tree of the leaf records so far."""

    def __init__(self):
        self.size = 0
        # The frontier: the roots of the perfect subtrees, the largest first.
        self._roots = []

    def add(self, record):
        node, rest = leaf_hash(record), self.size
        while rest & 1:
            node, rest = node_hash(self._roots.pop(), node), rest >> 1
        self._roots.append(node)
        self.size += 1

    def root(self):
        if not self._roots:
            return hashlib.sha256().digest()
        result = self._roots[-1]
        for left in reversed(self._roots[:-1]):
            result = node_hash(left, result)
        return result


class Checked(NamedTuple):
    """A log's content; `unredacted`: (position, erasure) of lines that still hold erased data."""

    size: int
    root: bytes
    objects: signed_objects.Count
    redacted: int
    unredacted: list


def check_log(lines, checkpoint, trust=None):
    """Recomputes the whole tree from event lines, and matches the redacted ones with their erasures.

    With `trust` each signed object is judged again.
    """
    tree, erased = Tree(), redactions.Redactions()
    objects = signed_objects.Count(0, 0)
    judge = accepted_signatures.Judge(trust)
    last_time = b""
    signed_root = tree.root() if checkpoint and checkpoint.size == 0 else None
    for text in lines:
        position = tree.size
        line = check_line(text.rstrip(b"\n"), position)
        if line.time < last_time:
            raise Refused(f"position {position}: the time decreases")
        last_time = line.time
        if trust is not None:
            objects += check_objects(line, position, judge)
        tree.add(line.record)
        if checkpoint and checkpoint.size == tree.size:
            signed_root = tree.root()
        take_redaction(erased, line, position)
    if checkpoint and signed_root is None:
        raise Refused(f"the checkpoint has {checkpoint.size} events, the log {tree.size}")
    if checkpoint and signed_root != checkpoint.root:
        raise Refused(f"the first {checkpoint.size} events are not those that were signed")
    try:
        erased.check(tree.size)
    except redactions.Tampered as fault:
        raise Refused(str(fault)) from fault
    return Checked(tree.size, tree.root(), objects, len(erased), erased.unredacted())


def check_objects(line, position, judge):
    """How many signed objects of the line hold, and how many were redacted."""
    try:
        return judge.take(line, position)
    except signed_objects.Forged as fault:
        raise Refused(f"position {position}: {fault}") from fault


def take_redaction(erased, line, position):
    """Passes on a line that was redacted, or that belongs to an erasure."""
    if line.redaction is not None:
        try:
            erased.take_line(position, line.redaction)
        except redactions.Tampered as fault:
            raise Refused(str(fault)) from fault
    elif line.kind == redactions.KIND and line.version == 1:
        erased.take_event(position, line.data)


def warn(checked):
    """Names the lines that still hold erased data: not a fault, but not erased."""
    for position, erasure in checked.unredacted[:NAMED_MAX]:
        print(f"warning: position {position} still holds data that the erasure at {erasure} took out",
              file=sys.stderr)
    if len(checked.unredacted) > NAMED_MAX:
        print(f"warning: {len(checked.unredacted)} lines still hold data that an erasure took out",
              file=sys.stderr)


def told_log(checked, has_signatures):
    """The result of a log's check on standard output."""
    told = f"{checked.size} events, root {base64.b64encode(checked.root).decode()}"
    if checked.redacted:
        told += f", {checked.redacted} redacted"
    if checked.unredacted:
        told += f", {len(checked.unredacted)} still hold data that an erasure took out"
    if has_signatures:
        told += f", {checked.objects.held} signed objects"
        if checked.objects.redacted:
            told += f", {checked.objects.redacted} redacted ones skipped"
    return told


def read(path):
    return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()


def run(arguments):
    key = Key(arguments.key) if arguments.key else None
    if arguments.what == "log":
        checkpoint = Checkpoint(read(arguments.checkpoint), key) if arguments.checkpoint else None
        trust = None
        if arguments.signatures:
            trust = signed_objects.Trust(arguments.root, arguments.signer)
        checked = check_log(sys.stdin.buffer, checkpoint, trust)
        warn(checked)
        return told_log(checked, arguments.signatures)
    data = read(arguments.file)
    if arguments.what == "checkpoint":
        found = Checkpoint(data, key)
        return f"{found.origin.decode()}: {found.size} events"
    if arguments.what == "consistency":
        old, new = check_growth(data, key)
        return f"{new.origin.decode()}: the first {old.size} of {new.size} events are the same"
    record, checkpoint = check_proof(data, key)
    told = f"{checkpoint.origin.decode()}: {record.decode()}"
    if arguments.event:
        line = read(arguments.event).rstrip(b"\n")
        position = int(re.match(rb'\{"seq":([0-9]+)', record).group(1))
        event = check_line(line, position)
        if event.record != record:
            raise Refused("the line is not the event that was proven")
        if event.redaction is not None:
            told += (f"\nthe event's data was redacted by the erasure at {event.redaction.by}: "
                     "check what is kept with the log")
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="what", required=True)
    for name in ("checkpoint", "proof", "consistency"):
        part = parts.add_parser(name)
        part.add_argument("file")
        part.add_argument("--key", required=True)
        if name == "proof":
            part.add_argument("--event")
    part = parts.add_parser("log", help="event lines on standard input")
    part.add_argument("--checkpoint")
    part.add_argument("--key")
    part.add_argument("--signatures", action="store_true", help="judge signed objects (JWS) again")
    part.add_argument("--root", action="append", default=[], metavar="SHA256",
                      help="fingerprint of a root to trust beside Apple Root CA G3")
    part.add_argument("--signer", action="append", default=[], metavar="SHA256",
                      help="fingerprint of a signer of Xcode's and of local tests")
    arguments = parser.parse_args()
    if arguments.what == "log" and bool(arguments.checkpoint) != bool(arguments.key):
        parser.error("--checkpoint and --key go together")
    try:
        print(run(arguments))
    except Refused as refusal:
        print(f"refused: {refusal}", file=sys.stderr)
        sys.exit(20)


if __name__ == "__main__":
    main()
