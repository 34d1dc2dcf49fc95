# The clients in examples/, run against a server: what they report of users, and which webhooks they accept.
#
# PROGRAMS names the folder of the built programs. The TypeScript client runs with a Node that strips types
# itself (22.6 or later; NODE names another one than the first in PATH), or with tsc before; otherwise its
# tests are skipped.
import base64
import hashlib
import hmac
import json
import os
import pathlib
import queue
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "script"))
import serving  # noqa: E402

PROGRAMS = pathlib.Path(os.environ.get("PROGRAMS", ROOT / ".build/debug"))
SECRET = "whsec_" + base64.b64encode(bytes(range(24))).decode()
LIMIT_SECONDS = 60


def typescript_command():
    """How to run the TypeScript client here; None if nothing can."""
    node = os.environ.get("NODE") or shutil.which("node")
    if node is None:
        return None
    source = ROOT / "examples/receipt-ledger.mts"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = (int(part) for part in re.match(r"v(\d+)\.(\d+)", version).groups())
    if (major, minor) >= (22, 6):
        return [node, "--experimental-strip-types", "--no-warnings", str(source)]
    if shutil.which("tsc") is None:
        return None
    made = tempfile.mkdtemp()
    # Type errors are ignored: the types of Node's modules may be missing.
    subprocess.run(
        ["tsc", "--target", "es2022", "--module", "nodenext", "--outDir", made, str(source)],
        capture_output=True, check=False,
    )
    return [node, made + "/receipt-ledger.mjs"]


COMMANDS = {
    "python": [sys.executable, str(ROOT / "examples/receipt_ledger.py")],
    "typescript": typescript_command(),
}


class EachLanguage(unittest.TestCase):
    def each(self, check):
        """Runs a check with each client that can run here."""
        for language, command in COMMANDS.items():
            with self.subTest(language):
                if command is None:
                    self.skipTest("no Node that takes types away, and no tsc")
                check(command)


class EntitlementTests(EachLanguage):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        work = pathlib.Path(cls.directory.name)
        stand_in = serving.StandIn(PROGRAMS, work / "authority")
        cls.addClassCleanup(stand_in.stop)
        ledger = serving.Ledger(PROGRAMS, work / "shop", stand_in.facts)
        ledger.run("app", "edit", ledger.app_family, "--entitlement", "plus=plus.*")
        created = ledger.run("token", "create", "--app", ledger.app_family, "--scope", "read", "--json")
        cls.token = json.loads(created)["token"]
        cls.server = serving.Server(ledger)
        cls.addClassCleanup(cls.server.terminate)
        serving.sign_transactions(PROGRAMS, work / "authority", work / "bodies", 12, transactions=2)
        # A user with a subscription, by what was signed.
        cls.expected = {}
        for line in (work / "bodies").read_text().splitlines():
            body = json.loads(line)
            signed = [
                json.loads(base64.urlsafe_b64decode(text.split(".")[1] + "=="))
                for text in body["signed_transactions"]
            ]
            bought = [
                (one["productId"], "revoked" if "revocationDate" in one else "subscription_active")
                for one in signed if one["productId"].startswith("plus.")
            ]
            cls.expected[body["user_identifier"]] = bought[0] if bought else None
            request = urllib.request.Request(
                cls.server.url + serving.TRANSACTIONS_PATH, data=line.encode(),
                headers={
                    "Authorization": "Bearer " + ledger.token_path.read_text(),
                    "Content-Type": "application/json",
                },
            )
            urllib.request.urlopen(request, timeout=LIMIT_SECONDS).close()

    def ask(self, command, user, token=None):
        return subprocess.run(
            [*command, "has", self.server.url, user, "plus"], capture_output=True, text=True,
            env={**os.environ, "RECEIPT_LEDGER_TOKEN": token or self.token}, check=False,
            timeout=LIMIT_SECONDS,
        )

    def test_says_who_has_an_entitlement_and_until_when(self):
        # A user without a subscription, one with an active one, and one whose subscription was
        # refunded.
        reasons = {bought and bought[1] for bought in self.expected.values()}
        self.assertEqual(reasons, {None, "subscription_active", "revoked"})

        def check(command):
            for user, bought in self.expected.items():
                done = self.ask(command, user)
                found = json.loads(done.stdout)
                if bought is None:
                    self.assertEqual((done.returncode, found), (1, None))
                    continue
                now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                is_active = bought[1] == "subscription_active"
                self.assertEqual((found["product_id"], found["reason"]), bought)
                self.assertEqual((found["is_active"], found["until"] > now), (is_active, is_active))
                self.assertEqual(done.returncode, 0 if is_active else 1)

        self.each(check)

    def test_an_unknown_user_has_nothing(self):
        def check(command):
            done = self.ask(command, "nobody")
            self.assertEqual((done.returncode, done.stdout.strip()), (1, "null"))

        self.each(check)

    def test_a_refused_token_is_no_answer(self):
        def check(command):
            done = self.ask(command, "user-1", token="wrong")
            self.assertEqual((done.returncode, done.stdout), (3, ""))
            self.assertIn("401", done.stderr)
            self.assertNotIn("user-1", done.stderr)

        self.each(check)


