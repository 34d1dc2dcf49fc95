# Signs the generators' payloads: they are collected, signed together, and put in their places.
import base64
import hashlib
import json
import pathlib
import re
import ssl
import subprocess

from generate_metadata import encoded

PLACE = re.compile(r"<signed object ([0-9]+)>")


class Orders:
    """Payloads to sign; each is a text that stands for its signed object until `resolve`."""

    def __init__(self):
        self._orders = []

    def add(self, payload, fault=None, text=None):
        """A placeholder of the payload, signed as written here.

        `fault`: one that `sign-objects` knows. `text`: the payload written in another way, not
        compact.
        """
        order = {"payload": payload} if text is None else {"payload_text": text}
        self._orders.append(order | ({"fault": fault} if fault else {}))
        return f"<signed object {len(self._orders) - 1}>"

    def resolve(self, lines, sign):
        """The lines with every placeholder filled. `sign` makes signed objects from orders, one a
        line."""
        written = [encoded(order) for order in self._orders]
        # Payloads that contain others are signed after them.
        is_outer = [PLACE.search(text) is not None for text in written]
        found = {}

        def filled(text):
            return PLACE.sub(lambda match: found[int(match.group(1))], text)

        for outer in (False, True):
            places = [place for place, is_one in enumerate(is_outer) if is_one == outer]
            signed = sign([filled(written[place]) for place in places])
            found |= dict(zip(places, signed, strict=True))
        return [filled(line) for line in lines]


class StandIn:
    """The development program that signs as a test authority; its directory is made on first use."""

    def __init__(self, program, directory):
        self.program, self.directory = str(program), pathlib.Path(directory)

    def __call__(self, orders):
        if not orders:
            return []
        command = [self.program, "sign-objects", "--authority", str(self.directory)]
        text = "".join(order + "\n" for order in orders)
        done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"sign-objects failed: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode().split("\n")[:-1]

    def root_sha256(self):
        """The fingerprint of the root of the signatures; known once something was signed."""
        pem = (self.directory / "signed-root.pem").read_text(encoding="ascii")
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


def unsigned(orders):
    """Signature-shaped text, for the oracle alone, which checks none."""
    header = {"alg": "ES256", "x5c": [base64.b64encode(b"a certificate").decode()] * 3}
    made = []
    for text in orders:
        order = json.loads(text)
        payload = text[len('{"payload":'):-1] if "payload" in order else order["payload_text"]
        if "fault" in order:
            made.append("a.fault")
            continue
        parts = [encoded(header).encode(), payload.encode(), bytes(64)]
        made.append(".".join(base64.urlsafe_b64encode(p).decode().rstrip("=") for p in parts))
    return made
