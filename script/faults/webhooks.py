#!/usr/bin/env python3
# Kills `ledgerctl serve` while it delivers webhooks, and holds what was received against the journal.
import argparse
import base64
import collections
import hashlib
import hmac
import http.server
import json
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time

import serving

SETTLE_LIMIT_SECONDS = 300
# So many of a hundred deliveries are refused the first time.
REFUSED_PERCENT = 3
TYPES = {"Sale": ("purchase", "renewal"), "Return": ("refund",), "Reversal": ("reversal",)}


class Receiver(http.server.ThreadingHTTPServer):
    """An app's back end: checks each signature, and notes what it answered with 200."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.key = b""
        self.refused, self.accepted, self.faults = set(), [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """A server that is killed resets its connections."""

    def take(self, headers, body):
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


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.server.take(self.headers, body))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def wait_until_delivered(ledger):
    """Whether the webhook comes to the log's end before the limit."""
    end = time.monotonic() + SETTLE_LIMIT_SECONDS
    while time.monotonic() < end:
        listed = json.loads(ledger.run("webhook", "list", "--json"))["webhooks"][0]
        if listed["behind"] == 0 and listed["waiting"] == 0:
            return True
        time.sleep(1)
    print(f"still not delivered: {listed}")
    return False


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


def kill_again_and_again(arguments, ledger, bodies, chance):
    server = serving.Server(ledger)
    listen = server.url.removeprefix("http://")
    generator = serving.load(
        arguments.programs, server, ledger, bodies, "--rate", str(arguments.rate),
        "--duration", "86400", "--reconnect", path=serving.TRANSACTIONS_PATH,
    )  # fmt: skip
    for _ in range(arguments.kills):
        time.sleep(chance.uniform(0.2, 2 * arguments.mean_seconds))
        if generator.poll() is not None:
            raise SystemExit("the load generator ended by itself")
        code = server.kill()
        if code != -signal.SIGKILL:
            raise SystemExit(f"serve had exited by itself with {code}")
        server = serving.Server(ledger, listen=listen)
    time.sleep(1)
    generator.send_signal(signal.SIGTERM)
    print(generator.communicate(timeout=60)[0].decode().strip())
    return server


def main():
    parser = argparse.ArgumentParser(description="Kills a server that delivers webhooks.")
    parser.add_argument("--programs", required=True, type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--rate", type=int, default=200, help="uploads a second")
    parser.add_argument("--mean-seconds", type=float, default=1.5, help="between two kills")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.programs = arguments.programs.resolve()
    chance = random.Random(arguments.seed)
    faults = []

    def expect(holds, what):
        if not holds:
            faults.append(what)
            print(f"FAILED: {what}", flush=True)

    print(f"{arguments.kills} kills, {arguments.rate} uploads a second, seed {arguments.seed}")
    with tempfile.TemporaryDirectory() as temporary:
        place = pathlib.Path(temporary)
        bodies, authority = place / "uploads.ndjson", place / "authority"
        # Each customer's sales are new once: as many customers as there may be uploads.
        seconds = arguments.kills * arguments.mean_seconds + 2
        customers = min(20_000, int(arguments.rate * seconds))
        serving.sign_transactions(
            arguments.programs, authority, bodies, customers, transactions=2, seed=arguments.seed)
        stand_in = serving.StandIn(arguments.programs, authority)
        ledger = serving.Ledger(arguments.programs, place / "ledger", stand_in.facts)
        receiver = Receiver()
        url = f"http://127.0.0.1:{receiver.server_port}/hook"
        edited = ledger.run("app", "edit", ledger.app_family, "--webhook", url, "--json")
        secret = json.loads(edited)["webhook_secret"]
        receiver.key = base64.b64decode(secret.removeprefix("whsec_"))
        server = kill_again_and_again(arguments, ledger, bodies, chance)
        expect(wait_until_delivered(ledger), "the webhook does not come to the log's end")
        expect(server.terminate() == 0, "serve does not end in order")
        stand_in.stop()
        owed = check(expect, ledger, receiver)
        expect(owed > 20 * arguments.kills, f"the journal has only {owed} lines")
    print(f"{len(faults)} failed" if faults else "all passed")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