class Receiver:
    """A client that listens, and the lines that it prints."""

    def __init__(self, command):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [*command, "listen", str(self.port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**os.environ, "RECEIPT_LEDGER_WEBHOOK_SECRET": SECRET},
        )
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        end = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("the receiver does not listen")

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def stop(self):
        self.process.kill()
        self.process.communicate()

    def deliver(self, body, identifier="msg-1", sent=None, secret=SECRET, more=""):
        sent = str(int(time.time()) if sent is None else sent)
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = hmac.new(key, f"{identifier}.{sent}.".encode() + body, hashlib.sha256).digest()
        return self.post(body, {
            "webhook-id": identifier, "webhook-timestamp": sent,
            "webhook-signature": more + "v1," + base64.b64encode(digest).decode(),
        })

    def post(self, body, headers):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/", data=body,
            headers={"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code


    def begin(self, headers):
        """Sends a request's head alone; the status of the response."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_SECONDS) as connection:
            lines = ["POST / HTTP/1.1", "Host: localhost", *headers, "", "{}"]
            connection.sendall("\r\n".join(lines).encode())
            return int(connection.makefile("rb").readline().split()[1])


class WebhookTests(EachLanguage):
    REFUND = json.dumps({
        "type": "refund", "timestamp": "2026-11-23T08:00:00.000Z",
        "data": {"product_id": "plus.monthly", "amount": "-7.99", "currency": "USD",
                 "user_identifier": None, "position": 12, "backfill": False},
    }).encode()

    def each_receiver(self, check):
        def listening(command):
            receiver = Receiver(command)
            try:
                check(receiver)
            finally:
                receiver.stop()

        self.each(listening)

    def test_a_signed_webhook_is_taken_once(self):
        def check(receiver):
            for _ in range(3):
                self.assertEqual(receiver.deliver(self.REFUND), 204)
            self.assertEqual(receiver.deliver(self.REFUND, "msg-2", more="v1,AAAA "), 204)
            printed = [receiver.lines.get(timeout=LIMIT_SECONDS) for _ in range(2)]
            self.assertEqual(printed, ["refund plus.monthly -7.99 USD"] * 2)
            self.assertTrue(receiver.lines.empty())

        self.each_receiver(check)

    def test_what_is_not_signed_lately_with_the_secret_is_refused(self):
        other = "whsec_" + base64.b64encode(bytes(24)).decode()

        def check(receiver):
            now = int(time.time())
            self.assertEqual(receiver.deliver(self.REFUND, secret=other), 401)
            self.assertEqual(receiver.deliver(self.REFUND, sent=now - 400), 401)
            self.assertEqual(receiver.deliver(self.REFUND, sent=now + 400), 401)
            self.assertEqual(receiver.post(self.REFUND, {}), 401)
            stolen = {"webhook-id": "msg-1", "webhook-timestamp": str(now), "webhook-signature": "v1,"}
            self.assertEqual(receiver.post(self.REFUND, stolen), 401)
            stolen["webhook-timestamp"] = "now"
            self.assertEqual(receiver.post(self.REFUND, stolen), 401)
            # The signature covers the bytes and the id.
            key = base64.b64decode(SECRET.removeprefix("whsec_"))
            digest = hmac.new(key, f"msg-1.{now}.".encode() + self.REFUND, hashlib.sha256).digest()
            good = {
                "webhook-id": "msg-1", "webhook-timestamp": str(now),
                "webhook-signature": "v1," + base64.b64encode(digest).decode(),
            }
            self.assertEqual(receiver.post(self.REFUND + b" ", good), 401)
            self.assertEqual(receiver.post(self.REFUND, {**good, "webhook-id": "msg-2"}), 401)
            self.assertTrue(receiver.lines.empty())
            self.assertEqual(receiver.post(self.REFUND, good), 204)

        self.each_receiver(check)

    def test_a_length_that_is_none_is_refused_at_once(self):
        def check(receiver):
            for length in ("-1", "+2", "2x", "\u0662", "9" * 5000, str((1 << 20) + 1)):
                # A client may read the length itself, or leave it to its library, which answers 400.
                self.assertIn(receiver.begin([f"Content-Length: {length}"]), (400, 411, 413), length[:9])
            self.assertEqual(receiver.deliver(self.REFUND), 204)

        self.each_receiver(check)


if __name__ == "__main__":
    unittest.main()
