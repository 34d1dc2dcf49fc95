#!/usr/bin/env python3
# Kills `ledgerctl redact`, and servers that erase, at any moment: an erasure must have happened as a whole or
# not at all, and the next command that writes must finish what was begun.
import argparse
import collections
import copy
import csv
import io
import json
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import serving

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "Tests/Erasure"), str(ROOT / "Tests/Oracle")]
import planted  # noqa: E402
import search  # noqa: E402
import signing  # noqa: E402

CALLS = [
    "openat", "write", "pwrite64", "ftruncate", "fsync", "fdatasync", "renameat", "rename", "unlink",
    "unlinkat", "symlinkat", "mkdirat", "fchown",
]  # fmt: skip
# Each moment between two of these is another state of the files; most other calls write SQLite's pages.
TURNS = {
    "fsync", "fdatasync", "renameat", "rename", "unlink", "unlinkat", "symlinkat", "mkdirat", "ftruncate",
}  # fmt: skip
REPORTS = ["revenue", "journal", "users", "exceptions"]
# The columns in which an erasure may show.
NAMING = ("user_identifier", "receipt_id", "detail")
PEOPLE = 4
# Every so manieth kill meets a server.
SERVED_EVERY = 5
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
DONE, DONE_WITH_WARNINGS = 0, 3
LIMIT_SECONDS = 120


class Checks:
    def __init__(self):
        self.passed = self.failed = 0
        self.counts = collections.Counter()

    def expect(self, holds, what):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what}", flush=True)


def figures(text):
    """How often each row stands in a CSV, without what may change."""
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    places = [place for place, name in enumerate(rows[0]) if name not in NAMING]
    return collections.Counter(tuple(row[place] for place in places) for row in rows)


