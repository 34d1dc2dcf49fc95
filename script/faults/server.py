# Kills `ledgerctl serve` under load, again and again, and holds the log against every answer that it gave.
import base64
import collections
import json

import serving
from harness import kill_under_load

OPTIONS = {
    "kills": (3, ""),
    "rate": (300, "uploads a second, and notifications"),
    "mean-seconds": (1.5, "between two kills"),
    "seed": (1, "where random moments begin"),
}
RECEIPTS = 400
# Customers of notifications; in a long run theirs come again, and are known then.
CUSTOMERS = 2_000
REPORTS = ["revenue", "journal", "sales", "exceptions", "receipts", "users"]
SETTLE_LIMIT_SECONDS = 600


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


def run(arguments, place, chance, checks):
    programs = arguments.programs
    bodies, notifications = place / "uploads.ndjson", place / "notifications.ndjson"
    authority = place / "authority"
    serving.sign_bodies(programs, authority, bodies, RECEIPTS, style="mixed")
    stand_in = serving.StandIn(programs, authority, "--delay-ms", "20")
    # Some receipts are left to the queue, so that a kill meets it too.
    stand_in.control({"behaviour": "http_status", "status": 503, "percent": 20})
    pauses = {"retry_first_ms": 200, "retry_ceiling_ms": 1000, "reuse_reply_ms": 0}
    ledger = serving.Ledger(programs, place / "ledger", stand_in.facts, pauses)
    serving.sign_notifications(programs, authority, notifications, CUSTOMERS)
    answers_path, told_path = place / "answers.ndjson", place / "told.ndjson"
    loads = [
        (bodies, "", ["--answers", str(answers_path)]),
        (notifications, serving.NOTIFICATIONS_PATH, ["--answers", str(told_path)]),
    ]
    server, reports, notes = kill_under_load(arguments, ledger, serving.Server(ledger), loads, chance)
    for note, count in notes.most_common():
        print(f"{count:5} x {note}")
    print(*reports, sep="\n")
    stand_in.control({"reset": True})
    retried = {}

    def is_settled():
        # Makes the server try all that waits, and tells how much that was.
        retried.update(json.loads(ledger.run("retry", "--json")))
        return retried["waiting_before"] == 0

    checks.expect(
        serving.wait_until(is_settled, SETTLE_LIMIT_SECONDS, 1), f"the queue is not worked off: {retried}"
    )
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
