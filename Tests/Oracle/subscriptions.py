# Statements about subscriptions: periods, renewal information, country and user (rule R13).
from dataclasses import dataclass, field

from rows import Row, is_legacy
from values import date_ms, elements, flag, identifier, is_forgotten, members

RENEWING = "Auto-Renewable Subscription"
OFFERS = {1: "introductory", 2: "promotional", 3: "offer_code", 4: "win_back"}
# The body of a version 1 notification, where `pending_renewal_info` does not override it.
NOTIFIED = ("auto_renew_status", "auto_renew_product_id", "expiration_intent")
# The outermost members of a legacy reply about the renewal of its one subscription.
OUTERMOST = ("auto_renew_status", "auto_renew_product_id", "expiration_intent",
             "is_in_billing_retry_period", "grace_period_expires_date_ms", "grace_period_expires_date",
             "grace_period_expires_date_pst")


@dataclass(frozen=True, order=True)
class Subscription:
    """R13: what makes two statements refer to one subscription."""

    environment: str
    bundle_id: str
    original_transaction_id: str


def _dated(ms):
    """A time for sorting; a missing one is older than every other."""
    return (ms is not None, ms or 0)


@dataclass(frozen=True)
class PeriodStatement:
    """One statement about a period; within one event the greatest `place` counts."""

    key: object
    start_ms: int
    time_ms: int | None
    position: int
    place: int
    product_id: str
    started_ms: int
    expires_ms: int
    offer: str
    revoked_ms: int | None

    @property
    def recency(self):
        return (_dated(self.time_ms), self.position, self.place)


@dataclass(frozen=True)
class Renewal:
    """Renewal information of one subscription, at its time."""

    time_ms: int | None
    position: int
    place: int
    auto_renew: bool | None
    auto_renew_product_id: str | None
    expiration_intent: str | None
    in_billing_retry: bool | None
    grace_ms: int | None

    @property
    def recency(self):
        return (_dated(self.time_ms), self.position, self.place)


@dataclass
class Known:
    """What is known of one subscription."""

    statements: list = field(default_factory=list)
    renewals: list = field(default_factory=list)
    signed_country: str | None = None
    client_country: str | None = None
    user: str | None = None
    user_position: int | None = None
    # R6: the user who took it over from an erased user.
    is_taken_over: bool = False
    account: str | None = None
    token: str | None = None

    @property
    def current(self):
        """R13: the statement of the latest period, of those the newest."""
        return max(self.statements, key=lambda one: (one.start_ms, one.recency))

    @property
    def renewal(self):
        return max(self.renewals, key=lambda one: one.recency, default=None)


