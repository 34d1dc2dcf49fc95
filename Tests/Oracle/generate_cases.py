# Writes import files, price lists and rates that meet every revenue rule; the same for the same
# seed.
import argparse
import base64
import csv
import gzip
import pathlib
import random

from dates import DAY_MS, days_from_text, period_name, readable_text, time_text
from generate_metadata import Raw, encoded
from generate_signed import STATEMENT_DAYS, STOREFRONTS, SignedMaker
from signing import StandIn, unsigned

START_MS = days_from_text("2025-09-20") * DAY_MS
DAYS = 200
HOSTILE = [
    "=1+2", "+49", "-7", "@sum", "a,b", 'quo"te', "two\nlines", "\tlead", "\rlead", "plain",
    "ünï·코드", "𝒳", " spaced ", "'quoted'", "seen at 5", "100%", "\nlead", "a;b", "\uff1d1+2",
    "\uff0b49", "\uff0d7", "\uff20sum", "\uff1e", "\uff1dx;y",
]
NASTY = ["", "\x00nul", "\x7f", "\u2028", "\ufeffbom", "e\u0301", "💶" * 40, "null", "\\", "0"]
# Days from a period's start to its expiry; the next one starts after 30.
LENGTHS = (30, 30, 30, 30, 32, 28, 14, 365)
COUNTRIES = ["DE", "US", "JP", "KW", "FR", "XK", "GB"]
CURRENCIES = ["EUR", "USD", "JPY", "KWD", "GBP", "HRK", "CLF"]
BUNDLES = ["com.example.one", "com.example.two", "com.example.three"]
PRODUCTS = ["coins", "pro.month", "pro.year", "=hat", 'ring "gold", small', "-band"]

# The declarations of apps before the first import: one none, one all but two, one a single product.
DECLARED = {
    "com.example.two": {"coins": "consumable", "pro.month": "auto_renewable",
                        "pro.year": "auto_renewable", "=hat": "non_consumable"},
    "com.example.three": {"coins": "consumable"},
}


def transaction_receipt(bundle_id, transaction, original, line_item):
    """A receipt of the legacy form, unsigned."""
    def listed(entries):
        lines = "".join(f'\t"{name}" = "{value}";\n' for name, value in entries.items())
        return ("{\n" + lines + "}").encode()

    info = {"bid": bundle_id, "product-id": "coins", "transaction-id": transaction,
            "original-transaction-id": original, "web-order-line-item-id": line_item,
            "purchase-date-ms": START_MS, "original-purchase-date-ms": START_MS}
    parts = {"signature": b"\x02" + bytes(140), "purchase-info": listed(info)}
    return listed({name: base64.b64encode(part).decode() for name, part in parts.items()})


