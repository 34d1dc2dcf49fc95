# The redacted lines of a log's erasures: which event lists what each line still holds.
"""Matches redacted lines with the `data.redacted` events that list them, from docs/format.md alone."""

import hashlib
import json
import re
from typing import NamedTuple

KIND = b"data.redacted"
LINES_MAX = 60_000
SCOPES = ("user", "receipt", "position", "retention")
REASON = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
UUID_V4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII)
SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Tampered(Exception):
    """A redacted line that no erasure lists; the text names its position."""


class Redaction(NamedTuple):
    """A redacted line's content: the erasure's position, and the digest of salt and kept data."""

    by: int
    sha256: bytes
    kept: bytes


def redaction_of(by, salt, kept):
    """`salt`: its 16 bytes."""
    return Redaction(int(by), hashlib.sha256(salt + kept).digest(), kept)


class Opening(NamedTuple):
    """The event that opens an erasure."""


class Listing(NamedTuple):
    """One list of an erasure: `lines` are (position, digest) in the order of positions."""

    erasure: int
    lines: list


def _unique(pairs):
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a member stands twice")
    return dict(pairs)


def _is_count(value, least):
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and least <= value < 10**18


def _matches(form, value):
    return isinstance(value, str) and form.fullmatch(value) is not None


def read_event(data):
    """The opening or the list in the data of a `data.redacted`, v 1; None if it is neither.

    A malformed one opens nothing and lists nothing.
    """
    try:
        members = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None
    # A merged event names its source first.
    if next(iter(members), None) == "merged":
        del members["merged"]
    if not _matches(REASON, members.get("reason")):
        return None
    if list(members) == ["request", "scope", "reason"]:
        is_right = _matches(UUID_V4, members["request"]) and members["scope"] in SCOPES
        return Opening() if is_right else None
    if list(members) != ["erasure", "part", "parts", "reason", "lines"]:
        return None
    lines = members["lines"]
    numbers = (_is_count(members["erasure"], 0), _is_count(members["part"], 1),
               _is_count(members["parts"], 1), isinstance(lines, list))
    if not all(numbers) or members["part"] > members["parts"] or len(lines) > LINES_MAX:
        return None
    return _listing(members["erasure"], lines)


def _listing(erasure, lines):
    found, last = [], -1
    for line in lines:
        if not isinstance(line, dict) or list(line) != ["position", "sha256"]:
            return None
        position = line["position"]
        # By position, and all of them before the erasure.
        if not _is_count(position, 0) or not last < position < erasure:
            return None
        if not _matches(SHA256, line["sha256"]):
            return None
        found.append((position, bytes.fromhex(line["sha256"])))
        last = position
    return Listing(erasure, found)


class Redactions:
    """Collects the redacted lines and the erasures of a log, given in the order of positions."""

    def __init__(self):
        self._openings = set()
        # The content of each redacted line; and which of them a list covers.
        self._redacted = {}
        self._vouched = set()
        # Lines that hold more than an erasure left of them: position -> the latest such erasure.
        self._unredacted = {}

    def __len__(self):
        return len(self._redacted)

    def take_line(self, position, redaction):
        if redaction.by <= position:
            raise Tampered(f"position {position}: the line was redacted by an earlier event")
        self._redacted[position] = redaction._replace(kept=b"")

    def take_event(self, position, data):
        """A `data.redacted`, v 1, that has its data."""
        event = read_event(data)
        if isinstance(event, Opening):
            self._openings.add(position)
        elif event is not None and event.erasure in self._openings:
            for line, sha256 in event.lines:
                self._match(line, event.erasure, sha256)

    def _match(self, line, erasure, sha256):
        redaction = self._redacted.get(line)
        if redaction is None or redaction.by < erasure:
            self._unredacted[line] = max(erasure, self._unredacted.get(line, 0))
        elif redaction.by == erasure and redaction.sha256 == sha256:
            self._vouched.add(line)
        # The list of an earlier erasure no longer counts.

    def check(self, size):
        """Tampered for the first line that no list covers. `size`: how many events the log has."""
        for position, redaction in self._redacted.items():
            if position in self._vouched:
                continue
            by = redaction.by
            if by >= size:
                raise Tampered(f"position {position}: the log ends before {by}, which redacted the line")
            if by not in self._openings:
                raise Tampered(f"position {position}: {by}, which redacted the line, opens no erasure")
            raise Tampered(f"position {position}: the erasure at {by} does not list what the line holds")

    def unredacted(self):
        """(position, erasure) of the lines that still hold erased data."""
        return sorted(self._unredacted.items())