class Baseline:
    """A ledger with people in an invented history, a snapshot and a checkpoint; only copies are killed."""

    def __init__(self, programs, place, uploads, seed):
        self.programs, self.place = programs, place
        self.stand_in = serving.StandIn(programs, place / "authority")
        self.ledger = serving.Ledger(programs, place / "baseline", self.stand_in.facts)
        history = planted.History(seed, PEOPLE, receipts=2)
        self.person = history.people[0]
        history.share_receipt(history.people[1], history.people[2])
        sign = signing.StandIn(programs / "app-store-stand-in", place / "authority")
        lines = history.lines(sign, self.ledger.app_family)
        invented, prices = place / "invented.ndjson", place / "prices.csv"
        subprocess.run(
            [programs / "generate-history", "--small", "--uploads", str(uploads), "--seed", str(seed)]
            + ["-o", str(invented), "--prices", str(prices)],
            check=True,
        )
        allowed = (DONE, DONE_WITH_WARNINGS)
        self.run("import", str(invented), "--register-apps", allowed=allowed)
        self.run("prices", "import", str(prices))
        self.known = place / "known.ndjson"
        for name, part in (("early", lines[: len(lines) // 2]), ("known", lines[len(lines) // 2 :])):
            path = place / f"{name}.ndjson"
            path.write_text("".join(line + "\n" for line in part))
            self.run("import", str(path), allowed=allowed)
            if name == "early":
                self.run("key", "create")
                self.run("snapshot", "create")
                self.run("checkpoint")
        made = self.run("token", "create", "--app", self.ledger.app_family, "--scope", "erase", "--json")
        self.erase_token = json.loads(made)["token"]
        self.lines = self.run("replay").splitlines()
        self.reports = {name: figures(self.report(self.ledger, name)) for name in REPORTS}
        self.searcher = search.Searcher([self.person])
        # An event that shows the person, and lots of identifiers.
        self.upload = next(
            event["seq"]
            for event in map(json.loads, self.lines)
            if event["data"].get("user_identifier") == self.person.user
        )
        self.erase = ["redact", f"--user={self.person.user}", "--reason", "user_request", "--yes"]

    def run(self, *arguments, **options):
        return self.ledger.run(*arguments, **options)

    @staticmethod
    def report(ledger, name):
        return ledger.run("export", name, "--environment", "all", "--format", "csv")

    def copied(self, name):
        ledger = copy.copy(self.ledger)
        ledger.directory = self.place / name
        shutil.rmtree(ledger.directory, ignore_errors=True)
        shutil.copytree(self.ledger.directory, ledger.directory, symlinks=True)
        return ledger

    def points(self):
        """Each call of an erasure that touches the ledger's files: its name and its ordinal in its thread."""
        ledger = self.copied("traced")
        trace = self.place / "trace"
        command = ["strace", "-f", "-y", "-qq", "-o", str(trace), "-e", f"trace={','.join(CALLS)}"]
        self.start(ledger, command).wait()
        counts, found = collections.Counter(), set()
        for line in trace.read_text(errors="replace").splitlines():
            match = re.match(r"(\d+) +(\w+)\(", line)
            if match:
                counts[match[1], match[2]] += 1
                if str(ledger.directory) in line:
                    found.add((match[2], counts[match[1], match[2]]))
        return sorted(found)

    def start(self, ledger, tracer=()):
        return subprocess.Popen(
            [*tracer, ledger.program, *self.erase, "--ledger", str(ledger.directory)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def duration(self):
        """How long an undisturbed erasure takes."""
        ledger = self.copied("timed")
        begun = time.monotonic()
        if self.start(ledger).wait() != DONE:
            raise SystemExit("an undisturbed erasure fails")
        return time.monotonic() - begun


class Campaign:
    def __init__(self, baseline, checks, chance):
        self.baseline, self.checks, self.chance = baseline, checks, chance
        self.seconds = baseline.duration()
        self.points = self.turns = ()
        if shutil.which("strace") is not None:
            self.points = baseline.points()
            self.turns = [point for point in self.points if point[0] in TURNS]

    def kill(self, number):
        ledger = self.baseline.copied("disturbed")
        if number % SERVED_EVERY == SERVED_EVERY // 2:
            where = self.kill_server(ledger)
        elif self.points:
            where = self.kill_at_call(ledger, number)
        else:
            where = self.kill_after_delay(ledger)
        self.check(ledger, f"kill {number + 1}, {where}", number)
        shutil.rmtree(ledger.directory)

    def note(self, code):
        self.checks.counts["killed" if code in KILLED else "done before"] += 1

    def kill_at_call(self, ledger, number):
        call, ordinal = self.chance.choice(self.turns if number % 2 else self.points)
        rule = f"inject={call}:signal=SIGKILL:when={ordinal}"
        tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", rule]
        self.note(self.baseline.start(ledger, tracer).wait())
        return f"before {call} {ordinal}"

    def kill_after_delay(self, ledger):
        process = self.baseline.start(ledger)
        delay = self.chance.uniform(0, self.seconds)
        time.sleep(delay)
        process.kill()
        self.note(process.wait())
        return f"after {delay:.3f} s"

    def kill_server(self, ledger):
        server = serving.Server(ledger)
        body = {"user_identifier": self.baseline.person.user, "reason": "user_request", "urgent": True}
        headers = {"Authorization": "Bearer " + self.baseline.erase_token, "Content-Type": "application/json"}
        request = urllib.request.Request(
            server.url + "/v1/erasures", data=json.dumps(body).encode(), headers=headers
        )
        urllib.request.urlopen(request, timeout=LIMIT_SECONDS).close()
        # It looks for requests every second.
        delay = self.chance.uniform(0, 1.2 + self.seconds)
        time.sleep(delay)
        self.note(server.kill())
        self.checks.counts["of servers"] += 1
        return f"a server after {delay:.3f} s"

    # What must hold.

    def shown(self, ledger, where):
        """Whether readers still show the person: all of them everything, or none anything."""
        baseline = self.baseline
        log = ledger.run("replay")
        users = ledger.run("export", "users", "--environment", "all", "--format", "json")
        event = ledger.run("show", str(baseline.upload), "--json")
        tells = {}
        for name, text in (("replay", log), ("export users", users), ("show", event)):
            tells[name] = bool(baseline.searcher.in_blobs([(name, text.encode())]))
        self.checks.expect(len(set(tells.values())) == 1, f"{where}: who shows the person: {tells}")
        lines = log.splitlines()
        if tells["replay"]:
            is_whole = lines[: len(baseline.lines)] == baseline.lines
            self.checks.expect(is_whole, f"{where}: events are others, but the person is there")
        else:
            heads = [line.partition(',"salt":')[0] for line in lines]
            expected = [line.partition(',"salt":')[0] for line in baseline.lines]
            self.checks.expect(heads[: len(expected)] == expected, f"{where}: events are missing")
        return tells["replay"]

    def check(self, ledger, where, number):
        baseline, expect = self.baseline, self.checks.expect
        is_before = self.shown(ledger, where)
        self.checks.counts["before the commit" if is_before else "after it"] += 1
        # Two commands that write: one for this, one that has nothing else to do.
        if number % 2:
            ledger.run("redact", "--again")
        else:
            ledger.run("import", str(baseline.known), allowed=(DONE, DONE_WITH_WARNINGS))
        expect(not (ledger.directory / "erasures/lines").exists(), f"{where}: it was not finished")
        if is_before:
            ledger.run("redact", "--now")
            if self.shown(ledger, f"{where}, then carried out"):
                # It was killed before the request was kept.
                ledger.run(*baseline.erase)
        found = baseline.searcher.in_directory(ledger.directory)
        left = sorted((name, sorted(what)[:3]) for name, what in found.items())
        expect(not left, f"{where}: left {left}")
        expect(not self.shown(ledger, f"{where}, then finished"), f"{where}: the person is shown")
        listed = json.loads(ledger.run("redact", "list", "--json"))["requests"]
        states = {record["state"] for record in listed}
        expect(states <= {"done"}, f"{where}: requests are {states}")
        for command in (("audit", "--projections"), ("rebuild", "--check")):
            done = subprocess.run(
                [ledger.program, *command, "--ledger", str(ledger.directory)],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            )  # fmt: skip
            said = (done.stdout + done.stderr)[-300:]
            expect(done.returncode == DONE, f"{where}: {command} exits with {done.returncode}: {said}")
        for name in REPORTS:
            is_same = figures(baseline.report(ledger, name)) == baseline.reports[name]
            expect(is_same, f"{where}: {name} differs")


def main():
    parser = argparse.ArgumentParser(description="Kills erasures and looks for what they leave.")
    parser.add_argument("--programs", required=True, type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--uploads", type=int, default=1000, help="beside those of planted people")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    programs = arguments.programs.resolve()
    checks = Checks()
    with tempfile.TemporaryDirectory() as temporary:
        place = pathlib.Path(temporary).resolve()
        baseline = Baseline(programs, place, arguments.uploads, arguments.seed)
        try:
            campaign = Campaign(baseline, checks, random.Random(arguments.seed))
            print(
                f"{arguments.kills} kills, {len(baseline.lines)} events, seed {arguments.seed}; an erasure "
                f"takes {campaign.seconds:.1f} s and makes {len(campaign.points)} calls on files",
                flush=True,
            )
            for number in range(arguments.kills):
                campaign.kill(number)
        finally:
            baseline.stand_in.stop()
    counts = checks.counts
    print(
        f"{counts['killed']} killed, {counts['of servers']} of servers; {counts['done before']} done before; "
        f"{counts['before the commit']} kills left the person, {counts['after it']} did not"
    )
    print(f"{checks.passed} passed, {checks.failed} failed")
    # Where nothing was killed, nothing was tried.
    sys.exit(1 if checks.failed or not counts["killed"] else 0)


if __name__ == "__main__":
    main()
