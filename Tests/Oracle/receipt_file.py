# The app and the purchases in a receipt's file (revenue rules, R2), its signature unchecked.
import base64
import re
from dataclasses import dataclass

from values import elements, identifier, members

# Types of a unified receipt's attributes: the app's bundle, a purchase, and its ids.
BUNDLE, PURCHASE, TRANSACTION, ORIGINAL, LINE_ITEM = 2, 17, 1703, 1705, 1711
INTEGER, OCTETS, TEXT, SEQUENCE, SET = 0x02, 0x04, 0x0C, 0x30, 0x31
ENTRY = re.compile(r'"([^"\\]*)"\s*=\s*"([^"\\]*)"\s*;')


class NotReadable(Exception):
    """The bytes are not a receipt that this program reads."""


@dataclass(frozen=True)
class ReceiptFile:
    bundle_id: str
    # Transaction and original transaction ids, and line items.
    transactions: frozenset
    line_items: frozenset

    def shares(self, rows):
        """R2: whether the rows show one of its ids."""
        for row in rows:
            ids = {row.identifier("transaction_id"), row.identifier("original_transaction_id")}
            if ids & self.transactions or row.identifier("web_order_line_item_id") in self.line_items:
                return True
        return False

    def is_of_others(self, rows):
        """Whether both show ids, and none in common; rows without ids may be of any receipt."""
        names = ("transaction_id", "original_transaction_id", "web_order_line_item_id")
        shows_ids = any(row.identifier(name) not in (None, "0") for row in rows for name in names)
        return bool(self.transactions or self.line_items) and shows_ids and not self.shares(rows)


def read_receipt(data):
    """The receipt in either form, or None if it cannot be read."""
    try:
        return _transaction(data) if data.lstrip()[:1] == b"{" else _unified(data)
    except (NotReadable, ValueError):
        return None


def _made(bundle_id, transactions, line_items):
    if not bundle_id:
        raise NotReadable("no bundle")
    line_items = frozenset(filter(None, line_items)) - {"0"}
    return ReceiptFile(bundle_id, frozenset(filter(None, transactions)), line_items)


def reduced_receipt(bundle_id, facts):
    """What is known of a receipt of which only facts were kept."""
    transactions, line_items = [], []
    for purchase in elements(facts.get("purchases")):
        told = members(purchase)
        transactions += [told.get("transaction_id"), told.get("original_transaction_id")]
        line_items.append(told.get("web_order_line_item_id"))
    return _made(bundle_id, map(identifier, transactions), map(identifier, line_items)) if bundle_id else None


# The legacy form: property lists, one inside the other.


def _transaction(data):
    info = dict(ENTRY.findall(data.decode("utf-8"))).get("purchase-info", "")
    told = dict(ENTRY.findall(base64.b64decode(info, validate=True).decode("utf-8")))
    ids = [told.get("transaction-id"), told.get("original-transaction-id")]
    return _made(told.get("bid"), ids, [told.get("web-order-line-item-id")])


# The unified form: attributes inside signed data, DER.


def _unified(data):
    content, = _inside(data, SEQUENCE)
    signed = _parts(_parts(content)[1][1])[0][1]
    encapsulated = _parts(signed)[2][1]
    octets = _parts(_parts(encapsulated)[1][1])[0][1]
    bundle_id, transactions, line_items = None, [], []
    for kind, value in _attributes(octets):
        if kind == BUNDLE:
            bundle_id = _value(value)
        elif kind == PURCHASE:
            for inner, text in _attributes(value):
                if inner in (TRANSACTION, ORIGINAL):
                    transactions.append(_value(text))
                elif inner == LINE_ITEM:
                    line_items.append(_value(text))
    return _made(bundle_id, transactions, line_items)


def _attributes(octets):
    """(type, value) of every attribute of a set."""
    for attributes in _inside(octets, SET):
        for tag, attribute in _parts(attributes):
            parts = _parts(attribute)
            if tag != SEQUENCE or [part[0] for part in parts] != [INTEGER, INTEGER, OCTETS]:
                raise NotReadable("no attribute")
            yield int.from_bytes(parts[0][1]), parts[2][1]


def _value(octets):
    """A text, or the digits of an integer."""
    for tag, value in _parts(octets):
        return str(int.from_bytes(value, signed=True)) if tag == INTEGER else value.decode("utf-8")


def _inside(data, tag):
    parts = _parts(data)
    if [part[0] for part in parts] != [tag]:
        raise NotReadable("another element")
    return [parts[0][1]]


def _parts(data):
    """(tag, content) of consecutive elements."""
    parts, place = [], 0
    while place < len(data):
        if place + 2 > len(data):
            raise NotReadable("cut")
        tag, length = data[place], data[place + 1]
        place += 2
        if length > 0x80:
            size, place = place, place + (length & 0x7F)
            length = int.from_bytes(data[size:place])
        if place + length > len(data):
            raise NotReadable("cut")
        parts.append((tag, data[place:place + length]))
        place += length
    return parts
