# A log whose events were altered, with every checksum corrected: which commands notice it, and which do
# not look.
"""LEDGERCTL names the program; without it the one on the path is used."""

import base64
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib
from pathlib import Path

LEDGERCTL = os.environ.get("LEDGERCTL", "ledgerctl")
SEGMENT = "log/00000000000000000000.jsonl.gz"


def digest(line):
    """The line with the digest of its salt and data."""
    event = json.loads(line)
    data = line[line.index(b',"data":') + 8:-1]
    right = hashlib.sha256(base64.b64decode(event["salt"]) + data).hexdigest().encode()
    return line.replace(event["digest"].encode(), right, 1)


def redacted(line):
    """The line as an erasure by the next event would leave it, with invented kept data."""
    start = line[:line.index(b',"salt":')]
    position = json.loads(line)["seq"]
    salt = base64.b64encode(b"0123456789abcdef")
    return start + b',"salt":null,"data":null,"redacted":{"by":%d,"salt":"%s","kept":{"a":1}}}' % (
        position + 1, salt)


def earlier(line):
    """The line with a time before all others, and so with another leaf."""
    return re.sub(rb'"at":"\d{4}', b'"at":"1999', line, count=1)


def price(line):
    return line.replace(b'"price":"1.25"', b'"price":"9.25"', 1)


# Changes to the second event. The tree of a tail is computed when the log is opened, so that no command
# accepts a tail with other leaves.
ALTERATIONS = [
    ("block", "another price", price),
    ("block", "another price, with its digest", lambda line: digest(price(line))),
    ("block", "an earlier time", earlier),
    ("block", "data that no erasure took out", redacted),
    ("tail", "another price", price),
    ("tail", "data that no erasure took out", redacted),
]


def alter_block(path, change):
    """Rewrites the first block of a segment, with its sizes and both checksums."""
    content = path.read_bytes()
    size = lambda offset: struct.unpack_from("<I", content, offset + 40)[0]
    start = size(0)
    end = start + size(start)
    head_size = 16 + struct.unpack_from("<H", content, start + 14)[0]
    lines = zlib.decompress(content[start + head_size:end - 8], -15).splitlines()
    lines[1] = change(lines[1])
    text = b"".join(line + b"\n" for line in lines)
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = packer.compress(text) + packer.flush()
    head = bytearray(content[start:start + head_size])
    struct.pack_into("<II", head, 40, head_size + len(packed) + 8, len(text))
    member = bytearray(head + packed + struct.pack("<II", zlib.crc32(text), len(text)))
    struct.pack_into("<I", member, 20, zlib.crc32(bytes(member[:20] + member[24:])))
    path.chmod(0o600)
    path.write_bytes(content[:start] + member + content[end:])


def alter_tail(path, change):
    """Rewrites the second frame of a tail, with its size and checksum."""
    lines = path.read_bytes().splitlines()
    frames = [number for number, line in enumerate(lines) if line.startswith(b"#")]
    number = frames[1]
    line = change(lines[number + 1])
    _, first, count, _ = lines[number].split(b" ")
    rest = b"%s %s %d\n%s\n" % (first, count, len(line) + 1, line)
    lines[number:number + 2] = [b"#%08x " % zlib.crc32(rest) + rest[:-1]]
    path.write_bytes(b"\n".join(lines) + b"\n")


class AlteredLogTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        cls.make("tail", 1)
        # More than a block holds, twice: the first block is sealed when the second is full.
        cls.make("block", 14_000)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def make(cls, name, count):
        cls.run_ledgerctl("init", name, "--origin", "altered.example")
        for number in range(3):
            rows = "".join(
                f"product.{row}.{'x' * 60},,EUR,1.25,2026-01-0{number + 1}\n" for row in range(count))
            (cls.folder / "prices.csv").write_text(
                "product_id,country_code,currency,price,effective_from\n" + rows)
            cls.run_ledgerctl("prices", "import", "prices.csv", "--ledger", name)

    @classmethod
    def run_ledgerctl(cls, *arguments, status=0):
        done = subprocess.run(
            [LEDGERCTL, *arguments], cwd=cls.folder, capture_output=True, text=True, check=False)
        if done.returncode != status:
            raise AssertionError(f"{arguments}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def status(self, ledger):
        return json.loads(self.run_ledgerctl("status", "--json", "--ledger", ledger).stdout)

    def verified(self, ledger):
        return self.status(ledger)["verified_up_to"]

    def test_an_altered_event_is_found_where_events_are_verified(self):
        for kind, what, change in ALTERATIONS:
            with self.subTest(kind=kind, what=what):
                self.check(kind, change)

    def check(self, kind, change):
        ledger = str(self.folder / "altered")
        shutil.rmtree(ledger, ignore_errors=True)
        shutil.copytree(self.folder / kind, ledger, copy_function=shutil.copy2)
        self.run_ledgerctl("rebuild", "--ledger", ledger)
        self.assertEqual(self.verified(ledger), self.status(ledger)["events"])
        files = list(Path(ledger).glob(SEGMENT if kind == "block" else "log/tail-*.log"))
        self.assertEqual(len(files), 1)
        {"block": alter_block, "tail": alter_tail}[kind](files[0], change)
        # Commands that rely on the last rebuild do not look, and say how far it went.
        self.run_ledgerctl("export", "revenue", "--by", "period", "--ledger", ledger)
        before = self.status(ledger)["projections"]
        found = self.run_ledgerctl("rebuild", "--ledger", ledger, status=20)
        self.assertRegex(found.stderr, r"log, position [0-9]+: tampered: ")
        self.assertEqual(self.verified(ledger), 0)
        # The earlier projections are still in use.
        self.assertEqual(self.status(ledger)["projections"], before)
        self.run_ledgerctl("audit", "--ledger", ledger, status=20)
        folded = self.run_ledgerctl("rebuild", "--no-verify", "--ledger", ledger)
        self.assertIn("which were not verified", folded.stdout)
        self.assertEqual(self.verified(ledger), 0)

    def test_an_audit_too_is_remembered(self):
        ledger = str(self.folder / "audited")
        shutil.copytree(self.folder / "tail", ledger)
        self.assertEqual(self.verified(ledger), 0)
        self.run_ledgerctl("audit", "--ledger", ledger)
        self.assertEqual(self.verified(ledger), 3)
        report = self.folder / "report.csv"
        self.run_ledgerctl(
            "export", "revenue", "--by", "period", "--as-of", "1", "--manifest", "-o", str(report),
            "--ledger", ledger)
        manifest = json.loads(Path(f"{report}.manifest.json").read_text())
        self.assertEqual(manifest["verified_up_to"], 2)


if __name__ == "__main__":
    unittest.main()
