# Kills `ledgerctl serve` while it delivers webhooks, and holds what was received against the journal.
import base64
import collections
import hashlib
import hmac
import json
import threading

import serving
from harness import kill_under_load

OPTIONS = {
    "kills": (3, ""),
    "rate": (200, "uploads a second"),
    "mean-seconds": (1.5, "between two kills"),
    "seed": (1, "where random moments begin"),
}
SETTLE_LIMIT_SECONDS = 300
# So many of a hundred deliveries are refused the first time.
REFUSED_PERCENT = 3
TYPES = {"Sale": ("purchase", "renewal"), "Return": ("refund",), "Reversal": ("reversal",)}


class Receiver(serving.WebhookReceiver):
    """An app's back end: checks each signature, and notes what it answered with 200."""

    def __init__(self):
        self.lock = threading.Lock()
        self.key = b""
        self.refused, self.accepted, self.faults = set(), [], []
        super().__init__()

    def receive(self, headers, body):
        """The status to answer with."""
        number, sent = headers["webhook-id"], headers["webhook-timestamp"]
        signed = f"{number}.{sent}.".encode() + body
        digest = hmac.new(self.key, signed, hashlib.sha256).digest()
        with self.lock:
            if headers["webhook-signature"] != "v1," + base64.b64encode(digest).decode():
                self.faults.append(number)
            chance = int.from_bytes(hashlib.sha256(number.encode()).digest()[:4], "big")
            if chance % 100 < REFUSED_PERCENT and number not in self.refused:
                self.refused.add(number)
                return 503
            self.accepted.append((number, json.loads(body)))
            return 200


def check(expect, ledger, receiver):
    """Each line of the journal was told at least once, in order, and nothing else was."""
    expect(not receiver.faults, f"wrong signatures: {receiver.faults[:5]}")
    owed = {}
    for line in ledger.report("journal").splitlines():
        row = json.loads(line)
        owed[(row["line"], row["sale_key"], row["position"])] = row
    told, subjects, last = set(), {}, {}
    disorder = []
    for number, body in receiver.accepted:
        data = body["data"]
        kinds = [kind for kind, types in TYPES.items() if body["type"] in types]
        what = (kinds[0] if kinds else body["type"], data["sale_key"], data["position"])
        expect(subjects.setdefault(number, what) == what, f"{number} tells of two things")
        order = data["position"]
        # What is sent again after a kill may be behind what was sent before; what is new may not.
        original = data["original_transaction_id"]
        if what not in told and order < last.get(original, -1):
            disorder.append(number)
        last[original] = max(order, last.get(original, order))
        told.add(what)
    expect(not disorder, f"{len(disorder)} deliveries out of order, such as {disorder[:5]}")
    lost = [what for what in owed if what not in told]
    expect(not lost, f"{len(lost)} of {len(owed)} journal lines were not told: {lost[:5]}")
    more = [what for what in told if what not in owed]
    expect(not more, f"{len(more)} deliveries tell of no journal line: {more[:5]}")
    again = len(receiver.accepted) - len(told)
    counts = collections.Counter(body["type"] for _, body in receiver.accepted)
    print(f"{len(owed)} lines of the journal, deliveries {dict(counts)}, {again} more than once")
    return len(owed)


def run(arguments, place, chance, checks):
    programs = arguments.programs
    bodies, authority = place / "uploads.ndjson", place / "authority"
    # Each customer's sales are new once: as many customers as there may be uploads.
    seconds = arguments.kills * arguments.mean_seconds + 2
    customers = min(20_000, int(arguments.rate * seconds))
    serving.sign_transactions(
        programs, authority, bodies, customers, transactions=2, seed=arguments.seed
    )
    stand_in = serving.StandIn(programs, authority)
    ledger = serving.Ledger(programs, place / "ledger", stand_in.facts)
    receiver = Receiver()
    edited = ledger.run("app", "edit", ledger.app_family, "--webhook", receiver.url, "--json")
    secret = json.loads(edited)["webhook_secret"]
    receiver.key = base64.b64decode(secret.removeprefix("whsec_"))
    loads = [(bodies, serving.TRANSACTIONS_PATH, [])]
    server, reports, _ = kill_under_load(arguments, ledger, serving.Server(ledger), loads, chance)
    print(*reports, sep="\n")

    listed = {}

    def is_delivered():
        listed.update(json.loads(ledger.run("webhook", "list", "--json"))["webhooks"][0])
        return listed["behind"] == 0 and listed["waiting"] == 0

    is_at_end = serving.wait_until(is_delivered, SETTLE_LIMIT_SECONDS, 1)
    checks.expect(is_at_end, f"the webhook does not come to the log's end: {listed}")
    checks.expect(server.terminate() == 0, "serve does not end in order")
    stand_in.stop()
    owed = check(checks.expect, ledger, receiver)
    checks.expect(owed > 20 * arguments.kills, f"the journal has only {owed} lines")
