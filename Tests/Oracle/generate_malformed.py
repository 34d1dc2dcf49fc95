# Events that this program never writes, appended to a log as another client could have done it.
import base64
import hashlib
import json
import pathlib
import random
import zlib

from catalogue import CATALOGUE, SIGNED_OBJECT, VERDICT

VALUES = ["null", "true", "5", "-1", "1.5", "99999999999999999999", '"x"', '""', "[]", "{}"]
ABSENT = None
SALT = bytes(16)
# Types that an import never appends.
SAMPLES = {
    "transactions.fetched": [
        {
            "app_family_id": "0e7c2f4a-9a0b-4c5d-8e6f-112233445566",
            "bundle_id": "com.example.app",
            "environment": "Production",
            "occurred_at": "2026-01-03T00:00:00.000Z",
            "call": "notification_history",
            "host": "api.storekit.apple.com",
            "from": "2026-01-01T00:00:00.000Z",
            "to": "2026-01-02T00:00:00.000Z",
            "revision": "r",
            "has_more": False,
            "transactions": [],
            "renewals": [],
        }
    ],
    "signatures.accepted": [
        {
            "page": 0,
            "occurred_at": "2026-01-03T00:00:00.000Z",
            "transactions": [{"index": 0, "outcome": "valid", "root_sha256": "ab" * 32}],
            "renewals": [],
        }
    ],
    "trust.declared": [
        {
            "production_host": "buy.itunes.apple.com",
            "sandbox_host": "127.0.0.1:8443",
            "roots_sha256": ["ab" * 32],
            "intermediates": [{"name": "A signer of signers", "sha256": "cd" * 32}],
            "local_testing_signers_sha256": [],
        }
    ]
}
# What a verification may have as the source of its reply.
SOURCES = [
    {"host": "buy.itunes.apple.com"},
    {"host": "sandbox.itunes.apple.com"},
    {"host": "127.0.0.1:8443"},
    {"via": "import"},
    {},
]


def events(lines, seed):
    """(type, data) of malformed and some good events, made from the log's lines; data is JSON text."""
    random_source = random.Random(seed)
    # Redacted lines have no data to damage.
    log = [event for event in map(json.loads, lines) if event["data"] is not None]
    made = []
    for kind, members in CATALOGUE.items():
        # A ledger carries out erasures: damaged ones do not concern figures.
        if kind == "data.redacted":
            continue
        samples = [event["data"] for event in log if event["type"] == kind]
        samples = samples or SAMPLES.get(kind, [])
        if not samples:
            continue
        for name, _, _ in members:
            for value in [ABSENT, *random_source.sample(VALUES, 5)]:
                made.append((kind, _changed(random_source.choice(samples), kind, name, value)))
    made.extend(_signed_events(log, random_source))
    uploads = [e for e in log if e["type"] == "receipt.uploaded"]
    verified = [e for e in log if e["type"] == "receipt.verified" and "reply" in e["data"]]
    next_position = log[-1]["seq"] + 1 + len(made)
    for _ in range(40):
        data = dict(random_source.choice(verified)["data"])
        positions = [e["seq"] for e in (*uploads[-3:], *verified[-3:], log[0])]
        positions += [next_position, next_position + 1, random_source.randrange(next_position)]
        data["upload"] = random_source.choice(positions)
        data.pop("via", None)
        # The reply is the last member.
        data |= random_source.choice(SOURCES) | {"reply": data.pop("reply")}
        if random_source.random() < 0.6:
            del data["reply"]
            data["reply_of"] = random_source.choice(positions)
        made.append(("receipt.verified", _text(data)))
        next_position += 1
    made.extend(_withdrawals(log, random_source))
    return made


def _withdrawals(log, random_source):
    """Withdrawals of some declarations, some of them twice, and of what is none of the type."""
    declared = [e["seq"] for e in log if e["type"] in ("prices.declared", "rates.declared")]
    for kind in ("prices.withdrawn", "rates.withdrawn"):
        positions = [*declared, log[0]["seq"], log[-1]["seq"] + 10_000]
        for position in random_source.choices(positions, k=3):
            yield kind, _text({"position": position})
        for value in VALUES:
            yield kind, "{" + f'"position":{value}' + "}"


