# The fold from events to sales and exceptions (revenue rules, R1, R4, R6, R8, R12).
from dataclasses import dataclass, field

from money import Price
from pricing import price_by_client, take_signed_price
from refunds import Refunds
from rows import Key, Row, fault_of, is_unkeyed_renewal, key_of, kind_of, sale_date_ms, source_rows
from signed import SignedEvent
from subscriptions import Subscriptions
from values import as_text, forgotten_at, identifier, integer, is_forgotten, members


@dataclass(eq=False)
class Sale:
    key: Key
    first_position: int
    product_id: str
    quantity: int
    date_ms: int
    kind: str
    is_intro: bool
    is_promo: bool
    is_offer_code: bool
    transaction_id: str | None
    original_transaction_id: str | None
    trust: str = ""
    aliases: set = field(default_factory=set)
    # R4: a bad quantity became 1.
    has_bad_quantity: bool = False
    # R12: an introductory offer that a later statement may identify as a trial.
    may_be_trial: bool = False
    # (alpha-2, position) of the first client and of the first signed statement that gave one.
    client_country: tuple | None = None
    signed_country: tuple | None = None
    # The user of the first upload that names one, and that upload; then the present holder, if the user was
    # erased.
    uploader: str | None = None
    uploader_position: int | None = None
    claimed_by: str | None = None
    # The first upload of each user that shows it.
    uploads: dict = field(default_factory=dict)
    # The Apple Account and the token of the first statement that has one; the token with its position.
    account: str | None = None
    token: tuple | None = None
    # R6, at report position.
    user: object = None
    # Whether an event with an upload has shown it.
    is_uploaded: bool = False
    # A client's unit price with its rule and position; a signed price for the whole quantity.
    client_price: Price | None = None
    client_basis: str | None = None
    client_position: int | None = None
    signed_price: Price | None = None
    signed_position: int | None = None
    price_problem: str | None = None
    is_upgraded: bool = False
    refunds: Refunds = field(default_factory=Refunds)

    @property
    def country(self):
        """R12: the storefront's, else the client's; (None, None) if neither is known."""
        return self.signed_country or self.client_country or (None, None)

    @property
    def user_identifier(self):
        return self.user.name

    @property
    def is_paid(self):
        return self.kind in ("regular", "offer")

    @property
    def shown_transaction_id(self):
        return self.transaction_id or self.original_transaction_id


@dataclass(frozen=True)
class Finding:
    """A row of the exceptions report; `subject` distinguishes sales with the same key text.

    `verified_at_ms`, for an exception without a sale, is when the event that caused it occurred, and
    `upload` is that event's. `date_ms` is the line's, if it is about one.
    """

    name: str
    environment: str
    bundle_id: str
    sale_key: str
    product_id: str
    transaction_id: str
    position: int
    detail: str
    subject: object = None
    verified_at_ms: int | None = None
    upload: object = None
    date_ms: int | None = None


def about_sale(name, sale, position, detail="", date_ms=None):
    return Finding(
        name,
        sale.key.environment,
        sale.key.bundle_id,
        sale.key.text,
        sale.product_id,
        sale.shown_transaction_id or "",
        position,
        detail,
        sale.key,
        date_ms=date_ms,
    )


def deduplicated(findings):
    """R9: once for each (type, sale or row, detail), with the first position."""
    first = {}
    for finding in findings:
        subject = finding.subject or (
            finding.environment,
            finding.bundle_id,
            finding.product_id,
            finding.transaction_id,
        )
        if finding.name == "price_unmatched":
            # R7: once for each upload.
            subject = finding.upload.position
        identity = (finding.name, subject, finding.detail)
        if identity not in first or finding.position < first[identity].position:
            first[identity] = finding
    return list(first.values())


