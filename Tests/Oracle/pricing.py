# A sale's price by clients and by signed statements (revenue rules, R7.1–3 and R12).
from dates import DAY_MS
from money import PriceProblem, has_form, read_price
from values import elements, identifier

LATEST_PRICE_MS = 30 * DAY_MS


def take_signed_price(fold, sale, statement, position):
    """R12, Price: the first signed one stays, whatever clients sent."""
    if not sale.is_paid:
        return
    if statement.is_multi_seat:
        fold.about("multi_seat_price", sale, position)
        sale.price_problem = sale.price_problem or "multi_seat_price"
    price = statement.price
    if price is None:
        return
    if sale.signed_price is None:
        sale.signed_price, sale.signed_position = price, position
        if sale.client_price is not None:
            _compare_with_signed(fold, sale, sale.client_price, position)
    elif price != sale.signed_price:
        fold.about("price_conflict", sale, position, str(price))


def _compare_with_signed(fold, sale, price, position):
    """R12: a client's entry that gives another amount."""
    if price.of(sale.quantity) != sale.signed_price:
        fold.about("price_conflict", sale, position, str(price))


def price_by_client(fold, shown, event, place):
    """R7, 1–3, for every sale that an event with an upload shows.

    `place`: the environment and bundle of an exception without a sale.
    """
    # R12: the first observation is the first event with an upload.
    fresh = [sale for sale in shown if not sale.is_uploaded]
    for sale in fresh:
        sale.is_uploaded = True
    metadata = event.upload.metadata
    entries = [entry for entry in elements(metadata.get("prices")) if isinstance(entry, dict)]
    shorthand = metadata if has_form(metadata) else None
    if shorthand and any(identifier(metadata.get(n)) for n in ("product_id", "transaction_id")):
        entries.append(shorthand)
        shorthand = None
    fresh_regular = [sale for sale in fresh if sale.kind == "regular"]
    by_product = list(_by_product(fold, entries, fresh_regular, event, place))
    if shorthand and len(fresh_regular) > 1:
        detail = f"{len(fresh_regular)} new sales at {event.position}"
        fold.note("price_ambiguous", event, *place, detail)
    for sale in shown:
        if not sale.is_paid:
            continue
        _client_transaction(fold, sale, entries, event)
        if sale.client_price is None and sale in fresh:
            fitting = [e for e, only in by_product if only in (None, sale) and fits_product(e, sale)]
            _first_price(fold, sale, "client_product", fitting[:1], event)
        if sale.client_price is None and shorthand and fresh_regular == [sale]:
            _first_price(fold, sale, "client_single", [shorthand], event)


def _by_product(fold, entries, fresh_regular, event, place):
    """R7: (entry, the one sale that it is for, if any) for entries that name no known transaction."""
    for entry in entries:
        transaction = identifier(entry.get("transaction_id"))
        if transaction is None:
            yield entry, None
        elif transaction not in fold.aliases:
            product = identifier(entry.get("product_id"))
            of_product = [sale for sale in fresh_regular if sale.product_id == product]
            if len(of_product) == 1:
                yield entry, of_product[0]
            else:
                fold.note("price_unmatched", event, *place, transaction)


def _client_transaction(fold, sale, entries, event):
    fitting = [e for e in entries if identifier(e.get("transaction_id")) in sale.aliases]
    for entry in fitting[:1]:
        price = _read(fold, sale, "client_transaction", entry, event)
        if price is not None and sale.client_price is None:
            _settle(fold, sale, price, "client_transaction", event)
        elif price is not None and sale.signed_price is not None:
            _compare_with_signed(fold, sale, price, event.position)
        elif price is not None and price != sale.client_price:
            fold.about("price_conflict", sale, event.position, str(price))


def _first_price(fold, sale, rule, entries, event):
    """R7, 2 and 3: not later than 30 days after the sale."""
    for entry in entries:
        if event.upload.occurred_at_ms - sale.date_ms > LATEST_PRICE_MS:
            fold.about("price_observed_late", sale, event.position, rule)
            continue
        price = _read(fold, sale, rule, entry, event)
        if price is not None:
            _settle(fold, sale, price, rule, event)


def _read(fold, sale, rule, entry, event):
    try:
        price = read_price(entry)
        if not price.fits(sale.quantity):
            raise PriceProblem("price_unreadable")
        return price
    except PriceProblem as problem:
        fold.about(str(problem), sale, event.position, rule)
        sale.price_problem = sale.price_problem or str(problem)
        return None


def _settle(fold, sale, price, rule, event):
    sale.client_price = price
    sale.client_basis = rule
    sale.client_position = event.upload.position
    if sale.signed_price is not None:
        _compare_with_signed(fold, sale, price, event.position)


def fits_product(entry, sale):
    """R7, 2: an entry for the product, of a kind that fits."""
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
