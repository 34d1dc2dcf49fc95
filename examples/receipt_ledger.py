#!/usr/bin/env python3
# Asks Receipt Ledger what a user has, and receives its webhooks. Needs nothing but Python 3.9 or later.
"""Use:

    RECEIPT_LEDGER_TOKEN=… receipt_ledger.py has http://127.0.0.1:8080 USER ENTITLEMENT
    RECEIPT_LEDGER_WEBHOOK_SECRET=whsec_… receipt_ledger.py listen 9000

`has` prints the entitlement and exits with 0 if the user has it now, with 1 if not, with 3 if it could not
ask. `listen` prints each webhook.
"""
import base64
import hashlib
import hmac
import http.server
import json
import os
import sys
import time
import urllib.error
import urllib.request

TIMEOUT_SECONDS = 10
# A webhook that was signed longer ago, or that much in the future, might be one that somebody sends again.
TOLERANCE_SECONDS = 300
BODY_BYTES_MAX = 1 << 20


def entitlements(base_url, token, user, attempts=3):
    """What a user has in Production, by the entitlement's name; what is not in it, the user does not have."""
    request = urllib.request.Request(
        base_url.rstrip("/") + "/v1/entitlements",
        data=json.dumps({"user_identifier": user}).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    for attempt in range(1, attempts + 1):
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                found = json.load(answer)
            return {entry["name"]: entry for entry in found["entitlements"]}
        except urllib.error.HTTPError as error:
            # Busy, or being started again: it says when to ask next. All else is for a person to look at.
            if error.code != 503 or attempt == attempts:
                raise
            seconds = error.headers.get("Retry-After", "")
            time.sleep(min(int(seconds), TIMEOUT_SECONDS) if seconds.isdecimal() else 1)


def has(found, name):
    """Whether the user has an entitlement at the moment of the answer."""
    return name in found and found[name]["is_active"]


def verified(secret, headers, body, now=None):
    """A webhook's content. Raises ValueError unless it was signed with the secret, lately.

    The signature covers the bytes of the body as they came: check it before anything parses them.
    """
    identifier, sent = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not sent.isascii() or not sent.isdigit():
        raise ValueError("the webhook has no time")
    if abs(int(sent) - (time.time() if now is None else now)) > TOLERANCE_SECONDS:
        raise ValueError("the webhook was signed at another time")
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    digest = hmac.new(key, f"{identifier}.{sent}.".encode() + body, hashlib.sha256).digest()
    good = "v1," + base64.b64encode(digest).decode()
    # Several while a secret is being replaced.
    given = headers.get("webhook-signature", "").split(" ")
    if not any(hmac.compare_digest(good.encode(), one.encode()) for one in given):
        raise ValueError("the webhook's signature is wrong")
    return json.loads(body)


class Receiver(http.server.BaseHTTPRequestHandler):
    """Prints each webhook once."""

    protocol_version = "HTTP/1.1"
    secret = ""
    # A peer that sends nothing more is not waited for.
    timeout = TIMEOUT_SECONDS
    # A webhook comes at least once. A real receiver keeps the ids where it keeps what it does about them.
    seen = set()

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        # int() would take "-1", with which read() reads without end.
        if not (length.isascii() and length.isdigit()):
            return self.end(411)
        if len(length) > len(str(BODY_BYTES_MAX)) or int(length) > BODY_BYTES_MAX:
            return self.end(413)
        body = self.rfile.read(int(length))
        try:
            told = verified(self.secret, self.headers, body)
        except ValueError as error:
            print(f"refused: {error}", file=sys.stderr)
            return self.end(401)
        if self.headers["webhook-id"] not in self.seen:
            data = told["data"]
            fields = ["product_id", "amount", "currency", "user_identifier"]
            print(told["type"], *(data[name] for name in fields if data.get(name) is not None), flush=True)
            self.seen.add(self.headers["webhook-id"])
        # Only now, when it is dealt with: whoever answers first and fails then, loses it.
        return self.end(204)

    def end(self, status):
        # What was not read of a body must not pass for the next request.
        self.close_connection = status in (411, 413)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main(arguments):
    if len(arguments) == 4 and arguments[0] == "has":
        _, base_url, user, name = arguments
        try:
            found = entitlements(base_url, os.environ["RECEIPT_LEDGER_TOKEN"], user)
        except OSError as error:
            print(f"ask for entitlements: {error}", file=sys.stderr)
            return 3
        print(json.dumps(found.get(name)))
        return 0 if has(found, name) else 1
    if len(arguments) == 2 and arguments[0] == "listen":
        Receiver.secret = os.environ["RECEIPT_LEDGER_WEBHOOK_SECRET"]
        http.server.ThreadingHTTPServer(("127.0.0.1", int(arguments[1])), Receiver).serve_forever()
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
