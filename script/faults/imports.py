# Kills imports and rebuilds at random moments, and holds the ledger against an undisturbed one.
import json
import pathlib
import signal
import tempfile
import time
import zlib

import serving
from harness import DONE, DONE_WITH_WARNINGS, generate_history

OPTIONS = {
    "uploads": (3000, "of the history"),
    "kills": (15, "imports, in a round"),
    "rebuild-kills": (3, "rebuilds, in a round"),
    "rounds": (1, "each with a ledger of its own"),
    "seed": (1, "where random histories and moments begin"),
}
REPORTS = ["revenue", "journal", "sales", "exceptions", "receipts", "users"]
# When an event was recorded is the clock's, an app family's id is random, and receipt ids follow from it.
VARYING = {"created_at", "updated_at", "app_family_id", "receipt_id"}


class Ledger(serving.PlainLedger):
    def killed(self, arguments, after_seconds, since_the_log_grew=False):
        """Starts a command and kills it; whether it was still running then."""
        sizes = self.sizes()
        process = self.start(*arguments)
        if since_the_log_grew and not serving.wait_until(
            lambda: process.poll() is not None or self.has_grown(sizes), 600, 0.0005
        ):
            raise SystemExit(f"{arguments} neither writes nor ends")
        time.sleep(after_seconds)
        process.kill()
        return process.wait() == -signal.SIGKILL

    def sizes(self):
        """The sizes of the log's tails by their names; one that vanishes meanwhile has none."""
        sizes = {}
        for path in (self.directory / "log").glob("tail-*.log"):
            try:
                sizes[path.name] = path.stat().st_size
            except FileNotFoundError:
                pass
        return sizes

    def has_grown(self, before):
        """Whether a tail is longer than it was: what recovery copies, cuts or removes is not."""
        return any(size > before.get(name, 0) for name, size in self.sizes().items())

    def comparable_events(self):
        events = self.events(without=VARYING)
        for _, data in events:
            if data.get("authority") == "local":
                # A local check happens during the import.
                del data["occurred_at"]
        return events

    def upload_count(self):
        """How many uploads the log holds after a kill: what was sealed twice included."""
        # The kill cut a block that was being appended; its tail holds the events.
        lines = serving.log_lines(self.directory, tolerated=(EOFError, OSError, zlib.error))
        kind = b',"type":"receipt.uploaded",'
        return len({line[: line.index(b",")] for line in lines if kind in line[:64]})

    def rows(self, name):
        return [
            {key: value for key, value in json.loads(row).items() if key not in VARYING}
            for row in self.report(name).splitlines()
        ]


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


def round_of_kills(arguments, place, chance, checks):
    """Imports and rebuilds that are killed, held against undisturbed ones."""
    programs = arguments.programs
    history, prices = generate_history(programs, place, arguments.uploads, chance.randrange(1 << 30))
    undisturbed = Ledger(programs, place / "undisturbed", "example.com/kills")
    began = time.monotonic()
    import_command = ("import", str(history), "--register-apps")
    undisturbed.run(*import_command, allowed=(DONE, DONE_WITH_WARNINGS))
    typical_seconds = time.monotonic() - began
    undisturbed.run("prices", "import", str(prices))

    ledger = Ledger(programs, place / "killed", "example.com/kills")
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

    events = ledger.comparable_events()
    expected = undisturbed.comparable_events()
    differing = [at for at, pair in enumerate(zip(events, expected)) if pair[0] != pair[1]]
    checks.expect(
        len(events) == len(expected) and not differing,
        f"{len(events)} events, {len(expected)} expected; differing: {differing[:10]}",
    )
    lines = [data["line_sha256"] for kind, data in events if kind == "receipt.uploaded"]
    checks.expect(len(lines) == arguments.uploads, f"{len(lines)} uploads are in the log")
    checks.expect(len(set(lines)) == len(lines), "a line was imported twice")
    for name in REPORTS:
        found = ledger.rows(name)
        checks.expect(found and found == undisturbed.rows(name), f"{name} differs")
    ledger.run(*import_command, allowed=(DONE, DONE_WITH_WARNINGS))
    checks.expect(ledger.comparable_events() == events, "an import of what is known appends events")
    ledger.run("rebuild")
    for name in REPORTS:
        checks.expect(
            ledger.rows(name) == undisturbed.rows(name), f"{name} differs after a rebuild"
        )
    ledger.run("audit")
    checks.counts["imports killed"] += killed
    checks.counts["rebuilds killed"] += killed_rebuilds


def run(arguments, place, chance, checks):
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory(dir=place) as own:
            round_of_kills(arguments, pathlib.Path(own), chance, checks)
