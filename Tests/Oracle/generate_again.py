# Receipts that come again many times, as a server appends them: with a reply used again, and with refunds
# and renewals between.
import copy
import datetime
import json
import random

RECEIPTS = 40
VISITS = 8
DAY_SECONDS = 86_400


def events(lines, seed):
    """(type, data) of uploads of known receipts and their verifications; data is JSON text."""
    source = random.Random(seed)
    log = [event for event in map(json.loads, lines) if event["data"] is not None]
    uploads = {e["seq"]: e["data"] for e in log if e["type"] == "receipt.uploaded"}
    verified = [
        e for e in log
        if e["type"] == "receipt.verified" and isinstance(e["data"].get("reply"), dict)
        and e["data"]["outcome"] == "valid" and e["data"]["upload"] in uploads
    ]  # fmt: skip
    now = datetime.datetime.fromisoformat(log[-1]["at"])
    visits = []
    for first in source.sample(verified, min(RECEIPTS, len(verified))):
        # Some replies are too old for the projections to keep.
        start = now - datetime.timedelta(seconds=source.choice([600, DAY_SECONDS - 60, 3 * DAY_SECONDS]))
        visits += [(first, start, number) for number in range(source.randint(2, VISITS))]
    # Each receipt's own visits stay in their order.
    source.shuffle(visits)
    visits.sort(key=lambda visit: visit[2])
    made = []
    replies = {}
    for first, start, number in visits:
        position = log[-1]["seq"] + 1 + len(made)
        time = _time(start + datetime.timedelta(seconds=number))
        other = source.choice(list(uploads.values()))
        upload = uploads[first["data"]["upload"]] | {"occurred_at": time}
        for member in ("country_code", "user_identifier", "metadata"):
            if member in upload and member in other and source.random() < 0.5:
                upload[member] = other[member]
        made.append(("receipt.uploaded", _text(upload)))
        result = first["data"] | {"upload": position, "occurred_at": time}
        own = result.pop("reply")
        known = replies.setdefault(first["seq"], [(first["seq"], own)])
        if source.random() < 0.4:
            reply = _changed(known[-1][1], start + datetime.timedelta(seconds=number), source)
            known.append((position + 1, reply))
            result["reply"] = reply
        else:
            result["reply_of"] = source.choice([known[-1], known[-1], source.choice(known)])[0]
        made.append(("receipt.verified", _text(result)))
    return made


def _changed(reply, now, source):
    """The same reply later: a sale refunded, a refund taken back, a renewal, or nothing new."""
    reply = copy.deepcopy(reply)
    now_ms = int(now.timestamp() * 1000)
    receipt = reply.get("receipt")
    lists = [reply.get("latest_receipt_info"), receipt.get("in_app") if isinstance(receipt, dict) else None]
    if isinstance(receipt, dict):
        receipt["request_date_ms"] = str(now_ms)
    rows = [row for rows in lists if isinstance(rows, list) for row in rows if isinstance(row, dict)]
    if not rows:
        return reply
    row = source.choice(rows)
    case = source.randrange(4)
    if case == 0:
        row["cancellation_date_ms"] = str(now_ms - 1000)
        row["cancellation_reason"] = source.choice(["0", "1"])
    elif case == 1:
        for name in [name for name in row if name.startswith("cancellation_")]:
            del row[name]
    elif case == 2:
        renewal = row | {
            "transaction_id": str(source.randrange(10**14, 10**15)),
            "web_order_line_item_id": str(source.randrange(10**14, 10**15)),
            "purchase_date_ms": str(now_ms - 5000),
            "expires_date_ms": str(now_ms + 30 * DAY_SECONDS * 1000),
        }
        next(rows for rows in lists if isinstance(rows, list) and row in rows).append(renewal)
    return reply


def _time(instant):
    return instant.strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant.microsecond // 1000:03}Z"


def _text(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
