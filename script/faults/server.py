#!/usr/bin/env python3
# Kills `ledgerctl serve` under load, again and again, and holds the log against every answer that it gave.
import argparse
import base64
import collections
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import serving

RECEIPTS = 400
# Customers of notifications; in a long run theirs come again, and are known then.
CUSTOMERS = 2_000
REPORTS = ["revenue", "journal", "sales", "exceptions", "receipts", "users"]
SETTLE_LIMIT_SECONDS = 600


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def expect(self, holds, what):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what}", flush=True)


class History:
    """What the log holds of each upload, by the number that the load generator gave it."""

    def __init__(self, events):
        self.positions = collections.defaultdict(list)
        self.receipt_ids = {}
        self.verifications = collections.defaultdict(list)
        # How often each UUID stands in the log.
        self.notifications = collections.Counter()
        for position, (kind, data) in enumerate(events):
            if kind == "receipt.uploaded":
                self.positions[int(data["metadata"]["upload"])].append(position)
                self.receipt_ids[position] = data["receipt_id"]
            elif kind == "notification.received":
                self.notifications[data["notification_uuid"]] += 1
            elif kind == "receipt.verified":
                self.verifications[data["upload"]].append((data["authority"], data["outcome"]))

    def outcomes(self, position, authority):
        return [found for by, found in self.verifications[position] if by == authority]


def answers_of(path):
    """Lines that the load generator wrote; it was ended in order, so all are whole."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def check_answers(checks, answers, history):
    """Every 200 and 206 stands in the log, once, under the receipt's id; a 200 with its result."""
    counts = collections.Counter(answer["status"] for answer in answers)
    print(f"answers by status: {dict(sorted(counts.items()))}")
    kept = [answer for answer in answers if answer["status"] in (200, 206)]
    missing = [it["upload"] for it in kept if not history.positions[it["upload"]]]
    checks.expect(not missing, f"{len(missing)} answered uploads are lost, such as {missing[:5]}")
    twice = [number for number, found in history.positions.items() if len(found) > 1]
    checks.expect(not twice, f"{len(twice)} uploads are in the log twice, such as {twice[:5]}")
    wrong = []
    for answer in kept:
        for position in history.positions[answer["upload"]]:
            if history.receipt_ids[position] != answer["receipt"]:
                wrong.append(answer["upload"])
    checks.expect(not wrong, f"{len(wrong)} answers name another receipt, such as {wrong[:5]}")
    numbers = [answer["upload"] for answer in answers]
    checks.expect(len(set(numbers)) == len(numbers), "an upload was answered twice")
    return len(kept)


def uuid_of(body):
    """The name of the notification in a request's body."""
    payload = json.loads(body)["signedPayload"].split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=="))["notificationUUID"]


def check_notifications(checks, answers, bodies, history):
    """Every notification that was answered 200 stands in the log, and none stands there twice."""
    counts = collections.Counter(answer["status"] for answer in answers)
    print(f"notifications by status: {dict(sorted(counts.items()))}")
    uuids = [uuid_of(line) for line in bodies.read_bytes().splitlines()]
    kept = {uuids[it["upload"] % len(uuids)] for it in answers if it["status"] == 200}
    missing = [uuid for uuid in kept if uuid not in history.notifications]
    checks.expect(not missing, f"{len(missing)} answered notifications are lost: {missing[:5]}")
    twice = [uuid for uuid, count in history.notifications.items() if count > 1]
    checks.expect(not twice, f"{len(twice)} notifications are in the log twice: {twice[:5]}")
    odd = [status for status in counts if status not in (200, 503)]
    checks.expect(not odd, f"notifications were answered {odd}")
    print(f"{len(kept)} notifications were kept, {len(history.notifications)} are in the log")
    return len(kept)


def check_results(checks, history):
    """One local result, at most one `unreachable`, and one answer for good for each upload."""
    odd = {"local": [], "unreachable": [], "settled": []}
    for positions in history.positions.values():
        for position in positions:
            said = collections.Counter(history.outcomes(position, "app_store"))
            if len(history.outcomes(position, "local")) != 1:
                odd["local"].append(position)
            if said["unreachable"] > 1:
                odd["unreachable"].append(position)
            if said["valid"] != 1 or said["invalid"]:
                odd["settled"].append(position)
    for name, found in odd.items():
        checks.expect(not found, f"{len(found)} uploads have odd results ({name}): {found[:5]}")


