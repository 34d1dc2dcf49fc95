# Erases users of a ledger, then compares its reports with the oracle's and with its earlier ones.
import csv
import io
import json
import re
import shlex
from collections import Counter
from decimal import Decimal

from log import read_log
from reports import quoted

# What an erasure may change in a report: the columns that name people, and columns that depend on
# names alone.
NAMING = ("user_identifier", "user_position", "user_basis", "receipt_id", "detail")
# Of users: a sale's user can depend on an account or a token, so these are compared by their sums.
SUMMED = ("sales", "returns", "trials", "net")
# A reason that is not a number of the App Store's may be free text: a mark replaces it.
REASONS, READABLE_REASON, MARK = ("reason", "expiration_intent"), re.compile("[0-9]*", re.ASCII), "?"
# Of a report at an earlier point, every third row is compared.
STEP_AT_POINTS = 3
# Options that select or order rows by columns that may change.
CHOOSING = ("--sort", "--top")


def _events(lines):
    return [json.loads(line) for line in lines]


def _data(event):
    return event["redacted"]["kept"] if "redacted" in event else event["data"]


def _uploads(events):
    """(position, data) of the uploads that name a user."""
    for event in events:
        if event["type"] in ("receipt.uploaded", "transactions.received"):
            data = members_of(_data(event))
            user = data.get("user_identifier")
            if isinstance(user, str) and user:
                yield event["seq"], data


def members_of(value):
    return value if isinstance(value, dict) else {}


def chosen(lines, count):
    """The users with the most events, including a user of a receipt that several users uploaded."""
    events = _events(lines)
    users = {position: data["user_identifier"] for position, data in _uploads(events)}
    found = Counter(users.values())
    for event in events:
        if event["type"] == "receipt.verified":
            upload = members_of(_data(event)).get("upload")
            found.update([users[upload]] if isinstance(upload, int) and upload in users else [])
    ranked = sorted(found, key=lambda user: (-found[user], user))
    picked = ranked[:count]
    sharing = _sharing(events)
    others = [user for user in ranked if user in sharing]
    if len(picked) > 1 and others and not sharing & set(picked):
        picked[-1] = others[0]
    return picked


def _sharing(events):
    """The users of receipts that another user uploaded too."""
    by_receipt = {}
    for _, data in _uploads(events):
        if isinstance(data.get("receipt_id"), str):
            by_receipt.setdefault(data["receipt_id"], set()).add(data["user_identifier"])
    return {user for users in by_receipt.values() if len(users) > 1 for user in users}


def renamed(before, after, users):
    """Each user's name in the uploads after the erasure; None if a line was not redacted."""
    kept = dict(_uploads(event for event in _events(after) if "redacted" in event))
    names = {}
    for position, data in _uploads(_events(before)):
        user = data["user_identifier"]
        if user in users:
            name = kept.get(position, {}).get("user_identifier")
            names[user] = name if names.get(user, name) == name else None
    return names


def remaining(after, users):
    """The positions at which an event still names an erased user."""
    positions = []
    for event in _events(after):
        user = members_of(_data(event)).get("user_identifier")
        if isinstance(user, str) and user in users:
            positions.append(event["seq"])
    return positions


def about(line, names):
    """The report about the present name of an erased user; None if it is about none of them."""
    words = shlex.split(line)
    if "--user" not in words or names.get(words[words.index("--user") + 1]) is None:
        return None
    place = words.index("--user") + 1
    return shlex.join([*words[:place], names[words[place]], *words[place + 1:]])


def comparable(line):
    """The report without options that select or order rows by a name: all of its rows."""
    words, kept = iter(shlex.split(line)), []
    for word in words:
        if word in CHOOSING:
            next(words)
        else:
            kept.append(word)
    return shlex.join(kept)


def figures(data, line=""):
    """(columns, how often each row) of a CSV, without the columns that may change.

    In the random histories, sales of several users have the same token or account, and an erasure renames
    only one user's sales. Users' sales are therefore compared by their sums.
    """
    names, *rows = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), strict=True)
    sums = []
    if line.startswith("users") and "user_identifier" in names:
        place = names.index("user_identifier")
        # Rounded parts do not add up to the rounded sum.
        sums = _sums(names, rows, has_net="--amounts minor" not in line)
        # Rows of tokens have nothing else to compare.
        rows = [row for row in rows if not row[place].startswith("token:")]
    shown = [name for name in names if name not in NAMING]
    if line.startswith("users"):
        shown = [name for name in shown if name not in SUMMED]
    places = [names.index(name) for name in shown]
    body = [tuple(_figure(names[place], row[place]) for place in places) for row in rows]
    return tuple(shown), Counter(body + sums)


