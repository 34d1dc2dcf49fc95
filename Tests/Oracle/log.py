# A ledger's log, read event by event: a malformed event becomes an exception and nothing else.
import base64
import re
from fractions import Fraction

import dates
from catalogue import CATALOGUE, VERSIONS, Malformed, checked
from currencies import MINOR_DIGITS
from events import ENVIRONMENTS, ListedPrice, Upload, Verification, bundle_beside
from journal import Book
from money import Price, PriceProblem, Rate, micros_from_text, read_currency
from receipt_file import read_receipt, reduced_receipt
from rows import bundle_of
from sales import Fold
from settlement import Files
from signed import SignedEvent, SignedRenewal, Statement, payload_of, trust_of
from values import identifier, members, parse

TIME_OR_TRUST = ("certificate_expired", "certificate_not_yet_valid", "signed_in_future", "untrusted_root")
APPLE_HOSTS = ("buy.itunes.apple.com", "sandbox.itunes.apple.com")


def _trust(data):
    """The source of a verification's reply, in the words of reports."""
    if "host" in data:
        return "app_store" if data["host"] in APPLE_HOSTS else "configured"
    return "imported" if data.get("via") == "import" else "not_recorded"


class LaterProgram(Exception):
    """An event of a type or version that these rules do not know."""


def _upload(position, data):
    return Upload(
        position,
        dates.time_from_text(data["occurred_at"]),
        data.get("country_code"),
        data.get("user_identifier") or None,
        data.get("metadata", {}),
        data.get("receipt_id"),
    )


def _receipt_of(data):
    """The content of an upload's receipt, from its file or from the facts kept of it."""
    receipt = data.get("receipt")
    if isinstance(receipt, str):
        try:
            return read_receipt(base64.b64decode(receipt, validate=True))
        except ValueError:
            return None
    return reduced_receipt(data["bundle_id"], members(receipt))


