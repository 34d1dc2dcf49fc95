# The fold from verifications to sales and exceptions (revenue rules, R1, R4, R6–R8).
from dataclasses import dataclass, field

from dates import DAY_MS
from money import Price, PriceProblem, has_form, read_price
from rows import Key, is_unkeyed_renewal, key_of, kind_of, missing_parts, sale_date_ms, source_rows
from values import as_text, date_ms, elements, identifier, integer, members

LATEST_PRICE_MS = 30 * DAY_MS


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
    trust: str
    aliases: set = field(default_factory=set)
    country_code: str | None = None
    country_position: int | None = None
    user_identifier: str | None = None
    user_position: int | None = None
    price: Price | None = None
    price_basis: str | None = None
    price_position: int | None = None
    price_problem: str | None = None
    is_upgraded: bool = False
    # (date, reason, position) of each Return, and (date, position) of each Reversal.
    returns: list = field(default_factory=list)
    reversals: list = field(default_factory=list)
    # request_date_ms of the newest reply that showed the cancellation, and of the last Reversal.
    cancellation_seen_ms: int | None = None
    reversal_seen_ms: int | None = None

    @property
    def is_cancelled(self):
        return len(self.returns) > len(self.reversals)

    @property
    def shown_transaction_id(self):
        return self.transaction_id or self.original_transaction_id


