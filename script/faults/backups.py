# Kills a backup, the server of its ledger, and both, again and again. An unfinished backup must not count,
# and a finished one must restore to a whole ledger with every upload that was answered before it began.
import http.client
import json
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import serving
from copies import lines_of, uploads_in

OPTIONS = {
    "kills": (50, ""),
    "mean-seconds": (0.5, "between two backups"),
    "seed": (1, "where random moments begin"),
}
BODIES = 400
# In this part of the rounds the server erases an upload meanwhile.
ERASED_PART = 0.25
# Older backups are removed.
KEPT = 4
UPLOADS = ("receipt.uploaded", "transactions.received")
UPLOADERS = 4
LIMIT_SECONDS = 300
# In each body, in place of an upload's number.
UNNUMBERED = b"000000000000"


def leaves(lines):
    """What no erasure changes of each line: position, type, time and digest."""
    return {position: line.split(b',"salt":')[0] for position, line in lines.items()}


class Uploader(threading.Thread):
    """Sends uploads, one after the other, and knows at any moment which were answered."""

    def __init__(self, campaign, first):
        super().__init__(daemon=True)
        self.campaign, self.number = campaign, first
        self.acknowledged = []
        self.is_over = False

    def run(self):
        bodies = self.campaign.bodies
        headers = {"Authorization": f"Bearer {self.campaign.token}", "Content-Type": "application/json"}
        while not self.is_over:
            body = bodies[self.number % len(bodies)].replace(UNNUMBERED, b"%012d" % self.number)
            url = self.campaign.server.url + serving.TRANSACTIONS_PATH
            try:
                with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30):
                    self.acknowledged.append(self.number)
            except urllib.error.HTTPError as error:
                if error.code == 402:
                    self.acknowledged.append(self.number)
            except (OSError, http.client.HTTPException):
                # The server was killed.
                time.sleep(0.01)
            self.number += UPLOADERS