class Subscriptions:
    """Collects the statements and the renewal information of events, in position order."""

    def __init__(self):
        self.known = {}
        # The statements with an expiry that show a sale, by its key.
        self._by_sale = {}
        # The sales that a signed statement calls a renewal.
        self._renewals = set()

    def _of(self, subscription):
        return self.known.setdefault(subscription, Known())

    def period_end_ms(self, key):
        """R13: the expiry in the newest statement of the sale; None if none has one."""
        newest = max(self._by_sale.get(key, ()), key=lambda one: one.recency, default=None)
        return None if newest is None else newest.expires_ms

    def is_renewal(self, key):
        """R13: whether the App Store signed it as a renewal."""
        return key in self._renewals

    def take_reply(self, shown, verification, environment, bundle_id, time_ms):
        """A confirmed verification. `shown`: (row, key) of the well-formed rows.

        Gives the sales' keys, each with what is known of its subscription.
        """
        shown = sorted(shown, key=lambda one: one[0].order)
        found = [(row, key) for row, key in shown if row.expires_ms is not None]
        about = []
        for place, (row, key) in enumerate(found):
            # In one reply, the first in R2's order counts.
            statement = _statement(
                row, key, time_ms, verification.position, -place,
                offer=_row_offer(row), revoked_ms=row.date_ms("cancellation_date_ms"),
            )
            about.append(self._take(row, statement))
            known = self._of(about[-1])
            known.token = known.token or row.user_token
        for subscription in about:
            self._meet(self._of(subscription), verification.upload, verification.position)
        # R13: the renewal information of a version 1 notification has the time of its line.
        renewed_ms = time_ms if verification.notification is None else verification.notified_ms
        self._take_renewals(set(about), verification, environment, bundle_id, renewed_ms)
        return [(key, self._of(one)) for (_, key), one in zip(found, about)]

    def _take_renewals(self, about, verification, environment, bundle_id, time_ms):
        reply, place = verification.reply, 0
        body = {name: value for name, value in members(verification.notification).items() if name in NOTIFIED}
        if any(value is not None for value in body.values()):
            original = identifier(verification.notification.get("original_transaction_id"))
            subscriptions = about if original is None else {Subscription(environment, bundle_id, original)}
            if len(subscriptions) == 1:
                self._of(*subscriptions).renewals.append(
                    _reply_renewal(body, time_ms, verification.position, 0)
                )
        for entry in elements(reply.get("pending_renewal_info")):
            original = identifier(members(entry).get("original_transaction_id"))
            if original is not None:
                place += 1
                self._of(Subscription(environment, bundle_id, original)).renewals.append(
                    _reply_renewal(entry, time_ms, verification.position, place)
                )
        says = any(reply.get(name) is not None for name in OUTERMOST)
        if is_legacy(reply) and says and len(about) == 1:
            self._of(*about).renewals.append(
                _reply_renewal(reply, time_ms, verification.position, place + 1)
            )

    def take_signed(self, statement, key, event, place):
        """R13, statements: a signed transaction that counts; `place` in its list.

        Gives the same as `take_reply`.
        """
        if statement.fields.get("transactionReason") == "RENEWAL":
            self._renewals.add(key)
        is_renewing = identifier(statement.fields.get("type")) in (None, RENEWING)
        if not is_renewing or statement.expires_ms is None:
            return []
        told = _statement(
            statement, key, statement.signed_ms, event.position, place,
            offer=_signed_offer(statement), revoked_ms=statement.revocation_ms,
        )
        known = self._of(self._take(statement, told))
        if event.upload is not None:
            self._meet(known, event.upload, event.position)
        known.signed_country = known.signed_country or statement.country_code
        known.account = known.account or statement.account
        known.token = known.token or statement.user_token
        return [(key, known)]

    def take_signed_renewal(self, told, position, place):
        """Valid renewal information that the App Store signed; `told`: a `SignedRenewal`."""
        fields = told.fields
        original = identifier(fields.get("originalTransactionId"))
        if original is None:
            return
        environment = identifier(fields.get("environment")) or told.environment
        renewal = Renewal(
            date_ms(fields.get("signedDate")),
            position,
            place,
            known_flag(fields.get("autoRenewStatus")),
            identifier(fields.get("autoRenewProductId")),
            identifier(fields.get("expirationIntent")),
            known_flag(fields.get("isInBillingRetryPeriod")),
            date_ms(fields.get("gracePeriodExpiresDate")),
        )
        self._of(Subscription(environment, told.bundle_id, original)).renewals.append(renewal)

    def _take(self, row, statement):
        """The statement's subscription."""
        original = row.identifier("original_transaction_id") or row.identifier("transaction_id")
        key = statement.key
        subscription = Subscription(key.environment, key.bundle_id, original)
        self._of(subscription).statements.append(statement)
        self._by_sale.setdefault(key, []).append(statement)
        return subscription

    def _meet(self, known, upload, position):
        """R6, as for one sale, except that another user takes over from an erased one."""
        known.client_country = known.client_country or upload.country_code
        user = upload.user_identifier
        if user is None or user == known.user:
            return
        is_over = known.user is not None and is_forgotten(known.user, upload.position)
        if known.user is None or is_over:
            known.user, known.user_position = user, position
            known.is_taken_over = known.is_taken_over or is_over


def _statement(row, key, time_ms, position, place, **told):
    return PeriodStatement(
        key=key,
        start_ms=_date_ms(row, "purchase_date_ms", "original_purchase_date_ms"),
        time_ms=time_ms,
        position=position,
        place=place,
        product_id=row.identifier("product_id"),
        started_ms=_date_ms(row, "original_purchase_date_ms", "purchase_date_ms"),
        expires_ms=row.expires_ms,
        **told,
    )


def _date_ms(row, *names):
    """The first date that is present."""
    return next((ms for ms in map(row.date_ms, names) if ms is not None), None)


def _row_offer(row):
    if row.flag("is_trial_period"):
        return "trial"
    if row.flag("is_in_intro_offer_period"):
        return "introductory"
    if row.identifier("promotional_offer_id") is not None:
        return "promotional"
    return "" if row.identifier("offer_code_ref_name") is None else "offer_code"


def _signed_offer(statement):
    if statement.is_trial:
        return "trial"
    kind = statement.offer_type
    return "" if kind is None else OFFERS.get(kind, "other")


def _reply_renewal(fields, time_ms, position, place):
    return Renewal(
        time_ms,
        position,
        place,
        known_flag(fields.get("auto_renew_status")),
        identifier(fields.get("auto_renew_product_id")),
        identifier(fields.get("expiration_intent")),
        known_flag(fields.get("is_in_billing_retry_period")),
        Row(fields).date_ms("grace_period_expires_date_ms"),
    )


def known_flag(value):
    """A flag, or None if it is absent."""
    return None if value is None or value == "" else flag(value)