class Fold:
    """Sales and exceptions of the events so far, to be given in position order."""

    def __init__(self, declared=None):
        """`declared`: the types of an app's products by bundle id, if it declares any."""
        self.sales = {}
        # The aliases of all of them.
        self.aliases = set()
        self.findings = []
        self.uploads = {}
        self.declared = declared or {}
        self.subscriptions = Subscriptions()

    def meet(self, upload):
        """An upload counts for its user, whatever its outcome."""
        self.uploads[upload.position] = upload

    def add(self, event):
        """Takes a verification, or an event with signed transactions."""
        if event.upload is not None:
            self.meet(event.upload)
        if isinstance(event, SignedEvent):
            self._add_signed(event)
        else:
            self._add_verification(event)

    def _add_verification(self, verification):
        reply = verification.reply
        receipt = members(reply.get("receipt"))
        endpoints = {"production": "Production", "sandbox": "Sandbox"}
        otherwise = "Production" if verification.environment is None else verification.environment
        endpoint = endpoints.get(verification.endpoint, otherwise)
        environment = identifier(reply.get("environment")) or endpoint
        bundle_id = verification.bundle_id or ""
        asked_ms = Row(receipt).date_ms("request_date_ms")
        status = integer(reply.get("status"))
        if status is not None and not -(2**63) <= status < 2**63:
            # No status is that large, so it counts as unreadable.
            status = None
        if verification.status is not None:
            status = verification.status
        counts = verification.counts
        if counts is None:
            counts = status in (0, 21006)
        if not counts:
            shown = "none" if status is None else status
            detail = f"status {shown} at {verification.position}"
            self.note("reply_not_valid", verification, environment, bundle_id, detail)
            return
        groups = self._groups(verification, environment, bundle_id)
        products = self.declared.get(verification.declared_by or bundle_id)
        if products:
            self._compare_products(groups, products, verification)
        for key, rows in groups.items():
            rows.sort(key=lambda row: row.order)
            if key not in self.sales:
                self.sales[key] = first_observation(key, rows[0], verification.position)
                self.sales[key].trust = verification.trust
            else:
                self._compare(self.sales[key], rows, verification.position)
            sale = self.sales[key]
            if any(row.flag("is_trial_period") for row in rows):
                become_trial(sale)
            self._extend(sale, rows, verification.position)
            self._meet_upload(sale, verification, products or {})
            self._meet_person(sale, rows, verification.position)
            _cancel(sale, rows, verification, asked_ms)
        self._follow_takeovers(self.subscriptions.take_reply(
            [(row, key) for key, rows in groups.items() for row in rows],
            verification, environment, bundle_id, asked_ms,
        ))
        shown = [self.sales[key] for key in groups]
        price_by_client(self, shown, verification, (environment, bundle_id))

    def _add_signed(self, event):
        """R12: every statement by itself, in the order of the list; then clients' prices."""
        shown, place = {}, None
        for number, statement in enumerate(event.statements):
            environment, bundle_id = statement.environment, statement.bundle_id
            fault = fault_of(statement, environment, bundle_id)
            if fault:
                self._note_malformed_row(statement, fault, event, environment, bundle_id)
                continue
            place = place or (environment, bundle_id)
            products = self.declared.get(event.declared_by or bundle_id) if event.upload else None
            key = key_of(statement, environment, bundle_id)
            if products:
                self._compare_products({key: [statement]}, products, event)
            shown[key] = self._take_statement(key, statement, event, products or {})
            self._follow_takeovers(self.subscriptions.take_signed(statement, key, event, number))
        for number, renewal in enumerate(event.renewals):
            self.subscriptions.take_signed_renewal(renewal, event.position, number)
        if event.upload is not None and event.statements:
            first = event.statements[0]
            place = place or (first.environment, first.bundle_id)
            price_by_client(self, list(shown.values()), event, place)

    def _take_statement(self, key, statement, event, products):
        """R12: one signed transaction of a sale; the sale."""
        sale = self.sales.get(key)
        if sale is None:
            sale = self.sales[key] = first_statement(key, statement, event.position)
        else:
            if statement.is_trial:
                become_trial(sale)
            if sale.has_bad_quantity and statement.quantity is not None:
                self._replace_quantity(sale, statement.quantity)
            self._compare(sale, [statement], event.position)
        self._extend(sale, [statement], event.position)
        if event.upload is not None:
            self._meet_upload(sale, event, products)
        if sale.signed_country is None and statement.country_code is not None:
            sale.signed_country = (statement.country_code, event.position)
            self._compare_countries(sale, event.position)
        self._meet_person(sale, [statement], event.position)
        take_signed_price(self, sale, statement, event.position)
        sale.refunds.take_signed(statement, event.position)
        return sale

    def _replace_quantity(self, sale, quantity):
        """R12: the first good quantity of a signed statement replaces a 1 that stands for a bad
        one."""
        sale.quantity, sale.has_bad_quantity = quantity, False
        price = sale.client_price
        if price is not None and not price.fits(quantity):
            sale.client_price = sale.client_basis = sale.client_position = None
            sale.price_problem = sale.price_problem or "price_unreadable"

    def note_malformed(self, position, detail):
        """An event that deviates from the catalogue; `detail`: its type, and the wrong member."""
        self.findings.append(Finding("malformed_event", "", "", "", "", "", position, detail))

    def note(self, name, verification, environment, bundle_id, detail):
        self._without_sale(name, verification, environment, bundle_id, "", "", detail)

    def _without_sale(
        self, name, verification, environment, bundle_id, product_id, transaction_id, detail
    ):
        self.findings.append(
            Finding(
                name,
                environment,
                bundle_id,
                "",
                product_id,
                transaction_id,
                verification.position,
                detail,
                verified_at_ms=verification.occurred_at_ms,
                upload=verification.upload,
            )
        )

    def _groups(self, verification, environment, bundle_id):
        """R2: the well-formed rows by sale; the malformed ones become exceptions."""
        groups = {}
        for row in source_rows(verification.reply):
            fault = fault_of(row, environment, bundle_id)
            if fault:
                self._note_malformed_row(row, fault, verification, environment, bundle_id)
                continue
            groups.setdefault(key_of(row, environment, bundle_id), []).append(row)
        return groups

    def _note_malformed_row(self, row, fault, event, environment, bundle_id):
        transaction = row.identifier("transaction_id")
        self._without_sale(
            "malformed_transaction",
            event,
            environment,
            bundle_id,
            row.identifier("product_id") or "",
            transaction or row.identifier("original_transaction_id") or "",
            fault,
        )

    def _compare_products(self, groups, products, verification):
        """Fraud: rows of products that the app does not declare."""
        for key, rows in groups.items():
            for row in rows:
                product = row.identifier("product_id")
                if product in products:
                    continue
                transaction = row.identifier("transaction_id")
                transaction = transaction or row.identifier("original_transaction_id")
                self._without_sale(
                    "product_unknown",
                    verification,
                    key.environment,
                    key.bundle_id,
                    product,
                    transaction,
                    "",
                )

    def _compare(self, sale, rows, position):
        """R4: a later row that disagrees."""
        for row in rows:
            if row.identifier("product_id") != sale.product_id:
                self.about("conflicting_observation", sale, position, "product_id")
            if (row.quantity or 1) != sale.quantity:
                self.about("conflicting_observation", sale, position, "quantity")

    def about(self, name, sale, position, detail=""):
        self.findings.append(about_sale(name, sale, position, detail))

    def _extend(self, sale, rows, position):
        """R2 aliases, R3 renewals, R4 quantities, R8 upgrades."""
        for row in rows:
            transaction = row.identifier("transaction_id")
            if transaction is not None:
                sale.aliases.add(transaction)
            if row.quantity is None:
                self.about("bad_quantity", sale, position, as_text(row.fields.get("quantity")))
            if is_unkeyed_renewal(row, sale.key):
                self.about("renewal_without_line_item", sale, position, transaction)
            if row.is_upgraded:
                sale.is_upgraded = True
        self.aliases |= sale.aliases

    def _meet_upload(self, sale, event, products):
        """R6, and R12: a storefront outranks a client's country."""
        upload, position = event.upload, event.position
        if sale.client_country is None and upload.country_code is not None:
            sale.client_country = (upload.country_code, upload.position)
            self._compare_countries(sale, position)
        user = upload.user_identifier
        if user is None:
            return
        sale.uploads.setdefault(user, upload.position)
        if sale.uploader is None:
            sale.uploader, sale.uploader_position = user, upload.position
        elif user != sale.uploader and not _claim(sale, user, upload.position):
            self.about("claimed_by_other_user", sale, position, user)
            # Fraud: a declared consumable belongs to the user who showed it first.
            if products.get(sale.product_id) == "consumable":
                detail = f"upload at {upload.position}"
                self.about("transaction_replayed", sale, position, detail)

    def _follow_takeovers(self, told):
        """R6: a sale first shown after its subscription was taken over from an erased user."""
        for key, known in told:
            sale = self.sales[key]
            if not known.is_taken_over or sale.first_position <= known.user_position:
                continue
            if sale.uploader is None:
                sale.uploader, sale.uploader_position = known.user, known.user_position

    def _meet_person(self, sale, rows, position):
        """R6: the first Apple Account and the first token."""
        for row in rows:
            sale.account = sale.account or row.account
            if sale.token is None and row.user_token is not None:
                sale.token = (row.user_token, position)

    def _compare_countries(self, sale, position):
        """R12: the storefront's country and the first client's differ."""
        if sale.signed_country is not None and sale.client_country is not None:
            client_country, _ = sale.client_country
            if client_country != sale.signed_country[0]:
                self.about("country_conflict", sale, position, client_country)