# The content of the new events: their signed objects, and verdicts on those inside a notification.
INSIDE = [
    ("transactions.received", "transactions", SIGNED_OBJECT),
    ("notification.received", "transaction", VERDICT),
    ("notification.received", "notification", SIGNED_OBJECT),
]
# Changes to a payload, so that it counts for nothing or for something else.
PAYLOADS = [
    {"bundleId": "com.example.unregistered"}, {"bundleId": 5}, {"environment": "Xcode"},
    {"environment": None}, {"productId": ""}, {"isUpgraded": True}, {"quantity": -1},
    {"offerDiscountType": "FREE_TRIAL"}, {"advancedCommerceInfo": {}}, {"multiSeatInfo": {}},
]


def _signed_events(log, random_source):
    """Events whose signed objects are damaged, forged, or have changed content."""
    for kind, name, members in INSIDE:
        samples = [e["data"] for e in log if e["type"] == kind and name in e["data"]]
        for member, _, _ in members if samples else []:
            for value in [ABSENT, *random_source.sample(VALUES, 3)]:
                sample = random_source.choice(samples)
                inner = sample[name]
                one = inner[-1] if isinstance(inner, list) else inner
                texts = {key: _text(part) for key, part in one.items() if key != member}
                if value is not ABSENT:
                    texts[member] = value
                text = "{" + ",".join(f"{_text(key)}:{part}" for key, part in texts.items()) + "}"
                if isinstance(inner, list):
                    text = "[" + ",".join([*map(_text, inner[:-1]), text]) + "]"
                yield kind, _changed(sample, kind, name, text)
    samples = [e["data"] for e in log if e["type"] == "transactions.received"]
    for change in PAYLOADS if samples else []:
        sample = random_source.choice(samples)
        first, *rest = sample["transactions"]
        first = first | {"payload": first["payload"] | change}
        changed = sample | {"transactions": [first, *rest]}
        yield "transactions.received", _text(changed)
        forged = changed | {"transactions": [first | {"outcome": "invalid", "reason": "forged"}, *rest]}
        yield "transactions.received", _text(forged)
    for sample in samples[:2]:
        refused = {"outcome": '"invalid"', "fraud_reason": '"signature_invalid"'}
        for name, value in refused.items():
            yield "transactions.received", _changed(sample, "transactions.received", name, value)


def _text(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _changed(sample, kind, name, value):
    """The sample's data with another value for the member, in the catalogue's order."""
    members = {key: _text(member) for key, member in sample.items() if key != name}
    if value is not ABSENT:
        members[name] = value
    order = [key for key, _, _ in CATALOGUE[kind]]
    for last in ("reply", "receipt"):
        if last in order:
            order.remove(last)
            order.append(last)
    kept = [key for key in order if key in members]
    return "{" + ",".join(f"{_text(key)}:{members[key]}" for key in kept) + "}"


def append(directory, lines, made):
    """Appends events to the log, in one frame of its newest tail; no program may have it open."""
    last = json.loads(lines[-1])
    first = last["seq"] + 1
    body = "".join(
        _line(first + index, kind, last["at"], data) for index, (kind, data) in enumerate(made)
    ).encode()
    header = f"{first} {len(made)} {len(body)}\n".encode()
    checksum = zlib.crc32(header + body)
    folder = pathlib.Path(directory) / "log"
    tails = sorted(folder.glob("tail-*.log"))
    path = tails[-1] if tails else folder / f"tail-{first:020}.log"
    with open(path, "ab") as file:
        file.write(b"#%08x " % checksum + header + body)
    path.chmod(0o600)


def _line(position, kind, at, data):
    digest = hashlib.sha256(SALT + data.encode()).hexdigest()
    salt = base64.b64encode(SALT).decode()
    return (
        f'{{"seq":{position},"type":"{kind}","v":1,"at":"{at}","digest":"{digest}",'
        f'"salt":"{salt}","data":{data}}}\n'
    )
