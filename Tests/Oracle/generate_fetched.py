# Draws pages of the App Store Server API, appended to a ledger's log: what no import file can contain (R12,
# R13).
import base64
import json
import random

from dates import DAY_MS, time_text
from catalogue import CATALOGUE
from log import TIME_OR_TRUST

PAGES = 40
CALLS = ["history", "history", "transaction", "statuses", "statuses", "refund_lookup"]
HOSTS = {"Production": "api.storekit.apple.com", "Sandbox": "api.storekit-sandbox.apple.com"}


class Pages:
    """Draws from one seeded source and from the signed objects of a log."""

    def __init__(self, lines, seed):
        self.random = random.Random(seed)
        # Redacted lines have no objects to send again.
        log = [event for event in map(json.loads, lines) if event["data"] is not None]
        self.at = log[-1]["at"]
        self.next_position = json.loads(lines[-1])["seq"] + 1
        self.families = {}
        for event in log:
            if event["type"] == "app.registered":
                for bundle in event["data"]["bundle_ids"]:
                    self.families[bundle] = event["data"]["app_family_id"]
        received = [e["data"] for e in log if e["type"] == "transactions.received"]
        self.transactions = [one for data in received for one in data["transactions"]]
        self.notifications = [e["data"] for e in log if e["type"] == "notification.received"]
        self.renewals = [self._renewal(data) for data in self.notifications if "renewal" in data]

    def chance(self, part):
        return self.random.random() < part

    def pick(self, *values):
        return self.random.choice(values)

    def _renewal(self, data):
        """A notification's renewal information as an object of its own."""
        text = data["notification"]["payload"]["data"]["signedRenewalInfo"]
        part = text.split(".")[1]
        payload = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return data["notification"] | {"payload": payload}

    def _changed(self, one, changes):
        """The object with changed members in its payload; rarely one whose signature was bad."""
        payload = {name: value for name, value in (one["payload"] | changes).items() if value is not None}
        verdict = {}
        if self.chance(0.15):
            verdict = {"outcome": "invalid", "reason": self.pick("wrong_signature", *TIME_OR_TRUST)}
        changed = one | verdict | {"payload": payload}
        changed.pop("payload_base64url", None)
        return changed

    def _transaction(self):
        one = self.random.choice(self.transactions)
        changes = {"signedDate": self._shifted(one)}
        if self.chance(0.3):
            changes["revocationDate"] = self.pick(None, one["payload"]["signedDate"] - DAY_MS)
        # Nasty histories write an expiry as text or as an absurd number.
        if self.chance(0.2) and isinstance(one["payload"].get("expiresDate"), int):
            changes["expiresDate"] = one["payload"]["expiresDate"] + self.pick(-2, 3) * DAY_MS
        return self._changed(one, changes)

    def _shifted(self, one):
        return one["payload"]["signedDate"] + self.pick(-3, 0, 1, 9) * DAY_MS

    def _information(self):
        one = self.random.choice(self.renewals)
        changes = {"signedDate": self._shifted(one), "autoRenewStatus": self.pick(0, 1, None),
                   "isInBillingRetryPeriod": self.pick(True, False, None)}
        if self.chance(0.2):
            # An object that names none has the page's environment.
            changes["environment"] = None
        return self._changed(one, changes)

    def _page(self):
        call = self.random.choice(CALLS)
        environment, bundle = self.pick("Production", "Sandbox"), self.random.choice(sorted(self.families))
        page = {"app_family_id": self.families[bundle], "bundle_id": bundle, "environment": environment,
                "occurred_at": self.at, "call": call, "host": HOSTS[environment], "transaction_id": "1"}
        if call in ("history", "refund_lookup"):
            page["revision"] = "next"
        count = 0 if self.chance(0.1) else self.pick(1, 2, 3)
        if count == 0:
            page["error_code"] = 4040010
        page["has_more"] = count > 0 and self.chance(0.5)
        page["transactions"] = [self._transaction() for _ in range(count)]
        is_status = call == "statuses" and self.renewals
        page["renewals"] = [self._information() for _ in range(count)] if is_status else []
        return page

    def _history(self):
        """A page of notifications, and those that it brought."""
        page = {name: value for name, value in self._page().items()
                if name not in ("transaction_id", "revision", "error_code")}
        page |= {"call": "notification_history", "transactions": [], "renewals": []}
        page["from"], page["to"] = time_text(0), self.at
        yield "transactions.fetched", page
        for _ in range(self.pick(0, 1, 2)):
            told = dict(self.random.choice(self.notifications))
            told |= {"notification_uuid": f"fetched-{self.random.randrange(10**9)}", "via": "fetch"}
            yield "notification.received", {n: v for n, v in told.items() if not n.startswith("line")}

    def _acceptance(self, pages):
        """Some refused objects of an earlier page, or objects that no page has."""
        position, page = self.random.choice(pages)
        accepted = {"page": self.pick(position, position, position, position + 1, 0), "occurred_at": self.at}
        for name in ("transactions", "renewals"):
            accepted[name] = [
                {"index": place, "outcome": "valid", "root_sha256": one.get("root_sha256", "ab" * 32)}
                for place, one in enumerate(page[name])
                if (one.get("reason") in TIME_OR_TRUST or self.chance(0.02)) and self.chance(0.8)
            ]
        return accepted

    def events(self):
        position, refused = self.next_position, []
        for _ in range(PAGES):
            if self.notifications and self.chance(0.2):
                made = list(self._history())
            elif refused and self.chance(0.3):
                made = [("signatures.accepted", self._acceptance(refused))]
            else:
                page = self._page()
                made = [("transactions.fetched", page)]
                if any("reason" in one for one in page["transactions"] + page["renewals"]):
                    refused.append((position, page))
            yield from made
            position += len(made)


def events(lines, seed):
    """(type, data) of pages made from the log's content; data is JSON text in the catalogue's order."""
    made = []
    for kind, data in Pages(lines, seed).events():
        ordered = {name: data[name] for name, _, _ in CATALOGUE[kind] if name in data}
        made.append((kind, json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))))
    return made