def wait_until_settled(ledger):
    """Whether the queue is worked off before the limit."""
    end = time.monotonic() + SETTLE_LIMIT_SECONDS
    while time.monotonic() < end:
        # Tells the server to try all that waits, and how much that is.
        retried = json.loads(ledger.run("retry", "--json"))
        if retried["waiting_before"] == 0:
            return True
        time.sleep(1)
    print(f"still waiting: {retried}")
    return False


def control(stand_in, request):
    body = json.dumps(request).encode()
    urllib.request.urlopen(stand_in.facts["control_url"], data=body, timeout=10).read()


def kill_again_and_again(arguments, ledger, uploads, notifications, chance):
    """Serves, kills, serves again on the same port; the load goes on all the while."""
    server = serving.Server(ledger)
    listen = server.url.removeprefix("http://")
    generators = [
        serving.load(
            arguments.programs, server, ledger, bodies, "--rate", str(arguments.rate),
            "--duration", "86400", "--answers", str(answers), "--reconnect", path=path,
        )
        for (bodies, answers), path in [(uploads, ""), (notifications, serving.NOTIFICATIONS_PATH)]
    ]  # fmt: skip
    notes = collections.Counter()
    for _ in range(arguments.kills):
        time.sleep(chance.uniform(0.2, 2 * arguments.mean_seconds))
        if any(generator.poll() is not None for generator in generators):
            raise SystemExit("the load generator ended by itself")
        code = server.kill()
        if code != -signal.SIGKILL:
            raise SystemExit(f"serve had exited by itself with {code}")
        server = serving.Server(ledger, listen=listen)
        said = pathlib.Path(server.errors_path).read_text(errors="replace")
        for line in said.splitlines():
            notes[re.sub(r"[0-9]+", "N", line)] += 1
    time.sleep(1)
    reports = []
    for generator in generators:
        generator.send_signal(signal.SIGTERM)
        reports.append(json.loads(generator.communicate(timeout=60)[0]))
    for note, count in notes.most_common():
        print(f"{count:5} x {note}")
    for report in reports:
        print(json.dumps(report))
    return server


def main():
    parser = argparse.ArgumentParser(description="Kills the server and compares what it leaves.")
    parser.add_argument("--programs", required=True, type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--rate", type=int, default=300, help="uploads a second, and notifications")
    parser.add_argument("--mean-seconds", type=float, default=1.5, help="between two kills")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.programs = arguments.programs.resolve()
    chance = random.Random(arguments.seed)
    checks = Checks()
    print(f"{arguments.kills} kills, {arguments.rate} uploads a second, seed {arguments.seed}")
    with tempfile.TemporaryDirectory() as temporary:
        place = pathlib.Path(temporary)
        bodies, authority = place / "uploads.ndjson", place / "authority"
        serving.sign_bodies(arguments.programs, authority, bodies, RECEIPTS, style="mixed")
        stand_in = serving.StandIn(arguments.programs, authority, delay_ms=20)
        # Some receipts are left to the queue, so that a kill meets it too.
        control(stand_in, {"behaviour": "http_status", "status": 503, "percent": 20})
        pauses = {"retry_first_ms": 200, "retry_ceiling_ms": 1000, "reuse_reply_ms": 0}
        ledger = serving.Ledger(arguments.programs, place / "ledger", stand_in.facts, pauses)
        notifications = place / "notifications.ndjson"
        serving.sign_notifications(arguments.programs, authority, notifications, CUSTOMERS)
        answers_path, told_path = place / "answers.ndjson", place / "told.ndjson"
        server = kill_again_and_again(
            arguments, ledger, (bodies, answers_path), (notifications, told_path), chance
        )
        control(stand_in, {"reset": True})
        checks.expect(wait_until_settled(ledger), "the queue is not worked off")
        checks.expect(server.terminate() == 0, "serve does not end in order")
        stand_in.stop()

        answers = answers_of(answers_path)
        history = History(ledger.events())
        kept = check_answers(checks, answers, history)
        checks.expect(kept > 20 * arguments.kills, f"only {kept} uploads were answered")
        told = answers_of(told_path)
        told_kept = check_notifications(checks, told, notifications, history)
        checks.expect(told_kept > 20, f"only {told_kept} notifications were answered")
        unanswered = len(history.positions) - kept
        print(f"{kept} uploads were kept with an answer, {unanswered} without")
        check_results(checks, history)
        reports = [ledger.report(name) for name in REPORTS]
        ledger.run("rebuild")
        for name, report in zip(REPORTS, reports):
            checks.expect(ledger.report(name) == report, f"{name} differs after a rebuild")
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
