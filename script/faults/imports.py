#!/usr/bin/env python3
# Kills imports and rebuilds at random moments, and holds the ledger against an undisturbed one.
import argparse
import gzip
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import zlib

DONE, DONE_WITH_WARNINGS = 0, 3
REPORTS = ["revenue", "journal", "sales", "exceptions", "receipts", "users"]
# When an event was recorded is the clock's, an app family's id is random, and receipt ids follow from it.
VARYING = {"created_at", "updated_at", "app_family_id", "receipt_id"}


class Ledger:
    def __init__(self, programs, directory):
        self.program = programs / "ledgerctl"
        self.directory = directory
        self.run("init", str(directory), "--origin", "example.com/kills", elsewhere=True)

    def command(self, arguments):
        return [self.program, *arguments, "--ledger", str(self.directory)]

    def run(self, *arguments, allowed=(DONE,), elsewhere=False):
        command = [self.program, *arguments] if elsewhere else self.command(arguments)
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if done.returncode not in allowed:
            error = done.stderr.decode(errors="replace").strip().splitlines()
            raise SystemExit(f"{arguments} exited with {done.returncode}: {error[-3:]}")
        return done.stdout.decode()

    def killed(self, arguments, after_seconds, since_the_log_grew=False):
        """Starts a command and kills it; whether it was still running then."""
        sizes = self.sizes()
        process = subprocess.Popen(
            self.command(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 600
        while since_the_log_grew and process.poll() is None and not self.has_grown(sizes):
            if time.monotonic() > end:
                raise SystemExit(f"{arguments} neither writes nor ends")
            time.sleep(0.0005)
        time.sleep(after_seconds)
        process.kill()
        return process.wait() == -signal.SIGKILL

    def sizes(self):
        """The sizes of the log's files by their names; one that vanishes meanwhile has none."""
        sizes = {}
        for entry in os.scandir(self.directory / "log"):
            try:
                sizes[entry.name] = entry.stat().st_size
            except FileNotFoundError:
                pass
        return sizes

    def has_grown(self, before):
        """Whether a tail is longer than it was: what recovery copies, cuts or removes is not."""
        return any(
            size > before.get(name, 0)
            for name, size in self.sizes().items()
            if name.startswith("tail-") and name.endswith(".log")
        )

    def events(self):
        """All events in position order, read without the program; no position twice."""
        lines = {}
        for path in sorted((self.directory / "log").glob("*.jsonl.gz")):
            with gzip.open(path, "rb") as segment:
                for line in segment:
                    self.take(line, lines)
        for path in sorted((self.directory / "log").glob("tail-*.log")):
            for line in path.read_bytes().splitlines(keepends=True):
                if not line.startswith(b"#"):
                    self.take(line, lines)
        if sorted(lines) != list(range(len(lines))):
            raise SystemExit("the log's positions have gaps")
        return [lines[position] for position in range(len(lines))]

    @staticmethod
    def take(line, lines):
        event = json.loads(line)
        if event["seq"] in lines:
            raise SystemExit(f"position {event['seq']} stands in the log twice")
        data = {key: value for key, value in event["data"].items() if key not in VARYING}
        if data.get("authority") == "local":
            # A local check happens during the import.
            del data["occurred_at"]
        lines[event["seq"]] = (event["type"], data)

    def upload_count(self):
        """How many uploads the log holds after a kill: a torn end and what was sealed twice included."""
        positions = set()
        for path in sorted((self.directory / "log").glob("*.jsonl.gz")):
            with gzip.open(path, "rb") as segment:
                positions |= set(upload_positions(segment))
        for path in sorted((self.directory / "log").glob("tail-*.log")):
            positions |= set(upload_positions(path.read_bytes().splitlines()))
        return len(positions)

    def report(self, name):
        rows = self.run("export", name, "--environment", "all", "--format", "ndjson")
        kept = []
        for row in map(json.loads, rows.splitlines()):
            kept.append({key: row[key] for key in row if key not in VARYING})
        return kept


def upload_positions(lines):
    try:
        for line in lines:
            if b',"type":"receipt.uploaded",' in line[:64]:
                yield line[: line.index(b",")]
    except (EOFError, OSError, zlib.error):
        # The kill cut a block that was being appended; its tail holds the events.
        return


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def expect(self, holds, what):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what}")


def import_until_done(ledger, history, uploads, kills, typical_seconds, chance):
    """Kills so many imports, then lets one finish: how many were killed, and of them between two appends."""
    import_command = ("import", str(history), "--register-apps")
    killed = in_the_middle = attempts = 0
    # So many kills together shall not outlast the work.
    limit_seconds = typical_seconds / kills
    while killed < kills and attempts < 10 * kills:
        attempts += 1
        before = ledger.upload_count()
        # One in four meets the beginning: opening, recovery, the look at what was imported.
        if attempts % 4 == 0:
            was_killed = ledger.killed(import_command, chance.uniform(0, typical_seconds / 4))
        else:
            was_killed = ledger.killed(
                import_command, chance.uniform(0, limit_seconds), since_the_log_grew=True
            )
        if was_killed:
            killed += 1
            in_the_middle += before < ledger.upload_count() < uploads
        else:
            limit_seconds *= 0.6
    ledger.run(*import_command, allowed=(DONE, DONE_WITH_WARNINGS))
    return killed, in_the_middle


def round_of_kills(programs, place, arguments, chance, checks):
    """Imports and rebuilds that are killed, held against undisturbed ones: how many of each were killed."""
    history, prices = place / "history.ndjson", place / "prices.csv"
    subprocess.run(
        [programs / "generate-history", "--small", "--uploads", str(arguments.uploads)]
        + ["--seed", str(chance.randrange(1 << 30)), "-o", str(history), "--prices", str(prices)],
        check=True,
    )
    undisturbed = Ledger(programs, place / "undisturbed")
    began = time.monotonic()
    import_command = ("import", str(history), "--register-apps")
    undisturbed.run(*import_command, allowed=(DONE, DONE_WITH_WARNINGS))
    typical_seconds = time.monotonic() - began
    undisturbed.run("prices", "import", str(prices))

    ledger = Ledger(programs, place / "killed")
    killed, in_the_middle = import_until_done(
        ledger, history, arguments.uploads, arguments.kills, typical_seconds, chance
    )
    print(f"{killed} imports were killed, {in_the_middle} of them in the middle", flush=True)
    # On a machine that stalls, an import gets further than planned, and the work ends before the kills do.
    checks.expect(
        killed >= arguments.kills * 2 // 3, f"only {killed} imports were killed in time"
    )
    checks.expect(
        in_the_middle >= arguments.kills // 3,
        f"only {in_the_middle} kills met an import that had appended and had lines left",
    )
    ledger.run("prices", "import", str(prices))
    killed_rebuilds = attempts = 0
    while killed_rebuilds < arguments.rebuild_kills and attempts < 10 * arguments.rebuild_kills:
        attempts += 1
        killed_rebuilds += ledger.killed(("rebuild",), chance.uniform(0, typical_seconds / 4))
    print(f"{killed_rebuilds} rebuilds were killed", flush=True)

    events = ledger.events()
    expected = undisturbed.events()
    differing = [at for at, pair in enumerate(zip(events, expected)) if pair[0] != pair[1]]
    checks.expect(
        len(events) == len(expected) and not differing,
        f"{len(events)} events, {len(expected)} expected; differing: {differing[:10]}",
    )
    lines = [data["line_sha256"] for kind, data in events if kind == "receipt.uploaded"]
    checks.expect(len(lines) == arguments.uploads, f"{len(lines)} uploads are in the log")
    checks.expect(len(set(lines)) == len(lines), "a line was imported twice")
    for name in REPORTS:
        found = ledger.report(name)
        checks.expect(found and found == undisturbed.report(name), f"{name} differs")
    ledger.run(*import_command, allowed=(DONE, DONE_WITH_WARNINGS))
    checks.expect(ledger.events() == events, "an import of what is known appends events")
    ledger.run("rebuild")
    for name in REPORTS:
        checks.expect(
            ledger.report(name) == undisturbed.report(name), f"{name} differs after a rebuild"
        )
    ledger.run("audit")
    return killed, killed_rebuilds


def main():
    parser = argparse.ArgumentParser(description="Kills imports and compares what they leave.")
    parser.add_argument("--programs", required=True, type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("--uploads", type=int, default=3000)
    parser.add_argument("--kills", type=int, default=15, help="imports, in a round")
    parser.add_argument("--rebuild-kills", type=int, default=3, help="rebuilds, in a round")
    parser.add_argument("--rounds", type=int, default=1, help="each with a ledger of its own")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    programs = arguments.programs.resolve()
    chance = random.Random(arguments.seed)
    checks = Checks()
    print(
        f"{arguments.rounds} rounds of {arguments.kills} kills of imports and "
        f"{arguments.rebuild_kills} of rebuilds, {arguments.uploads} uploads, seed {arguments.seed}",
        flush=True,
    )
    totals = [0, 0]
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as temporary:
            killed = round_of_kills(programs, pathlib.Path(temporary), arguments, chance, checks)
        totals = [total + count for total, count in zip(totals, killed)]
    print(f"kills survived: {totals[0]} of imports, {totals[1]} of rebuilds")
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