def _sums(names, rows, has_net):
    """The sums of the columns of numbers and of each currency, as rows of their own."""
    sums = Counter()
    for row in rows:
        for name, cell in zip(names, row):
            if name == "net" and has_net:
                # A text that begins with a minus is quoted, and some reports are written for other
                # locales.
                words = cell.lstrip("'").replace(",", ".").split()
                for amount, currency in zip(words[::2], words[1::2]):
                    sums[currency] += Decimal(amount)
            elif name in SUMMED[:-1]:
                sums[name] += int(cell)
    return [("all", name, str(total.normalize() if isinstance(total, Decimal) else total))
            for name, total in sorted(sums.items()) if total]


def _figure(column, cell):
    is_unreadable = column in REASONS and not READABLE_REASON.fullmatch(cell)
    return MARK if is_unreadable else cell


def difference(before, after, line=""):
    """The differences of two exports of a report, beyond those that an erasure may cause.

    Each: (CSV or None, why not).
    """
    if None in (before[0], after[0]):
        return [] if before[0] is after[0] else [f"before: {before[1]}, after: {after[1]}"]
    (header, old), (other_header, new) = figures(before[0], line), figures(after[0], line)
    if header != other_header:
        return [f"columns {header} before, {other_header} after"]
    found = [(sign, row) for sign, rows in (("-", old - new), ("+", new - old)) for row in rows.elements()]
    return [sign + ",".join(map(quoted, row)) for sign, row in sorted(found)[:20]]


class Erasure:
    """One comparison of a ledger before and after users of it are erased."""

    def __init__(self, comparison, ledger, matrix):
        self.comparison, self.ledger, self.matrix = comparison, ledger, matrix
        self.before = ledger.lines()
        # Positions whose state must stay as it was: in the middle, and before the erasure.
        self.points = sorted({len(self.before) // 3, len(self.before) - 1})

    def run(self, count):
        """Erases this many users; returns how many there were."""
        users = chosen(self.before, count)
        if not users:
            return 0
        lines = list(dict.fromkeys(map(comparable, self.matrix)))
        known = {
            (point, line): self.ledger.export([*shlex.split(line), "--as-of", str(point)])
            for point in self.points for line in lines
        }
        for user in users:
            option = ["--user", user] if not user.startswith("-") else [f"--user={user}"]
            self.ledger.run("redact", *option, "--reason", "user_request", "--yes",
                            "--ledger", self.ledger.directory)
        after = self.ledger.lines()
        names = self._check_lines(after, users)
        self._compare_with_oracle(after, names)
        self._compare_with_before(known, lines, names)
        return len(users)

    def _check_lines(self, after, users):
        """Checks that only the users in the log have changed; returns the present name of each."""
        names = renamed(self.before, after, users)
        for user, name in names.items():
            found = [] if name else ["an upload has its data, or another name than the others"]
            self.comparison.note(f"user {users.index(user) + 1} in the log", found)
        positions = remaining(after, set(users))
        self.comparison.note("no event names an erased user", [f"positions {positions}"] if positions else [])
        heads = ([line.partition(b',"salt":')[0] for line in lines] for lines in (self.before, after))
        old, new = heads
        self.comparison.note("the events are the same", [] if new[: len(old)] == old else ["headers differ"])
        return names

    def _compare_with_oracle(self, after, names):
        lines = [*self.matrix, *filter(None, (about(line, names) for line in self.matrix))]
        self.comparison.compare_all(self.ledger, read_log(after), lines, has_positions=True)
        for point in (*self.points, len(self.before)):
            book = read_log(after[: point + 1])
            self.comparison.compare_all(
                self.ledger, book, lines[::STEP_AT_POINTS], has_positions=True, as_of=point)

    def _compare_with_before(self, known, lines, names):
        latest = self.points[-1]
        for line in lines:
            now = shlex.split(about(line, names) or line)
            for point in self.points:
                found = self.ledger.export([*now, "--as-of", str(point)])
                differs = difference(known[point, line], found, line)
                self.comparison.note(f"{line} as of {point}, before and after", differs)
            # Subscriptions are as of the last event, unless another moment is given.
            if not line.startswith("subscriptions") or "--at" in now:
                found = self.ledger.export(now)
                differs = difference(known[latest, line], found, line)
                self.comparison.note(f"{line}, before and after", differs)