class Campaign:
    def __init__(self, arguments, place, chance, checks):
        self.arguments, self.place, self.chance = arguments, place, chance
        self.checks, self.counts = checks, checks.counts
        authority, bodies = place / "authority", place / "uploads.ndjson"
        serving.sign_transactions(arguments.programs, authority, bodies, BODIES)
        self.bodies = bodies.read_bytes().splitlines()
        # Nobody asks it: signed transactions need no call.
        self.stand_in = serving.StandIn(arguments.programs, authority)
        self.ledger = serving.Ledger(arguments.programs, place / "ledger", self.stand_in.facts)
        self.token = self.ledger.token_path.read_text()
        self.backups = place / "backups"
        self.backups.mkdir(mode=0o700)
        self.erased = set()
        self.seconds = 0.1

    def start(self):
        self.server = serving.Server(self.ledger)
        self.listen = self.server.url.removeprefix("http://")
        self.uploaders = [Uploader(self, first) for first in range(UPLOADERS)]
        for uploader in self.uploaders:
            uploader.start()

    def acknowledged(self):
        """The numbers of the uploads that were answered so far."""
        return {number for uploader in self.uploaders for number in list(uploader.acknowledged)}

    def names(self):
        return {path.name for path in self.backups.iterdir() if not path.name.startswith(".")}

    def unfinished(self):
        return [path.name for path in self.backups.glob(".*.partial")]

    # A round

    def erase(self):
        """Lets the server erase an upload; it is not waited for."""
        lines = lines_of(self.ledger.directory)
        events = [json.loads(line) for line in lines.values()]
        uploads = [it for it in events if it["type"] in UPLOADS and it["data"]]
        if not uploads:
            return None
        event = self.chance.choice(uploads)
        self.erased.add(int(event["data"]["metadata"]["upload"]))
        self.counts["erasures"] += 1
        return self.ledger.start(
            "redact", "--position", event["seq"], "--reason", "user_request", "--yes"
        )

    def round(self, kind):
        self.counts[f"kills of {kind}" if kind else "undisturbed"] += 1
        time.sleep(self.chance.uniform(0.1, 2 * self.arguments.mean_seconds))
        erasure = self.erase() if self.chance.random() < ERASED_PART else None
        known, before = self.acknowledged(), self.names()
        began = time.monotonic()
        command = self.ledger.command("backup", self.backups)
        backup = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        if kind:
            time.sleep(self.chance.uniform(0, 3 * self.seconds))
        if kind in ("backup", "both"):
            backup.kill()
        if kind in ("server", "both"):
            self.server.kill()
            # Without a server it would erase by itself, and hold the ledger, or wait for the server.
            if erasure:
                erasure.kill()
                erasure.wait()
            self.server = serving.Server(self.ledger, listen=self.listen)
        said = backup.communicate(timeout=LIMIT_SECONDS)[1].decode(errors="replace")
        if not kind:
            self.seconds = time.monotonic() - began
        if erasure:
            erasure.wait(timeout=LIMIT_SECONDS)
        self.check(backup.returncode, said, self.names() - before, known)

    def check(self, code, said, new, known):
        if code == -signal.SIGKILL:
            # It may have been killed after its end.
            self.counts["killed backups"] += 1
            self.counts["left something behind"] += bool(self.unfinished())
        else:
            self.checks.expect(code == 0, f"backup exits with {code}: {said[-500:]}")
            self.checks.expect(len(new) == 1, f"a backup made {sorted(new)}")
            self.checks.expect(not self.unfinished(), f"there is {self.unfinished()}")
        self.checks.expect(len(new) <= 1, f"a backup made {sorted(new)}")
        for name in new:
            self.restore(name, known)
        for name in sorted(self.names())[:-KEPT]:
            shutil.rmtree(self.backups / name)

    def restore(self, name, known):
        """Restores a backup, and holds it against the disk and the answers."""
        self.counts["restores"] += 1
        directory = self.place / "restored"
        done = self.ledger.done("restore", "--from", self.backups / name, directory, elsewhere=True)
        self.checks.expect(done.returncode == 0, f"{name} is not restored: {done.stderr[-500:]}")
        if done.returncode == 0:
            audit = self.ledger.done("audit", "--ledger", directory, elsewhere=True)
            self.checks.expect(audit.returncode == 0, f"{name} is not whole: {audit.stdout[-800:]}")
            restored, disk = lines_of(directory), lines_of(self.ledger.directory)
            missing = known - uploads_in(without_redacted(restored)) - self.erased
            self.checks.expect(not missing, f"{name} lacks {len(missing)} uploads: {sorted(missing)[:5]}")
            found, there = leaves(restored), leaves(disk)
            self.checks.expect(
                all(there.get(position) == leaf for position, leaf in found.items()),
                f"{name} is not the beginning of the log",
            )
        shutil.rmtree(directory, ignore_errors=True)

    def finish(self):
        for uploader in self.uploaders:
            uploader.is_over = True
        for uploader in self.uploaders:
            uploader.join()
        self.checks.expect(self.server.terminate() == 0, "serve does not end in order")
        self.counts["answered uploads"] = len(self.acknowledged())
        self.checks.expect(self.acknowledged(), "no upload was answered")
        done = self.ledger.done("backup", self.backups, "--verify", elsewhere=True)
        self.checks.expect(done.returncode == 0, f"a backup is damaged: {done.stdout}")
        self.stand_in.stop()


def without_redacted(lines):
    return {position: line for position, line in lines.items() if b',"data":null,' not in line}


def run(arguments, place, chance, checks):
    campaign = Campaign(arguments, place, chance, checks)
    campaign.start()
    campaign.round(None)
    for _ in range(arguments.kills):
        campaign.round(chance.choice(["backup", "backup", "server", "both"]))
    campaign.round(None)
    campaign.finish()
    if arguments.kills >= 20:
        checks.expect(checks.counts["left something behind"], "no backup was interrupted")