def _claim(sale, user, position):
    """R6: the first upload after the erasure of a sale's holder claims it; the name stays."""
    if forgotten_at(sale.uploader) is None:
        return False
    holder = sale.claimed_by or sale.uploader
    if holder != user and not is_forgotten(holder, position):
        return False
    sale.claimed_by = user
    return True


def _cancel(sale, rows, verification, asked_ms):
    """R8: a reply's statement of a cancellation."""
    showing = [row for row in rows if row.date_ms("cancellation_date_ms") is not None]
    cancellation = None
    if showing:
        reason = showing[0].identifier("cancellation_reason") or ""
        cancellation = (showing[0].date_ms("cancellation_date_ms"), reason)
    is_upgraded = any(row.is_upgraded for row in rows)
    sale.refunds.take_reply(verification, asked_ms, cancellation, is_upgraded)


def become_trial(sale):
    """R12: an introductory offer without type and price turns out to be a trial."""
    if sale.may_be_trial:
        sale.kind, sale.may_be_trial = "trial", False
        sale.client_price = sale.client_basis = sale.client_position = None
        sale.signed_price = sale.signed_position = None


def first_observation(key, row, position):
    """R4: what the primary row of the first verification fixes."""
    return _first(
        key,
        row,
        position,
        kind=kind_of(row),
        is_intro=row.flag("is_in_intro_offer_period"),
        is_promo=row.identifier("promotional_offer_id") is not None,
        is_offer_code=row.identifier("offer_code_ref_name") is not None,
    )


def first_statement(key, statement, position):
    """R12: what the first statement fixes, if it is a signed one."""
    sale = _first(
        key,
        statement,
        position,
        kind=statement.kind,
        is_intro=statement.offer_type == 1,
        is_promo=statement.offer_type == 2,
        is_offer_code=statement.offer_type == 3,
    )
    sale.trust = statement.trust
    sale.may_be_trial = statement.may_be_trial
    return sale


def _first(key, row, position, **kinds):
    sale = Sale(
        key=key,
        first_position=position,
        product_id=row.identifier("product_id"),
        quantity=row.quantity or 1,
        date_ms=sale_date_ms(row, key),
        transaction_id=row.identifier("transaction_id"),
        original_transaction_id=row.identifier("original_transaction_id"),
        has_bad_quantity=row.quantity is None,
        **kinds,
    )
    if key.kind == "transaction":
        sale.aliases.add(key.text)
    return sale
