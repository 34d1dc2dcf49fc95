# Signed objects that were refused at first and accepted later: both verdicts must hold at their times.
import signed_objects
from signed_objects import Count, Forged, Trust, elements_of, members_of, value_of

REASONS = ("untrusted_root", "certificate_expired", "certificate_not_yet_valid", "signed_in_future")


class Judge:
    """Judges the signed objects of a log's events, in order."""

    def __init__(self, trust):
        self._trust = trust and Trust(trust.roots, trust.signers)
        # The data by which accepted objects are judged: refused ones of fetched pages, as written.
        self._refused = {}

    def take(self, line, position):
        """How many signed objects of the line hold, and how many were redacted."""
        if line.kind == b"trust.declared" and line.redaction is None:
            self._trust.declare(value_of(line.data.decode())["roots_sha256"])
        if line.kind == b"transactions.fetched":
            self._keep(line.data if line.redaction is None else line.redaction.kept, position)
        if line.kind == b"signatures.accepted":
            return self._accepted(line, position)
        if line.redaction is not None:
            kept = line.redaction.kept
            return signed_objects.check_kept(line.kind, line.version, line.time, kept, self._trust)
        held = signed_objects.check_event(line.kind, line.version, line.time, line.data, self._trust)
        return Count(held, 0)

    def _keep(self, data, position):
        if b'"outcome":"invalid"' not in data:
            return
        members = members_of(data.decode())
        for name in ("transactions", "renewals"):
            for place, text in enumerate(elements_of(members[name])):
                its_members = members_of(text)
                is_refused = value_of(its_members["outcome"]) == "invalid"
                if is_refused and value_of(its_members.get("reason")) in REASONS:
                    self._refused[position, name, place] = text

    def _accepted(self, line, position):
        count = Count(0, 0)
        try:
            data = value_of(line.data.decode())
            now_ms = signed_objects.time_ms(line.time.decode())
            for name in ("transactions", "renewals"):
                for one in data[name]:
                    text = self._refused.get((data["page"], name, one["index"]))
                    if text is None or data["page"] >= position:
                        raise Forged(f"no refused object stands at {name}[{one['index']}]")
                    count += self._check(text, one, now_ms)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Forged(f"not as the catalogue says: {error}") from error
        return count

    def _check(self, text, verdict, now_ms):
        if "signature" not in members_of(text):
            return Count(0, 1)
        signed, _ = signed_objects.stored_object(text)
        if verdict["outcome"] != "valid":
            raise Forged("an accepted object is not valid")
        if signed.check(self._trust, now_ms) != ("root_sha256", verdict["root_sha256"]):
            raise Forged("the verdict names another root")
        return Count(1, 0)
