# Kills merges of two ledgers and of a copy in an object store at random moments. The same runs of the same
# ledgers make the same log, so a killed merge that was completed must be the undisturbed one, byte for byte.
import json
import shutil
import subprocess
import time

import seaweed
import serving
from harness import DONE, DONE_WITH_WARNINGS, generate_history

OPTIONS = {
    "kills": (50, ""),
    "runs": (10, "of the merge, each after more events"),
    "uploads": (3000, "of the history"),
    "seed": (1, "where random moments begin"),
}
BUCKET = "merged"
TARGET = f"s3://{BUCKET}/copied"
# Nothing may be read or appended before the run is completed.
INTERRUPTED, NO_LEDGER = 13, 10
# In this part of the runs a ledger has erased an upload before.
ERASED_PART = 0.5
# In this part the ledgers also receive what another one received.
SHARED_PART = 0.3


def lines_of(directory):
    return [line for line in serving.log_lines(directory) if line.startswith(b'{"seq":')]


class Campaign:
    def __init__(self, arguments, place, store, chance, checks):
        self.arguments, self.place, self.chance = arguments, place, chance
        self.checks, self.counts = checks, checks.counts
        history, _ = generate_history(arguments.programs, place, arguments.uploads, arguments.seed)
        self.history = history.read_bytes().splitlines(keepends=True)
        self.ledgers = [
            serving.PlainLedger(arguments.programs, place / name, origin=f"example.com/{name}")
            for name in ("first", "second", "copied")
        ]
        settings = store.settings(TARGET)
        config = self.ledgers[2].directory / "config.json"
        config.touch(mode=0o600)
        config.write_text(json.dumps({"replication": settings}))
        self.sources = [
            *(ledger.directory for ledger in self.ledgers[:2]), TARGET,
            "--endpoint", store.endpoint, "--region", seaweed.REGION,
            "--credentials-file", store.credentials_file,
        ]  # fmt: skip
        self.undisturbed, self.killed = place / "undisturbed", place / "killed"
        self.seconds = 0

    def command(self, *arguments):
        return self.ledgers[0].done(*arguments, elsewhere=True)

    def grow(self, number):
        """Each ledger receives its part of the history's next lines, and some of those of the others."""
        size = len(self.history) // self.arguments.runs
        lines = self.history[number * size : (number + 1) * size]
        part = self.place / "part.ndjson"
        for index, ledger in enumerate(self.ledgers):
            part.write_bytes(
                b"".join(
                    line
                    for place, line in enumerate(lines)
                    if place % len(self.ledgers) == index or self.chance.random() < SHARED_PART
                )
            )
            ledger.run("import", part, "--register-apps", allowed=(DONE, DONE_WITH_WARNINGS))
        if self.chance.random() < ERASED_PART:
            ledger = self.chance.choice(self.ledgers)
            events = [json.loads(line) for line in lines_of(ledger.directory)]
            uploads = [event for event in events if event["type"] == "receipt.uploaded" and event["data"]]
            position = self.chance.choice(uploads)["seq"]
            ledger.run("redact", "--position", position, "--reason", "user_request", "--yes")
            self.counts["erasures"] += 1
        self.ledgers[2].run("replicate")

    def merge(self, directory):
        began = time.monotonic()
        done = self.command("merge", "-o", directory, *self.sources)
        if done.returncode not in (DONE, DONE_WITH_WARNINGS):
            raise SystemExit(f"merge exited with {done.returncode}: {done.stderr[-800:]}")
        return time.monotonic() - began

    def kill(self, before, after):
        """Kills a run; the ledger is as before or as after it, or can't be used."""
        command = [self.ledgers[0].program, "merge", "-o", self.killed, *self.sources]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.chance.uniform(0, 1.1 * self.seconds))
        process.kill()
        process.wait()
        self.counts["kills"] += 1
        audit = self.command("audit", "--ledger", self.killed)
        if audit.returncode == DONE:
            self.checks.expect(lines_of(self.killed) in (before, after), "a part of a run counts")
            return
        self.counts["left something unfinished"] += 1
        # Before the first run there may be no ledger yet.
        allowed = (INTERRUPTED,) if before else (INTERRUPTED, NO_LEDGER)
        code = audit.returncode
        self.checks.expect(code in allowed, f"audit exits with {code}: {audit.stderr}")

    def run(self, number):
        self.grow(number)
        before = lines_of(self.undisturbed) if number else []
        self.seconds = self.merge(self.undisturbed)
        after = lines_of(self.undisturbed)
        for _ in range(-(-self.arguments.kills // self.arguments.runs)):
            self.kill(before, after)
        self.merge(self.killed)
        found = lines_of(self.killed)
        # A run that was whole when it was killed is followed by one that finds nothing new.
        if found != after:
            self.checks.expect(found[: len(after)] == after, f"run {number} is another one")
        shutil.rmtree(self.undisturbed)
        shutil.copytree(self.killed, self.undisturbed, symlinks=True)

    def finish(self):
        done = self.command("merge", "--verify", self.killed, *self.sources)
        self.checks.expect(done.returncode == DONE, f"--verify finds {done.stdout}{done.stderr}")
        done = self.command("audit", "--ledger", self.killed)
        self.checks.expect(done.returncode == DONE, f"the merged ledger is not whole: {done.stdout}")
        self.counts["merged events"] = len(lines_of(self.killed))
        left = [path.name for path in self.place.glob("killed.*")]
        self.checks.expect(not left, f"there is {left}")


def run(arguments, place, chance, checks):
    with seaweed.Store(place / "store") as store:
        store.make_bucket(BUCKET)
        campaign = Campaign(arguments, place, store, chance, checks)
        for number in range(arguments.runs):
            campaign.run(number)
        campaign.finish()
    checks.expect(checks.counts["left something unfinished"], "no merge was interrupted")