@dataclass(frozen=True)
class Finding:
    """A row of the exceptions report; `subject` tells sales of one key text apart.

    `verified_at_ms` is when the verification took place that met it, where it is about no sale.
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


def about_sale(name, sale, position, detail=""):
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
        identity = (finding.name, subject, finding.detail)
        if identity not in first or finding.position < first[identity].position:
            first[identity] = finding
    return list(first.values())


class Fold:
    """Sales and exceptions of the verifications so far, to be given in position order."""

    def __init__(self, declared=None):
        """`declared`: the types of an app's products by bundle id, where it declares any."""
        self.sales = {}
        self.findings = []
        self.declared = declared or {}

    def add(self, verification):
        reply = verification.reply
        receipt = members(reply.get("receipt"))
        endpoints = {"production": "Production", "sandbox": "Sandbox"}
        otherwise = "Production" if verification.environment is None else verification.environment
        endpoint = endpoints.get(verification.endpoint, otherwise)
        environment = identifier(reply.get("environment")) or endpoint
        bundle_id = identifier(receipt.get("bundle_id")) or identifier(receipt.get("bid")) or ""
        status = integer(reply.get("status"))
        if status is not None and not -(2**63) <= status < 2**63:
            # No status is so large: none that can be read.
            status = None
        if verification.status is not None:
            status = verification.status
        counts = verification.counts
        if counts is None:
            counts = status in (0, 21006)
        if not counts:
            shown = "none" if status is None else status
            detail = f"status {shown} at {verification.position}"
            self._note("reply_not_valid", verification, environment, bundle_id, detail)
            return
        groups = self._groups(verification, environment, bundle_id)
        products = self.declared.get(verification.declared_by or bundle_id)
        if products:
            self._compare_products(groups, products, verification)
        fresh = []
        for key, rows in groups.items():
            rows.sort(key=lambda row: row.order)
            if key not in self.sales:
                self.sales[key] = first_observation(key, rows[0], verification)
                fresh.append(self.sales[key])
            else:
                self._compare(self.sales[key], rows, verification.position)
            self._extend(self.sales[key], rows, verification, products or {})
            request_date_ms = date_ms(receipt.get("request_date_ms"))
            self._cancel(self.sales[key], rows, verification, request_date_ms)
        shown = [self.sales[key] for key in groups]
        self._price(shown, fresh, verification, environment, bundle_id)

    def note_malformed(self, position, detail):
        """An event that is not what the catalogue says; `detail`: its type, and the member at fault."""
        self.findings.append(Finding("malformed_event", "", "", "", "", "", position, detail))

    def _note(self, name, verification, environment, bundle_id, detail):
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
            )
        )

    def _groups(self, verification, environment, bundle_id):
        """R2: the well-formed rows by sale; the malformed ones become exceptions."""
        groups = {}
        for row in source_rows(verification.reply):
            missing = missing_parts(row)
            if missing:
                transaction = row.identifier("transaction_id")
                transaction = transaction or row.identifier("original_transaction_id")
                self._without_sale(
                    "malformed_transaction",
                    verification,
                    environment,
                    bundle_id,
                    row.identifier("product_id") or "",
                    transaction or "",
                    "+".join(missing),
                )
                continue
            groups.setdefault(key_of(row, environment, bundle_id), []).append(row)
        return groups

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
                self._about("conflicting_observation", sale, position, "product_id")
            if (row.quantity or 1) != sale.quantity:
                self._about("conflicting_observation", sale, position, "quantity")

    def _about(self, name, sale, position, detail=""):
        self.findings.append(about_sale(name, sale, position, detail))

    def _extend(self, sale, rows, verification, products):
        """R2 aliases, R3 renewals, R4 quantities, R6 country and user, R8 upgrades."""
        position = verification.position
        for row in rows:
            transaction = row.identifier("transaction_id")
            if transaction is not None:
                sale.aliases.add(transaction)
            if row.quantity is None:
                detail = as_text(row.fields.get("quantity"))
                self._about("bad_quantity", sale, position, detail)
            if is_unkeyed_renewal(row, sale.key):
                self._about("renewal_without_line_item", sale, position, transaction)
            if row.flag("is_upgraded"):
                sale.is_upgraded = True
        upload = verification.upload
        if sale.country_code is None and upload.country_code is not None:
            sale.country_code = upload.country_code
            sale.country_position = upload.position
        if sale.user_identifier is None and upload.user_identifier is not None:
            sale.user_identifier = upload.user_identifier
            sale.user_position = upload.position
        elif upload.user_identifier not in (None, sale.user_identifier):
            self._about("claimed_by_other_user", sale, position, upload.user_identifier)
            # Fraud: a declared consumable belongs to the user who showed it first.
            if products.get(sale.product_id) == "consumable":
                detail = f"upload at {upload.position}"
                self._about("transaction_replayed", sale, position, detail)

    def _cancel(self, sale, rows, verification, request_date_ms):
        """R8: Returns and Reversals."""
        showing = [row for row in rows if row.date_ms("cancellation_date_ms") is not None]
        if not showing:
            self._reverse(sale, verification, request_date_ms)
            return
        if sale.is_upgraded:
            self._about("upgrade_credit_unknown", sale, verification.position)
        elif not sale.is_cancelled and self._may_return(sale, request_date_ms):
            reason = showing[0].identifier("cancellation_reason") or ""
            date = showing[0].date_ms("cancellation_date_ms")
            sale.returns.append((date, reason, verification.position))
        if request_date_ms is not None:
            seen = sale.cancellation_seen_ms
            if seen is None or request_date_ms > seen:
                sale.cancellation_seen_ms = request_date_ms

    def _may_return(self, sale, request_date_ms):
        if not sale.returns:
            return True
        return request_date_ms is not None and request_date_ms > sale.reversal_seen_ms

    def _reverse(self, sale, verification, request_date_ms):
        if not sale.is_cancelled or None in (request_date_ms, sale.cancellation_seen_ms):
            return
        if request_date_ms > sale.cancellation_seen_ms:
            sale.reversals.append((verification.occurred_at_ms, verification.position))
            sale.reversal_seen_ms = request_date_ms

    def _price(self, shown, fresh, verification, environment, bundle_id):
        """R7, 1–3, for every sale that the verification shows."""
        metadata = verification.upload.metadata
        entries = [entry for entry in elements(metadata.get("prices")) if isinstance(entry, dict)]
        shorthand = metadata if has_form(metadata) else None
        if shorthand and any(identifier(metadata.get(n)) for n in ("product_id", "transaction_id")):
            entries.append(shorthand)
            shorthand = None
        fresh_regular = [sale for sale in fresh if sale.kind == "regular"]
        if shorthand and len(fresh_regular) > 1:
            detail = f"{len(fresh_regular)} new sales at {verification.position}"
            self._note("price_ambiguous", verification, environment, bundle_id, detail)
        for sale in shown:
            if sale.kind not in ("regular", "offer"):
                continue
            self._client_transaction(sale, entries, verification)
            if sale.price is None and sale in fresh:
                fitting = [entry for entry in entries if fits_product(entry, sale)]
                self._first_price(sale, "client_product", fitting[:1], verification)
            if sale.price is None and shorthand and fresh_regular == [sale]:
                self._first_price(sale, "client_single", [shorthand], verification)

    def _client_transaction(self, sale, entries, verification):
        fitting = [e for e in entries if identifier(e.get("transaction_id")) in sale.aliases]
        for entry in fitting[:1]:
            price = self._read(sale, "client_transaction", entry, verification)
            if price is not None and sale.price is None:
                self._settle(sale, price, "client_transaction", verification)
            elif price is not None and price != sale.price:
                self._about("price_conflict", sale, verification.position, str(price))

    def _first_price(self, sale, rule, entries, verification):
        """R7, 2 and 3: not later than 30 days after the sale."""
        for entry in entries:
            if verification.upload.occurred_at_ms - sale.date_ms > LATEST_PRICE_MS:
                self._about("price_observed_late", sale, verification.position, rule)
                continue
            price = self._read(sale, rule, entry, verification)
            if price is not None:
                self._settle(sale, price, rule, verification)

    def _read(self, sale, rule, entry, verification):
        try:
            return read_price(entry)
        except PriceProblem as problem:
            self._about(str(problem), sale, verification.position, rule)
            sale.price_problem = sale.price_problem or str(problem)
            return None

    def _settle(self, sale, price, rule, verification):
        sale.price = price
        sale.price_basis = rule
        sale.price_position = verification.upload.position


def first_observation(key, row, verification):
    """R4: what the primary row of the first verification fixes."""
    sale = Sale(
        key=key,
        first_position=verification.position,
        product_id=row.identifier("product_id"),
        quantity=row.quantity or 1,
        date_ms=sale_date_ms(row, key),
        kind=kind_of(row),
        is_intro=row.flag("is_in_intro_offer_period"),
        is_promo=row.identifier("promotional_offer_id") is not None,
        is_offer_code=row.identifier("offer_code_ref_name") is not None,
        transaction_id=row.identifier("transaction_id"),
        original_transaction_id=row.identifier("original_transaction_id"),
        trust=verification.trust,
    )
    if key.kind == "transaction":
        sale.aliases.add(key.text)
    return sale


def fits_product(entry, sale):
    """R7, 2: an entry for the product, of a kind that fits."""
    if identifier(entry.get("transaction_id")) is not None:
        return False
    if identifier(entry.get("product_id")) != sale.product_id:
        return False
    kind = identifier(entry.get("kind"))
    if sale.kind == "regular":
        return kind in (None, "regular")
    return (
        (kind == "intro" and sale.is_intro)
        or (kind == "promo" and sale.is_promo)
        or (kind == "offer_code" and sale.is_offer_code)
    )