class Generator(SignedMaker):
    def __init__(self, seed, uploads, nasty):
        super().__init__(seed, nasty)
        self.uploads = uploads
        self.serial = 0
        self.users = ["42", "43", "u-1", *HOSTILE]
        self.people = []
        count = max(6, uploads // 3)
        self.sales = []
        for _ in range(count):
            self.sales.extend(self._purchase())
        cancelled = [sale for sale in self.sales if sale["cancels"]]
        self.told_often = self.random.sample(cancelled, min(len(cancelled), 12)) or self.sales
        self.by_bundle = {}
        for sale in self.sales:
            self.by_bundle.setdefault((sale["bundle"], sale["environment"]), []).append(sale)

    def _id(self, letter):
        self.serial += 1
        stem = f"{letter}{self.random.choice('0159')}{self.serial:05}"
        hostile = self.random.choice(HOSTILE + (NASTY if self.nasty else []))
        return hostile + stem if self.chance(0.1) else stem

    def _purchase(self):
        """One purchase, or a subscription's chain of them, as the facts that rows will show."""
        # The rules do not say whether an app may be registered under such a name.
        bundle = self.pick(*BUNDLES, *(["=com.example.four"] if self.nasty else []))
        product = self.pick(*PRODUCTS)
        environment = self.pick("Production", "Production", "Production", "Sandbox")
        original = self._id("2")
        originally_ms = START_MS + self.random.randrange(DAYS * DAY_MS)
        user, account, token = self._person(bundle, environment)
        periods = self.pick(1, 1, 2, 4) if product.startswith("pro") else 1
        is_renewing = periods > 1 or (product.startswith("pro") and self.chance(0.5))
        chain = []
        for period in range(periods):
            date_ms = originally_ms + period * 30 * DAY_MS + self.random.randrange(-4000, 4000)
            is_line_item = product.startswith("pro") and not self.chance(0.1)
            first = original if period == 0 else self._id("2")
            kind = "regular"
            if self.chance(0.15 if period else 0.55):
                kind = self.pick("trial", "intro", "promo", "offer_code", "family")
            country, quantity = self.pick(*COUNTRIES), self._quantity()
            chain.append(
                {
                    "bundle": bundle,
                    "environment": environment,
                    "product": product,
                    "line_item": self._id("5") if is_line_item else None,
                    "transactions": [first] + [self._id("2") for _ in range(self.pick(0, 0, 1))],
                    "original": original,
                    "date_ms": date_ms,
                    "original_date_ms": originally_ms,
                    "expires_ms": date_ms + self.pick(*LENGTHS) * DAY_MS if is_renewing else None,
                    "quantity": quantity,
                    "kind": kind,
                    "cancels": self.chance(0.4),
                    "upgrades": self.chance(0.1),
                    "is_advanced": self.chance(0.15),
                    "is_priced": self.chance(0.45),
                    "price": self._price(quantity),
                    "user": user,
                    "account": account,
                    "country": country,
                    "storefront": STOREFRONTS[country],
                    "tokens": self._tokens(token),
                }
            )
        return chain

    def _person(self, bundle, environment):
        """(user, Apple Account, token): a new person, or an earlier customer of the app."""
        known = [person for place, person in self.people if place == (bundle, environment)]
        if known and self.chance(0.6):
            return self.random.choice(known[-4:])
        number = len(self.people)
        person = (self.pick(*self.users), f"70{number:04}", f"7e3fb204-2d4a-4c2b-9d31-{number:012x}")
        self.people.append(((bundle, environment), person))
        return person

    def _tokens(self, own):
        """App account tokens of a sale: its user's in either case, one of many, and text that is not a
        token."""
        shared = self.pick(own, own, "7e3fb204-2d4a-4c2b-9d31-abcdefabcdef")
        return [own, own, own.upper(), shared, "=token"]

    def _price(self, quantity):
        """A usual price; for a million units sometimes one whose amount is about 64 bits."""
        micros, currency = self.usual_price()
        if quantity == 1_000_000 and self.chance(0.6):
            micros = self.pick(9_223_372_036_854, 9_223_372_036_855, 12_345_678_901_234)
        return micros, currency

    def _quantity(self):
        """Replies allow up to 10, signed transactions up to a million."""
        if self.chance(0.08):
            return self.pick(7, 25, 1_000_000, 1_000_000)
        return self.pick(1, 1, 1, 2, 3, 10)

    # Rows of a reply.

    def _integer(self, value):
        return self.pick(str(value), str(value), value)

    def _flag(self, value):
        if value:
            return self.pick(True, "true", 1, "1")
        return self.pick(False, "false", 0, "0", None, "TRUE", "yes")

    def _row(self, sale):
        transaction = self.random.choice(sale["transactions"])
        row = {
            "product_id": sale["product"],
            "transaction_id": self.written_id(transaction),
            "original_transaction_id": self.written_id(sale["original"]),
            "purchase_date_ms": self._integer(sale["date_ms"] + self.pick(0, 0, 0, 1000, -1000)),
            "original_purchase_date_ms": self._integer(sale["original_date_ms"]),
            "quantity": self._integer(sale["quantity"]),
            "purchase_date": "some text",
        }
        if sale["line_item"] is not None:
            row["web_order_line_item_id"] = self.written_id(sale["line_item"])
        elif self.chance(0.3):
            row["web_order_line_item_id"] = self.pick("0", "", None, 0, False)
        if sale["expires_ms"]:
            row["expires_date_ms"] = self._integer(sale["expires_ms"])
        kind = sale["kind"]
        if kind == "family":
            row["in_app_ownership_type"] = "FAMILY_SHARED"
        elif self.chance(0.3):
            row["in_app_ownership_type"] = "PURCHASED"
        if kind == "trial" or self.chance(0.4):
            row["is_trial_period"] = self._flag(kind == "trial")
        if kind == "intro" or self.chance(0.4):
            row["is_in_intro_offer_period"] = self._flag(kind == "intro")
        if kind == "promo":
            row["promotional_offer_id"] = "promo-1"
        if kind == "offer_code":
            row["offer_code_ref_name"] = self.pick("code", 7)
        if self.chance(0.3):
            row["app_account_token"] = self.pick(*sale["tokens"])
        if sale["upgrades"] and self.chance(0.5):
            row["is_upgraded"] = self._flag(True)
        if sale["cancels"] and self.chance(0.5):
            row["cancellation_date_ms"] = self._integer(self.refund_ms(sale))
            row["cancellation_reason"] = self.pick("0", "1", 1, None)
        if self.chance(0.06):
            self._write_out(row)
        self._spoil(row)
        return row

    def _write_out(self, row):
        """As replies of about 2011: written dates, and no milliseconds, or different ones."""
        zones = self.pick((False,), (True,), (False, True))
        names = ("purchase_date", "original_purchase_date", "cancellation_date")
        for name in names:
            if f"{name}_ms" not in row:
                continue
            ms = int(row[f"{name}_ms"])
            if self.chance(0.9):
                del row[f"{name}_ms"]
                ms -= ms % 1000
            row.pop(name, None)
            for is_pacific in zones:
                row[name + ("_pst" if is_pacific else "")] = readable_text(ms, is_pacific)

    def _spoil(self, row):
        """Sometimes a field that is missing, odd, or different from before."""
        if self.chance(0.04):
            row["quantity"] = self.pick("0", "11", "abc", Raw("1.5"), -1, True, "07", Raw("2.0"))
        if self.chance(0.03):
            row["quantity"] = self._integer(self.pick(1, 2, 3))
        if self.chance(0.03):
            row["product_id"] = self.pick(*PRODUCTS)
        if self.chance(0.1):
            lost = self.pick("product_id", "transaction_id", "original_transaction_id",
                             "purchase_date_ms", "original_purchase_date_ms", "quantity")
            missing = self.pick(None, "", True) if lost.endswith("_id") else None
            row[lost] = missing
            if self.chance(0.5):
                del row[lost]
        if self.chance(0.03):
            for name in self.pick(("transaction_id", "original_transaction_id"),
                                  ("purchase_date_ms", "original_purchase_date_ms")):
                row.pop(name, None)
        if self.chance(0.01):
            row["purchase_date_ms"] = self.pick("253402214400000", 4_102_444_800_000, 0, "1",
                                                "-62135596800001", 253_402_300_800_000, 1_215_647_999_999)
        if self.chance(0.01):
            # In seconds instead of milliseconds.
            for name in ("purchase_date_ms", "original_purchase_date_ms"):
                if str(row.get(name, "")).isdecimal():
                    row[name] = str(row[name])[:-3]
        if self.nasty and self.chance(0.03):
            name = self.pick("purchase_date_ms", "original_purchase_date_ms", "quantity",
                             "cancellation_date_ms", "web_order_line_item_id",
                             "product_id", "transaction_id")
            row[name] = self.pick(Raw("1e3"), Raw("-5"), "9" * 30, [], {}, " 1", "１", Raw("-0"),
                                  "9223372036854775808", Raw("253402300800000"), Raw("1.0"))

    def _reply(self, sales, bundle, environment, at_ms):
        status = self.random.choices([0, 21006, 21003, 21010, 21005], [90, 3, 1, 1, 1])[0]
        shown = self.pick(status, status, str(status))
        if self.nasty and self.chance(0.01):
            shown = self.pick(None, "zero", Raw("0.0"), True, -1, Raw("99999999999999999999"))
        if status not in (0, 21006) and self.chance(0.7):
            return {"status": shown}
        request_ms = at_ms + self.random.randrange(-20, 20) * DAY_MS
        if sales and self.chance(0.5):
            request_ms = sales[0]["date_ms"] + self.pick(*STATEMENT_DAYS) * DAY_MS
        dated = {"request_date_ms": self._integer(request_ms)} if self.chance(0.85) else {}
        if not dated and self.chance(0.5):
            is_pacific = self.chance(0.5)
            dated = {"request_date" + "_pst" * is_pacific: readable_text(request_ms, is_pacific)}
        rows = [self._row(sale) for sale in sales for _ in range(self.pick(1, 1, 2))]
        self.random.shuffle(rows)
        rows.extend(self.pick([], [], [], [], ["no object", 5, None]))
        if self.chance(0.15) and rows:
            return self._legacy_reply(shown, rows, bundle, dated)
        named = {"environment": environment} if self.chance(0.9) else {}
        cut = self.random.randrange(len(rows) + 1)
        reply = {"status": shown, **named}
        if self.chance(0.4):
            reply["pending_renewal_info"] = [self._pending(sale) for sale in sales]
        reply["receipt"] = {"bundle_id": bundle, **dated, "in_app": rows[:cut]}
        if self.chance(0.8):
            reply["latest_receipt_info"] = rows[cut:] + self.random.sample(rows, min(2, len(rows)))
        if self.chance(0.05):
            reply["latest_receipt_info"] = rows[0] if rows else {}
        if self.chance(0.05):
            reply["latest_expired_receipt_info"] = self.pick(*rows, "text") if rows else "text"
        return reply

    def _pending(self, sale):
        """A reply's renewal information of a subscription, each member possibly absent."""
        info = {
            "original_transaction_id": self.written_id(sale["original"]),
            "auto_renew_product_id": self.pick(sale["product"], "pro.year"),
            "auto_renew_status": self._integer(self.pick(0, 1, 1)),
            "expiration_intent": self._integer(self.pick(1, 2)),
            "is_in_billing_retry_period": self._flag(self.chance(0.5)),
            "grace_period_expires_date_ms": self._integer(sale["date_ms"] + self.pick(36, 46) * DAY_MS)}
        if self.chance(0.1):
            ms = int(info.pop("grace_period_expires_date_ms"))
            info["grace_period_expires_date"] = readable_text(ms, self.chance(0.5))
        return {name: value for name, value in info.items() if self.chance(0.75)}

    def _legacy_reply(self, status, rows, bundle, dated):
        row = rows[0] if isinstance(rows[0], dict) else {}
        flat = {"bid": bundle, "bvrs": "1", **row, **dated}
        if "expires_date_ms" in flat:
            flat["expires_date"] = str(flat.pop("expires_date_ms"))
        reply = {"receipt": flat, "status": status}
        if self.chance(0.5):
            reply["auto_renew_status"] = self._integer(self.pick(0, 1))
        if len(rows) > 1 and self.chance(0.6):
            reply["latest_receipt_info"] = rows[1]
        if len(rows) > 2 and self.chance(0.6):
            reply["latest_expired_receipt_info"] = rows[2]
        return reply

    # Lines.

    def _time(self, ms):
        form = self.random.randrange(5)
        if form == 0:
            return ms
        if form == 1:
            return time_text(ms + 3_600_000)[:-1] + "+01:00"
        if form == 2:
            return time_text(ms - ms % 1000)[:-5] + "Z"
        if form == 3:
            return time_text(ms - ms % 100)[:-3] + "Z"
        return time_text(ms)

    def _line(self, index):
        at_ms = START_MS + (DAYS + 30) * DAY_MS * index // max(1, self.uploads)
        at_ms += self.random.randrange(DAY_MS)
        bundle, environment = self.random.choice(sorted(self.by_bundle))
        pool = self.by_bundle[bundle, environment]
        # Most uploads follow their sales soon: later ones give no price.
        recent = [s for s in pool if 0 <= at_ms - s["date_ms"] <= 31 * DAY_MS]
        if recent and self.chance(0.6):
            pool = recent
        at_limit = self.chance(0.05)
        sales = self.random.sample(pool, min(len(pool), self.pick(0, 1, 1, 1, 2, 3)))
        if self.chance(0.4):
            # Some sales have long stories.
            sales = [self.random.choice(self.told_often)]
            bundle, environment = sales[0]["bundle"], sales[0]["environment"]
        if at_limit and sales:
            at_ms = sales[0]["date_ms"] + 30 * DAY_MS + self.pick(0, 1)
        fields = self._fields(sales)
        form = self.random.random()
        if form < 0.4:
            line = self._receipt_line(sales, bundle, environment, at_ms) | fields
            if sales and self.chance(0.1):
                self._transaction_receipt(line, sales, bundle)
        elif form < 0.45:
            return self._version_1_line(sales, bundle, environment, at_ms)
        elif form < 0.75 and sales:
            if self.chance(0.03):
                # Of one app, whatever the environment.
                others = self.by_bundle.get((bundle, self.pick("Production", "Sandbox")), [])
                sales += self.random.sample(others, min(1, len(others)))
            line = self.upload_line(sales, at_ms, fields)
        else:
            sale = sales[0] if sales and self.chance(0.95) else None
            return self.notification_line(sale, at_ms, bundle, environment)
        line["metadata"] = self.metadata(sales)
        reply = line.get("verification", {}).get("reply", {})
        is_dated = "signed_transactions" in line or "request_date_ms" in reply.get("receipt", {})
        if not is_dated or self.chance(0.9):
            line["occurred_at"] = at_ms if at_limit else self._time(at_ms)
        if self.chance(0.04):
            line.pop("verification", None)
        return line

    def _fields(self, sales):
        """Country, user and address of an upload."""
        line = {}
        country = self.pick(*COUNTRIES, None, None)
        if sales and self.chance(0.5):
            country = sales[0]["country"]
        if country or self.chance(0.5):
            line["country_code"] = country.lower() if country and self.chance(0.2) else country
        user = self.pick(None, *self.users)
        if sales and self.chance(0.85):
            user = self.pick(None, sales[0]["user"], sales[0]["user"])
        if self.nasty and self.chance(0.02):
            user = self.pick(*NASTY)
        if user is not None or self.chance(0.5):
            line[self.pick(*["user_identifier"] * 9, "user_identifer")] = user
        if self.chance(0.3):
            line["ip_address"] = self.pick(None, "192.0.2.7", "2001:db8::1")
        return line

    def _receipt_line(self, sales, bundle, environment, at_ms):
        receipt = random.Random(bundle + str(self.random.randrange(40))).randbytes(12)
        endpoint = "sandbox" if environment == "Sandbox" else "production"
        reply = self._reply(sales, bundle, environment, at_ms)
        if "environment" in reply and self.chance(0.02):
            endpoint = self.pick("sandbox", "production")
        line = {"marketplace": "itunes", "receipt": base64.b64encode(receipt).decode()}
        line["verification"] = {"endpoint": endpoint, "reply": reply}
        if "environment" in reply and self.chance(0.1):
            del line["verification"]["endpoint"]
        if self.chance(0.6):
            line["verification"]["occurred_at"] = self._time(at_ms + 1234)
        return line

    def _transaction_receipt(self, line, sales, bundle):
        """A readable receipt, of one of the sales or of none; its reply mostly names no bundle."""
        reply, sale = line["verification"]["reply"], self.pick(*sales)
        if reply["status"] not in (0, "0", 21006, "21006"):
            return
        named = [sale["transactions"][0], sale["original"], sale["line_item"] or "0"]
        for name in ("bundle_id", "bid"):
            if self.chance(0.7):
                reply["receipt"].pop(name, None)
        if not reply["receipt"].keys() & {"bundle_id", "bid"} and self.chance(0.2):
            named = ["no transaction", "of these", "0"]
            bundle = self.pick(*BUNDLES)
        if any('"' in name or "\\" in name or not name.isprintable() for name in named):
            return
        receipt = transaction_receipt(bundle, *named)
        line["receipt"] = base64.b64encode(receipt).decode()

    def _version_1_line(self, sales, bundle, environment, at_ms):
        """A version 1 notification, in its property or as a bare body; rarely one that lacks a part."""
        rows = [self._row(sale) for sale in sales for _ in range(self.pick(1, 1, 2))]
        unified = {"status": self.pick(0, 0, 0, 21006, 21003), "environment": environment,
                   "latest_receipt": base64.b64encode(self.random.randbytes(6)).decode(),
                   "latest_receipt_info": rows}
        if self.chance(0.6):
            unified["pending_renewal_info"] = [self._pending(sale) for sale in sales]
        body = {"notification_type": self.pick("CANCEL", "REFUND", "DID_RENEW", "NEW_ONE"),
                "password": "secret", "environment": "PROD", "bid": bundle, "auto_renew_status": "false",
                "unified_receipt": unified}
        if self.chance(0.06):
            lost = self.pick("bid", "unified_receipt", "latest_receipt")
            (unified if lost == "latest_receipt" else body).pop(lost)
        dated = {"occurred_at": self._time(at_ms)} if self.chance(0.97) else {}
        return body | dated if self.chance(0.5) else {"notification_v1": body} | dated

    def _bad_line(self):
        if self.chance(0.4):
            sale = self.random.choice(self.sales)
            return encoded(self.bad_signed_line(sale, sale["date_ms"] + DAY_MS))
        good = self._line(0)
        faults = [{"receipt": "no base64!"}, {"country_code": "ZZ"}, {"country_code": "UK"},
                  {"country_code": "Deutschland"}, {"occurred_at": "yesterday"},
                  {"metadata": "text"}]
        whole = ["", "no json", "\udcff", "[]", '{"marketplace":"itunes"}', "{", '"text"', "{}"]
        if self.chance(0.4):
            return self.pick(*whole)
        return encoded({**good, **self.pick(*faults)})

    def lines(self):
        written = []
        for index in range(self.uploads):
            if written and self.chance(0.03):
                written.append(self.random.choice(written))
            if self.chance(0.03):
                written.append(self._bad_line())
            written.append(encoded(self._line(index)))
        return written

    def price_lists(self):
        """Two lists; the second declares some entries of the first again."""
        entries = {}
        for product in PRODUCTS[:-1]:
            for country in (*self.random.sample(COUNTRIES, 3), ""):
                for _ in range(self.pick(0, 1, 2)):
                    day = START_MS // DAY_MS + self.random.randrange(-30, DAYS)
                    currency = self.pick(*CURRENCIES)
                    price = self.pick("4.99", "0", "120", "1.5")
                    entries[product, country, day] = (currency, price)
        again = {key: ("EUR", "7.77") for key in entries if self.chance(0.3)}
        for listed in (entries, again):
            rows = []
            for (product, country, day), (currency, price) in listed.items():
                rows.append([product, country, currency, price, period_name(day, "day")])
            yield ["product_id", "country_code", "currency", "price", "effective_from"], rows

    def rate_lists(self):
        """Direct, inverse and crossed pairs with gaps; HRK only at times, CLF never."""
        pairs = [("EUR", "USD"), ("EUR", "JPY"), ("GBP", "EUR"), ("USD", "KWD"), ("CHF", "HRK"),
                 ("CHF", "EUR"), ("AUD", "JPY"), ("AUD", "GBP"), ("USD", "JPY")]
        rates = {}
        for base, quote in pairs:
            for _ in range(12):
                day = START_MS // DAY_MS + self.random.randrange(10, DAYS)
                rate = f"{self.random.randrange(1, 200)}.{self.random.randrange(10**5):05}"
                rates[day, base, quote] = self.pick(rate, "0." + rate.replace(".", ""), "3")
        again = {key: "1.125" for key in rates if self.chance(0.2)}
        for declared in (rates, again):
            rows = [[period_name(d, "day"), b, q, rate] for (d, b, q), rate in declared.items()]
            yield ["date", "base", "quote", "rate"], rows


def write_cases(directory, seed, uploads, nasty=False, sign=unsigned):
    """Writes the files and returns (import files, price lists, rates).

    `sign` makes the signed objects; by default they are unsigned, which only the oracle accepts.
    """
    generator = Generator(seed, uploads, nasty)
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    texts = generator.orders.resolve(generator.lines(), sign)
    lines = [(text + "\n").encode(errors="surrogateescape") for text in texts]
    half = len(lines) // 2
    plain, compressed = directory / "import-1.ndjson", directory / "import-2.ndjson.gz"
    plain.write_bytes(b"".join(lines[:half]))
    compressed.write_bytes(gzip.compress(b"".join(lines[half:]), mtime=0))
    written = {"prices": [], "rates": []}
    lists = {"prices": generator.price_lists(), "rates": generator.rate_lists()}
    for name, documents in lists.items():
        for number, (columns, rows) in enumerate(documents, start=1):
            path = directory / f"{name}-{number}.csv"
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([columns, *rows])
            written[name].append(path)
    return [plain, compressed], written["prices"], written["rates"]


def main():
    parser = argparse.ArgumentParser(description="Writes cases for the revenue rules.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--uploads", type=int, required=True)
    parser.add_argument("--nasty", action="store_true", help="also what the rules leave open")
    parser.add_argument("--signer", metavar="PATH", help="app-store-stand-in; without it nobody signs")
    parser.add_argument("--out", required=True, metavar="DIRECTORY")
    arguments = parser.parse_args()
    sign = unsigned
    if arguments.signer:
        sign = StandIn(arguments.signer, pathlib.Path(arguments.out) / "authority")
    imports, prices, rates = write_cases(
        arguments.out, arguments.seed, arguments.uploads, arguments.nasty, sign
    )
    print(*imports, *prices, *rates, sep="\n")


if __name__ == "__main__":
    main()
