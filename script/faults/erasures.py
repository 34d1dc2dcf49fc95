# Kills `ledgerctl redact`, and servers that erase, at any moment: an erasure must have happened as a whole or
# not at all, and the next command that writes must finish what was begun.
import json
import shutil
import time
import urllib.request

import planted
import search
import serving
import signing
from harness import DONE, DONE_WITH_WARNINGS, KILLED, generate_history, strace, traced_calls

OPTIONS = {
    "kills": (20, ""),
    "uploads": (1000, "beside those of planted people"),
    "seed": (1, "where random moments begin"),
}
# Each moment between two of these is another state of the files; most other calls write SQLite's pages.
TURNS = {
    "fsync", "fdatasync", "renameat", "rename", "unlink", "unlinkat", "symlinkat", "mkdirat", "ftruncate",
}  # fmt: skip
REPORTS = ["revenue", "journal", "users", "exceptions"]
PEOPLE = 4
# Every so manieth kill meets a server.
SERVED_EVERY = 5
LIMIT_SECONDS = 120


class Baseline:
    """A ledger with people in an invented history, a snapshot and a checkpoint; only copies are killed."""

    def __init__(self, programs, place, uploads, seed):
        self.place = place
        self.stand_in = serving.StandIn(programs, place / "authority")
        self.ledger = serving.Ledger(programs, place / "baseline", self.stand_in.facts)
        history = planted.History(seed, PEOPLE, receipts=2)
        self.person = history.people[0]
        history.share_receipt(history.people[1], history.people[2])
        sign = signing.StandIn(programs / "app-store-stand-in", place / "authority")
        lines = history.lines(sign, self.ledger.app_family)
        invented, prices = generate_history(programs, place, uploads, seed)
        allowed = (DONE, DONE_WITH_WARNINGS)
        self.run("import", invented, "--register-apps", allowed=allowed)
        self.run("prices", "import", prices)
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
        self.reports = {name: search.figures(self.ledger.report(name, "csv")) for name in REPORTS}
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

    def copied(self, name):
        return self.ledger.copied(self.place / name)

    def duration(self):
        """How long an undisturbed erasure takes."""
        ledger = self.copied("timed")
        begun = time.monotonic()
        if ledger.start(*self.erase).wait() != DONE:
            raise SystemExit("an undisturbed erasure fails")
        return time.monotonic() - begun


class Campaign:
    def __init__(self, baseline, checks, chance):
        self.baseline, self.checks, self.chance = baseline, checks, chance
        self.seconds = baseline.duration()
        self.points = self.turns = ()
        if shutil.which("strace") is not None:
            self.points = traced_calls(baseline.copied("traced"), baseline.place / "trace", *baseline.erase)
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

    def count(self, code):
        self.checks.counts["killed" if code in KILLED else "done before the kill"] += 1

    def kill_at_call(self, ledger, number):
        call, ordinal = self.chance.choice(self.turns if number % 2 else self.points)
        tracer = strace(f"inject={call}:signal=SIGKILL:when={ordinal}")
        self.count(ledger.start(*self.baseline.erase, before=tracer).wait())
        return f"before {call} {ordinal}"

    def kill_after_delay(self, ledger):
        process = ledger.start(*self.baseline.erase)
        delay = self.chance.uniform(0, self.seconds)
        time.sleep(delay)
        process.kill()
        self.count(process.wait())
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
        self.count(server.kill())
        self.checks.counts["kills of servers"] += 1
        return f"a server after {delay:.3f} s"

    # What must hold.

    def shown(self, ledger, where):
        """Whether readers still show the person: all of them everything, or none anything."""
        baseline = self.baseline
        log = ledger.run("replay")
        users = ledger.report("users", "json")
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
        self.checks.counts["kills that left the person" if is_before else "kills that did not"] += 1
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
            done = ledger.done(*command)
            said = (done.stdout + done.stderr)[-300:]
            expect(done.returncode == DONE, f"{where}: {command} exits with {done.returncode}: {said}")
        for name in REPORTS:
            is_same = search.figures(ledger.report(name, "csv")) == baseline.reports[name]
            expect(is_same, f"{where}: {name} differs")


def run(arguments, place, chance, checks):
    baseline = Baseline(arguments.programs, place, arguments.uploads, arguments.seed)
    try:
        campaign = Campaign(baseline, checks, chance)
        print(
            f"{len(baseline.lines)} events; an erasure takes {campaign.seconds:.1f} s and makes "
            f"{len(campaign.points)} calls on files",
            flush=True,
        )
        for number in range(arguments.kills):
            campaign.kill(number)
    finally:
        baseline.stand_in.stop()
    checks.expect(checks.counts["killed"], "nothing was killed: nothing was tried")
