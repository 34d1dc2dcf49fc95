# Kills a server that replicates, the store that it replicates to, and both, again and again. After each kill
# a restore must hold everything that was confirmed; copies take over, and the writer before must notice.
# In some rounds an object of the copy is lost: that must be noticed, and the copy be whole again.
import base64
import collections
import json
import shutil
import time
import xml.etree.ElementTree

import seaweed
import serving
from harness import end_load

OPTIONS = {
    "kills": (200, ""),
    "rate": (200, "uploads a second"),
    "mean-seconds": (0.8, "between two kills"),
    "mode": (["sync", "async"], "of the replication"),
    "seed": (1, "where random moments begin"),
}
BODIES = 400
BUCKET = "copies"
STANDBY = 13
# Every so manieth time that the writer dies, its copy takes over.
PROMOTED_EVERY = 3
CATCH_UP_LIMIT_SECONDS = 60
PREFIX = "ledger/"
# In this part of the rounds an object of the copy is lost.
LOST_PART = 0.1
# Of the steps, older ones are of no use any more.
STEPS_AT_RISK = 50
# A log whose writer runs is read this often at most.
READ_LIMIT = 10


def lines_of(directory):
    """The lines of a log by position. A tail may outlive its block."""
    for attempt in range(READ_LIMIT):
        lines = {}
        try:
            # The block that was being written when the writer died is cut short; its tail is there.
            for line in serving.log_lines(directory, tolerated=EOFError):
                if line.startswith(b'{"seq":') and line.endswith(b"}\n"):
                    lines.setdefault(json.loads(line)["seq"], line)
            return lines
        except FileNotFoundError:
            # A running writer made a block of the tail meanwhile.
            if attempt + 1 == READ_LIMIT:
                raise


def replication_state(directory):
    try:
        return json.loads((directory / "replication/state.json").read_text())
    except FileNotFoundError:
        return {}


def confirmed_of(directory):
    """How many events the ledger knows to be in its copy, and their root."""
    record = replication_state(directory)
    return (record["size"], record["root"]) if record else (0, None)


def uploads_in(lines):
    """The load generator's numbers of the uploads in a log."""
    numbers = set()
    for line in lines.values():
        event = json.loads(line)
        if event["type"] in ("receipt.uploaded", "transactions.received"):
            numbers.add(int(event["data"]["metadata"]["upload"]))
    return numbers