class LogReader:
    """Folds a log's events, given as lines in position order."""

    def __init__(self):
        self.fold = Fold()
        self.prices = []
        self.rates = []
        # The list that a declaration is in, by its position.
        self._declared = {}
        self._uploads = {}
        self._bundles = set()
        # Well-formed fetched pages, by position.
        self._pages = {}
        # When the last event was recorded.
        self._last_ms = None
        # The replies of verifications that are well-formed in themselves, whatever they name.
        self._replies = {}
        # The version 1 notifications that brought replies, and when they came.
        self._notifications = {}
        # Apple's files.
        self._files = Files()

    def read(self, lines):
        for line in lines:
            event = parse(line)
            position = int(event["seq"].text)
            self._last_ms = dates.time_from_text(event["at"])
            # What was kept of a redacted line.
            is_redacted = "redacted" in event
            data = event["redacted"]["kept"] if is_redacted else event["data"]
            try:
                self._take(position, event["type"], int(event["v"].text), data, is_redacted)
            except Malformed as fault:
                self.fold.note_malformed(position, str(fault))
        return Book(self.fold, self.prices, self.rates, self._last_ms, self._files)

    def _take(self, position, kind, version, data, is_redacted):
        if kind not in CATALOGUE or version not in VERSIONS.get(kind, (1,)):
            raise LaterProgram(f"{kind} in version {version} at {position}")
        data = checked(kind, data, is_redacted, version)
        if kind == "app.registered":
            self.fold.declared[data["app_family_id"]] = data["products"]
            self._bundles |= set(data["bundle_ids"])
        elif kind == "receipt.uploaded":
            upload = _upload(position, data)
            self._uploads[position] = (data["app_family_id"], upload, _receipt_of(data))
            self.fold.meet(upload)
        elif kind == "receipt.verified":
            # A reply that is not an object has neither status nor rows.
            self._replies[position] = members(data["reply"]) if "reply" in data else None
            if "notification" in data:
                came_ms = dates.time_from_text(data["occurred_at"])
                self._notifications[position] = (data["notification"], came_ms)
            self._verify(position, data)
        elif kind == "transactions.received":
            upload = _upload(position, data)
            self.fold.meet(upload)
            if data["outcome"] == "valid":
                found = [self._statement(one, one["payload"], data) for one in data["transactions"]]
                self._add_signed(position, data, found, upload)
        elif kind == "notification.received":
            if data["notification"]["outcome"] == "valid":
                self._notify(position, data, is_redacted)
        elif kind == "transactions.fetched":
            found = [self._statement(one, one["payload"], data) for one in data["transactions"]]
            renewals = tuple(
                SignedRenewal(one["payload"], data["environment"], data["bundle_id"])
                for one in data["renewals"] if one["outcome"] == "valid"
            )
            self._pages[position] = data
            for name in ("transactions", "renewals"):
                for place, one in enumerate(data[name]):
                    if one["outcome"] != "valid":
                        self._note_refused(position, data, f"{name}[{place}]", one.get("reason", "none"))
            self._add_signed(position, data, found, renewals=renewals)
        elif kind == "signatures.accepted":
            self._accept(position, data)
        elif kind == "prices.declared":
            self._declared[position] = self.prices
            self._declare_prices(position, data["entries"])
        elif kind == "rates.declared":
            self._declared[position] = self.rates
            self._declare_rates(position, data["days"])
        elif kind in ("prices.withdrawn", "rates.withdrawn"):
            self._withdraw(kind, int(data["position"].text))
        elif kind == "settlement.declared":
            numbers = {name: int(data[name].text) for name in ("part", "parts")}
            self._files.declare(position, data | numbers)
        elif kind == "settlement.mapped":
            self._files.map(data)

    def _note_refused(self, position, data, place, reason):
        event = SignedEvent(position, dates.time_from_text(data["occurred_at"]), None, ())
        detail = f"{reason} at {position}, {place}"
        self.fold.note("signature_refused", event, data["environment"], data["bundle_id"], detail)

    def _accept(self, position, data):
        """Objects of an earlier page, refused for time or trust, that count from here on."""
        page = self._pages.get(int(data["page"].text))
        if page is None or int(data["page"].text) >= position:
            raise Malformed("signatures.accepted page")
        chosen = {}
        for name in ("transactions", "renewals"):
            chosen[name] = []
            for one in data[name]:
                place = int(one["index"].text)
                objects = page[name]
                if place >= len(objects) or objects[place].get("reason") not in TIME_OR_TRUST:
                    raise Malformed("signatures.accepted page")
                if objects[place]["outcome"] == "valid":
                    raise Malformed("signatures.accepted page")
                chosen[name].append((one, objects[place]["payload"]))
        found = [self._statement(verdict, payload, page) for verdict, payload in chosen["transactions"]]
        renewals = tuple(
            SignedRenewal(payload, page["environment"], page["bundle_id"])
            for _, payload in chosen["renewals"]
        )
        self._add_signed(position, page | {"occurred_at": data["occurred_at"]}, found, renewals=renewals)

    def _statement(self, verdict, payload, data):
        """R12, Counts: the statement; None if it counts for nothing. `data`: of its event."""
        if payload is None or verdict["outcome"] != "valid":
            return None
        trust = trust_of(verdict.get("root_sha256"))
        statement = Statement(payload, trust, data.get("environment"))
        known = statement.bundle_id in self._bundles and statement.signed_ms is not None
        return statement if known and statement.environment in ENVIRONMENTS else None

    def _notify(self, position, data, is_redacted):
        """R12, R13: a notification's content."""
        transaction, renewal = data.get("transaction"), data.get("renewal")
        if is_redacted:
            # Its content was kept with the verdict on it.
            told, renewed = (members(verdict).get("payload") for verdict in (transaction, renewal))
        else:
            inner = members(data["notification"]["payload"].get("data"))
            told = payload_of(inner.get("signedTransactionInfo"))
            renewed = payload_of(inner.get("signedRenewalInfo"))
        found = () if transaction is None else (self._statement(transaction, told, data),)
        renewals = ()
        if renewal is not None and renewal["outcome"] == "valid" and renewed is not None:
            renewals = (SignedRenewal(renewed, data["environment"], data["bundle_id"]),)
        self._add_signed(position, data, found, renewals=renewals)

    def _add_signed(self, position, data, found, upload=None, renewals=()):
        # R12's Counts holds for renewal information too. A client's list has none, and names no bundle.
        if renewals and data["bundle_id"] not in self._bundles:
            renewals = ()
        self.fold.add(
            SignedEvent(
                position,
                dates.time_from_text(data["occurred_at"]),
                upload,
                tuple(statement for statement in found if statement is not None),
                data["app_family_id"],
                renewals,
            )
        )

    def _verify(self, position, data):
        found = self._uploads.get(int(data["upload"].text))
        if found is None:
            raise Malformed("receipt.verified upload")
        family, upload, receipt = found
        reply, source = self._replies[position], position
        if "reply_of" in data:
            earlier = int(data["reply_of"].text)
            if earlier >= position or earlier not in self._replies:
                raise Malformed("receipt.verified reply_of")
            reply, source = self._replies[earlier], earlier
        if data["authority"] != "app_store" or (reply is None and "reply_base64" not in data):
            return
        status = data.get("status")
        notification, notified_ms = self._notifications.get(source, (None, None))
        bundle_id = (identifier(members(notification).get("bid")) or bundle_of(reply or {})
                     or bundle_beside(reply or {}, receipt))
        self.fold.add(
            Verification(
                position,
                upload,
                dates.time_from_text(data["occurred_at"]),
                data.get("endpoint"),
                reply or {},
                counts=data["outcome"] == "valid" and reply is not None,
                status=None if status is None else int(status.text),
                environment=data.get("environment"),
                declared_by=family,
                trust=_trust(data),
                bundle_id=bundle_id,
                notification=notification,
                notified_ms=notified_ms,
            )
        )

    def _withdraw(self, kind, named):
        """The entries of a declaration count no longer; of one that was withdrawn before none are left."""
        found = self._declared.get(named)
        if found is not (self.prices if kind == "prices.withdrawn" else self.rates):
            raise Malformed(f"{kind} position")
        found[:] = [one for one in found if one.order[0] != named]

    def _declare_prices(self, position, entries):
        for place, entry in enumerate(entries):
            micros = micros_from_text(entry["price"])
            try:
                currency = read_currency(entry["currency"])
                day = dates.days_from_text(entry["effective_from"])
            except (PriceProblem, ValueError):
                continue
            if micros is None:
                continue
            self.prices.append(
                ListedPrice(
                    entry["product_id"],
                    entry.get("country_code"),
                    Price(micros, currency),
                    day * dates.DAY_MS,
                    (position, place),
                )
            )

    def _declare_rates(self, position, days):
        place = 0
        for entry in days:
            try:
                day = dates.days_from_text(entry["date"])
            except ValueError:
                continue
            for quote, text in entry["rates"].items():
                place += 1
                is_decimal = re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII)
                if not is_decimal or Fraction(text) == 0 or quote not in MINOR_DIGITS:
                    continue
                if entry["base"] in MINOR_DIGITS:
                    rate = Fraction(text)
                    self.rates.append(Rate(day, entry["base"], quote, rate, (position, place)))


def read_log(lines):
    """The book of a log; its lines are those that `ledgerctl replay` prints."""
    return LogReader().read(lines)
