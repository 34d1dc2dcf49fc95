# Draws metadata for uploads: prices in every form and by every rule, mostly good.
import json
import random


class Raw(str):
    """A JSON token to write unchanged."""


def encoded(value):
    """JSON text; a Raw is written unchanged."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{encoded(k)}:{encoded(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(encoded, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


class MetadataMaker:
    """Draws from one seeded source, so that the seed decides every byte."""

    def __init__(self, seed, nasty):
        self.random = random.Random(seed)
        self.nasty = nasty

    def chance(self, part):
        return self.random.random() < part

    def pick(self, *values):
        return self.random.choice(values)

    def written_id(self, text):
        """An id as a string or, if possible, as a JSON integer."""
        return int(text) if text.isdecimal() and text.isascii() and self.chance(0.1) else text

    def usual_price(self):
        currency = self.pick("EUR", "EUR", "USD", "USD", "JPY", "KWD", "GBP", "HRK", "CLF")
        micros = self.pick(*[990_000, 9_990_000, 4_990_000, 1_500_000, 120_000_000, 5_250,
                                     12_345_678_901_234])
        return micros, currency

    def _stated(self, micros, currency):
        """A price in one or more forms, mostly good."""
        whole, decimals = divmod(micros, 1_000_000)
        text = f"{whole}.{decimals:06}".rstrip("0").rstrip(".")
        long = text + ("000000000000000444" if "." in text else ".00")
        form = self.random.randrange(12)
        entry = {}
        if form < 5:
            entry["price"] = self.pick(text, text, Raw(text), Raw(long), long)
        elif form < 7:
            entry["price_micros"] = micros
        elif form == 7 and micros % 1000 == 0 and micros < 10**17:
            entry["price_milliunits"] = micros // 1000
        elif form == 8:
            entry = {"price": text, "price_micros": micros, "price_milliunits": None}
        elif form == 9:
            entry["price"] = self.pick(
                "0.0000005", "0.0000015", "1.2345675", "1.2345665", "1.23456650001", "00.99",
                "98765432.123456", Raw("0.99000000000000000444"))
            if self.nasty and self.chance(0.05):
                entry["price"] = "99999999999.999999"
        elif form == 10:
            entry = self._bad_price(text, micros)
        else:
            entry["price"] = text
        currency = self.random.choices(
            [currency, currency.lower(), f" {currency}\t", None, "ABC", "XAU", "XTS", ""],
            [88, 3, 3, 2, 1, 1, 1, 1])[0]
        if currency is not None or self.chance(0.5):
            entry["currency"] = currency
        return entry

    def _bad_price(self, text, micros):
        bad = [
            {"price": "9,99 €"}, {"price": "¥28.00"}, {"price": "-1"}, {"price": Raw("-1.5")},
            {"price": Raw("1e2")}, {"price": "1."}, {"price": ".5"}, {"price": " 1"},
            {"price": "1\n"}, {"price": "123456789012"}, {"price": True}, {"price": [1]},
            {"price": ""}, {"price": None}, {}, {"price_micros": str(micros)},
            {"price_micros": Raw("1.0")}, {"price_micros": Raw("123456789012345678")},
            {"price_milliunits": Raw("123456789012345")}, {"price_micros": -1},
            {"price": text, "price_micros": micros + 1}, {"price": "1", "price_milliunits": 1001},
            {"price": text, "price_micros": "x"}, {"price": "0"}, {"price": Raw("0.00")},
            {"price_micros": 0}, {"price": "0.0000004"}, {"price": "٣"},
        ]
        return dict(self.random.choice(bad))

    def metadata(self, sales):
        if self.chance(0.15):
            return self.pick(None, {}, {"campaign": "spring"}, {"prices": "none"})
        metadata, entries = {"campaign": 5}, []
        for sale in sales:
            micros, currency = sale["price"]
            if self.chance(0.2):
                micros += 1_000_000
            if self.chance(0.5):
                named = self.pick("transaction", "product", "product", "product", "original", "stranger")
                entry = self._stated(micros, currency)
                if named == "transaction":
                    transaction = self.random.choice(sale["transactions"])
                    entry["transaction_id"] = self.written_id(transaction)
                elif named == "original":
                    entry["transaction_id"] = sale["original"]
                elif named == "stranger":
                    # An id that StoreKit had and Apple's reply has not.
                    entry["transaction_id"] = self.written_id(f"8{self.random.randrange(50)}")
                if named == "product" or self.chance(0.6 if named == "stranger" else 0.3):
                    entry["product_id"] = sale["product"]
                    kinds = {"intro": "intro", "promo": "promo", "offer_code": "offer_code"}
                    kind = kinds.get(sale["kind"], self.pick(None, None, "regular"))
                    if self.chance(0.15):
                        kind = self.pick("intro", "promo", "offer_code", "regular", "other", None)
                    if kind is not None or self.chance(0.2):
                        entry["kind"] = kind
                entries.append(entry)
        self.random.shuffle(entries)
        if self.chance(0.05):
            entries.insert(0, self.pick(None, 5, "text", [], {}))
        if entries or self.chance(0.2):
            metadata["prices"] = entries
        if self.chance(0.3):
            micros, currency = sales[0]["price"] if sales else self.usual_price()
            metadata.update(self._stated(micros, currency))
            if self.chance(0.25) and sales:
                metadata["product_id"] = sales[0]["product"]
            if self.chance(0.15) and sales:
                metadata["transaction_id"] = sales[0]["transactions"][0]
        return metadata