class Campaign:
    def __init__(self, arguments, place, store, chance, checks):
        self.arguments, self.place, self.store = arguments, place, store
        self.programs, self.chance = arguments.programs, chance
        self.checks, self.counts = checks, checks.counts
        self.store.make_bucket(BUCKET)
        authority, self.bodies = place / "authority", place / "uploads.ndjson"
        serving.sign_transactions(self.programs, authority, self.bodies, BODIES)
        # Nobody asks it: signed transactions need no call.
        self.stand_in = serving.StandIn(self.programs, authority)
        self.replication = self.store.settings(
            f"s3://{BUCKET}/{PREFIX[:-1]}", mode=arguments.mode, sync_limit_ms=2_000
        )
        self.ledger = serving.Ledger(
            self.programs, place / "ledger-0", self.stand_in.facts, settings={"replication": self.replication}
        )
        self.answers_path = place / "answers.ndjson"
        self.restores = 0

    # The load

    def start(self):
        self.server = serving.Server(self.ledger)
        self.listen = self.server.url.removeprefix("http://")
        # With `async` the copy lags: one that has no app yet would take every upload for a forgery.
        self.check_catch_up()
        self.generator = serving.load(
            self.programs, self.server, self.ledger, self.bodies, "--rate", str(self.arguments.rate),
            "--duration", "86400", "--answers", str(self.answers_path), "--reconnect",
            path=serving.TRANSACTIONS_PATH,
        )  # fmt: skip

    def acknowledged(self):
        """The numbers of the uploads that were answered with 200, 206 or 402 so far."""
        found = set()
        if not self.answers_path.exists():
            return found
        for line in self.answers_path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                answer = json.loads(line)
                if answer["status"] in (200, 206, 402):
                    found.add(answer["upload"])
        return found

    # A kill

    def kill(self):
        if self.chance.random() < LOST_PART:
            return self.lose()
        kind = self.chance.choice(["writer", "writer", "store", "both"])
        self.counts[kind] += 1
        time.sleep(self.chance.uniform(0.2, 2 * self.arguments.mean_seconds))
        known = confirmed_of(self.ledger.directory)
        if kind != "writer":
            self.store.kill()
        if kind != "store":
            self.server.kill()
        if kind != "writer":
            time.sleep(self.chance.uniform(0, 1))
            self.store.start()
        if kind == "store":
            # The server went on, and catches up.
            self.check_catch_up()
            return
        restored = self.restore(known)
        self.counts["restores"] += 1
        if self.counts["restores"] % PROMOTED_EVERY == 0:
            self.promote(restored)
        else:
            shutil.rmtree(restored)
            self.serve_again()

    # A loss

    def keys(self):
        """The keys of all objects of the copy, in order."""
        found = []
        while True:
            query = {"list-type": "2", "prefix": PREFIX}
            if found:
                query["start-after"] = found[-1]
            status, body = self.store.request("GET", f"/{BUCKET}", query)
            assert status == 200, (status, body)
            page = xml.etree.ElementTree.fromstring(body)
            names = [element.text for element in page.iter() if element.tag.endswith("}Key")]
            if not names:
                return found
            found += names

    def chosen_key(self):
        """An object of a random kind."""
        kinds = collections.defaultdict(list)
        for key in self.keys():
            kinds[key.removeprefix(PREFIX).split("/")[0]].append(key)
        if "steps" in kinds:
            kinds["steps"] = kinds["steps"][-STEPS_AT_RISK:]
        return self.chance.choice(kinds[self.chance.choice(sorted(kinds))])

    def lose(self):
        """The store loses an object while the writer is dead.

        A restore names it if it is needed; the writer notices that, and stores it again.
        """
        time.sleep(self.chance.uniform(0.2, 2 * self.arguments.mean_seconds))
        self.server.kill()
        known = confirmed_of(self.ledger.directory)
        key = self.chosen_key()
        status, body = self.store.request("DELETE", f"/{BUCKET}/{key}")
        assert status in (200, 204), (status, body)
        name = key.removeprefix(PREFIX)
        self.counts["losses"] += 1
        directory = self.place / "damaged"
        done = self.command("restore", *self.copy_options(), directory, allowed=(0, 20))
        count = len(lines_of(directory)) if done.returncode == 0 else 0
        shutil.rmtree(directory, ignore_errors=True)
        # Without its newest step a copy is one with fewer events.
        is_needed = done.returncode == 20 or count < known[0]
        if done.returncode == 20:
            self.checks.expect(name in done.stderr, f"restore does not name {name}: {done.stderr[:800]}")
        began_ms = time.time() * 1000
        self.serve_again()
        is_whole = self.is_found_whole(began_ms)
        self.checks.expect(is_whole, f"after the loss of {name} the copy is not found whole")
        if is_needed:
            self.counts["needed"] += 1
            said = self.server.errors()
            self.checks.expect(name in said, f"the server does not name {name}: {said[-500:]}")
        shutil.rmtree(self.restore(known))

    def is_found_whole(self, began_ms):
        return serving.wait_until(
            lambda: replication_state(self.ledger.directory).get("whole_at", 0) >= began_ms,
            CATCH_UP_LIMIT_SECONDS,
        )

    # Servers and commands

    def serve_again(self):
        self.server = serving.Server(self.ledger, listen=self.listen)

    def check_catch_up(self):
        """A server whose store was away confirms everything once it is back."""
        size = len(lines_of(self.ledger.directory))
        is_there = serving.wait_until(
            lambda: confirmed_of(self.ledger.directory)[0] >= size, CATCH_UP_LIMIT_SECONDS
        )
        confirmed, _ = confirmed_of(self.ledger.directory)
        self.checks.expect(is_there, f"of {size} events only {confirmed} are confirmed")

    def command(self, *arguments, allowed=(0,)):
        done = self.ledger.done(*arguments, elsewhere=True)
        if done.returncode not in allowed:
            raise SystemExit(f"{arguments} exited with {done.returncode}: {done.stderr.strip()[-800:]}")
        return done

    def copy_options(self):
        return (
            "--from", self.replication["target"], "--endpoint", self.store.endpoint,
            "--region", seaweed.REGION, "--credentials-file", self.store.credentials_file,
        )  # fmt: skip

    def restore(self, known):
        """Restores the copy and holds it against the writer's disk and what was confirmed."""
        self.restores += 1
        directory = self.place / f"ledger-{self.restores}"
        self.command("restore", *self.copy_options(), directory)
        self.command("audit", "--ledger", directory)
        restored, disk = lines_of(directory), lines_of(self.ledger.directory)
        size, root = known
        count = len(restored)
        self.checks.expect(count >= size, f"{size} events were confirmed, {count} are restored")
        self.checks.expect(
            all(disk.get(position) == line for position, line in restored.items()),
            "the restored log is not the beginning of the writer's",
        )
        if size:
            shown = self.command("status", "--as-of", size - 1, "--json", "--ledger", directory).stdout
            found = base64.b64decode(json.loads(shown)["root"]).hex()
            self.checks.expect(found == root, f"the first {size} events are not those that were confirmed")
        return directory

    def promote(self, directory):
        """The copy takes over; the writer before must notice and end."""
        old = self.ledger
        shutil.copy2(old.directory / "config.json", directory / "config.json")
        refused = self.command("serve", "--ledger", directory, "--listen", "127.0.0.1:0", allowed=(STANDBY,))
        self.checks.expect("promote" in refused.stderr, f"a restored ledger says: {refused.stderr}")
        # The old writer may be back before the copy takes over, and writes on.
        is_back = self.chance.random() < 0.5
        if is_back:
            self.serve_again()
            time.sleep(self.chance.uniform(0, 2))
        self.command("promote", "--ledger", directory)
        if is_back:
            self.check_end_of_old()
        serve = ["serve", "--ledger", old.directory, "--listen", "127.0.0.1:0"]
        said = self.command(*serve, allowed=(STANDBY,)).stderr
        self.checks.expect("another writer has taken over" in said, f"a fenced one says: {said}")
        self.counts["promoted"] += 1
        old_directory = old.directory
        self.ledger.directory = directory
        self.check_divergence(old_directory)
        self.serve_again()
        shutil.rmtree(old_directory)

    def check_end_of_old(self):
        """A writer that is fenced ends by itself, and says why."""
        process = self.server.process
        serving.wait_until(lambda: process.poll() is not None, CATCH_UP_LIMIT_SECONDS)
        code, said = process.poll(), self.server.errors()
        self.checks.expect(code in (1, STANDBY), f"the writer before goes on (exit code {code})")
        self.checks.expect("another writer has taken over" in said, f"the writer before says: {said[-500:]}")
        if code is None:
            self.server.kill()

    def check_divergence(self, old):
        """What only the old disk holds can become a part of the new history.

        With `sync` none of it was acknowledged.
        """
        path = self.place / "divergence.ndjson"
        path.unlink(missing_ok=True)
        self.command("divergence", "--ledger", old, "-o", path, allowed=(0, 3))
        if self.arguments.mode == "sync":
            return
        if path.exists() and path.stat().st_size:
            self.command("import", path, "--ledger", self.ledger.directory, allowed=(0, 3))
        missing = uploads_in(lines_of(old)) - uploads_in(lines_of(self.ledger.directory))
        self.checks.expect(not missing, f"{len(missing)} uploads are lost: {sorted(missing)[:5]}")

    # The end

    def finish(self):
        time.sleep(1)
        report = end_load(self.generator)
        self.checks.expect(self.server.terminate() == 0, "serve does not end in order")
        print(report)
        lines = lines_of(self.ledger.directory)
        acknowledged = self.acknowledged()
        missing = acknowledged - uploads_in(lines)
        found = f"{len(missing)} of {len(acknowledged)} acknowledged uploads are lost"
        self.checks.expect(not missing, found)
        done = self.command("audit", "--replica", "--ledger", self.ledger.directory)
        print(done.stdout.strip().splitlines()[-1])
        # A server that ends in order has confirmed everything.
        restored = self.restore(confirmed_of(self.ledger.directory))
        self.checks.expect(lines_of(restored) == lines, "the copy is not the log")
        self.stand_in.stop()


def run(arguments, place, chance, checks):
    with seaweed.Store(place / "store") as store:
        campaign = Campaign(arguments, place, store, chance, checks)
        campaign.start()
        for _ in range(arguments.kills):
            campaign.kill()
        campaign.finish()
