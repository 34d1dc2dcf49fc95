# ledgerctl and the independent verifier compared: both accept, both refuse.
"""LEDGERCTL names the program; without it the one on the path is used."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import verify

LEDGERCTL = os.environ.get("LEDGERCTL", "ledgerctl")


class VectorTests(unittest.TestCase):
    """The vectors that are published with the formats."""

    NOTE = (
        "This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAl"
        "TgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n").encode()
    KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"

    def test_note(self):
        key = verify.Key(self.KEY)
        self.assertEqual(verify.open_note(self.NOTE, key), b"This is an example message.\n")
        with self.assertRaises(verify.Refused):
            verify.open_note(self.NOTE.replace(b"example message", b"exemple message"), key)

    def test_tree(self):
        leaves = [bytes.fromhex(text) for text in (
            "", "00", "10", "2021", "3031", "40414243", "5051525354555657",
            "606162636465666768696a6b6c6d6e6f")]
        path = [bytes.fromhex(text) for text in (
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7")]
        root = bytes.fromhex("5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328")
        verify.check_inclusion(verify.leaf_hash(leaves[5]), 5, 8, root, path)
        with self.assertRaises(verify.Refused):
            verify.check_inclusion(verify.leaf_hash(leaves[4]), 5, 8, root, path)


class LedgerTests(unittest.TestCase):
    """One ledger with checkpoints at several sizes."""

    SIZES = (1, 2, 5, 8, 13, 21)

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        cls.ledgerctl("init", "ledger", "--origin", "example.com/verified")
        cls.key = cls.ledgerctl("key", "create").decode().strip()
        cls.checkpoints = {}
        for number in range(1, max(cls.SIZES) + 1):
            if number == 3:
                # An event of another kind: the formats are the same.
                cls.ledgerctl("snapshot", "create")
            else:
                rates = f"date,base,quote,rate\n2026-01-{number:02},EUR,USD,1.{number:02}\n"
                Path(cls.folder, "rates.csv").write_text(rates, encoding="utf-8")
                cls.ledgerctl("rates", "import", "rates.csv")
            if number in cls.SIZES:
                cls.checkpoints[number] = cls.ledgerctl("checkpoint")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def run_ledgerctl(cls, *arguments):
        environment = dict(os.environ, LEDGER_DIR="ledger")
        if arguments[0] == "init":
            del environment["LEDGER_DIR"]
        return subprocess.run(
            [LEDGERCTL, *arguments], cwd=cls.folder, env=environment, capture_output=True, check=False)

    @classmethod
    def ledgerctl(cls, *arguments):
        done = cls.run_ledgerctl(*arguments)
        if done.returncode:
            raise AssertionError(f"{arguments}: {done.stderr.decode()}")
        return done.stdout

    def both_refuse(self, what, data):
        """The program exits with 20, or with 2 for a file that does not begin as a proof, and the verifier
        refuses."""
        Path(self.folder, "altered").write_bytes(data)
        done = self.run_ledgerctl("audit", what, "altered", "--key", self.key)
        headings = (b"c2sp.org/tlog-proof@v1\n", b"receipt-ledger/consistency-proof@v1\n")
        self.assertEqual(done.returncode, 20 if data.startswith(headings) else 2, done.stderr)
        check = verify.check_proof if what == "proof" else verify.check_growth
        with self.assertRaises(verify.Refused):
            check(data, verify.Key(self.key))

    @staticmethod
    def altered(data):
        """The data with bits flipped here and there, truncated, and with a line removed or doubled."""
        for place in range(0, len(data), 41):
            yield data[:place] + bytes([data[place] ^ 1]) + data[place + 1:]
        for length in range(0, len(data), 151):
            yield data[:length]
        lines = data.split(b"\n")
        for index in range(len(lines) - 1):
            yield b"\n".join(lines[:index] + lines[index + 1:])
            if lines[index]:
                yield b"\n".join(lines[:index + 1] + lines[index:])

    def test_checkpoints(self):
        key = verify.Key(self.key)
        for size, note in self.checkpoints.items():
            self.assertEqual(verify.Checkpoint(note, key).size, size)
        note = self.checkpoints[8]
        signature = note.split(b"\n")[-2] + b"\n"
        for altered in self.altered(note):
            # A doubled signature does not change what was signed.
            if altered != note + signature:
                with self.assertRaises(verify.Refused):
                    verify.Checkpoint(altered, key)
        with self.assertRaises(verify.Refused):
            verify.Checkpoint(note, verify.Key(VectorTests.KEY))

    def test_inclusion(self):
        key = verify.Key(self.key)
        lines = self.ledgerctl("replay").splitlines()
        for position, line in enumerate(lines):
            data = self.ledgerctl("prove", str(position))
            record, checkpoint = verify.check_proof(data, key)
            self.assertEqual(checkpoint.size, 21)
            self.assertEqual(verify.check_line(line, position)[0], record)

    def test_altered_inclusion(self):
        data = self.ledgerctl("prove", "6")
        self.ledgerctl("prove", "6", "-o", "whole")
        self.ledgerctl("audit", "proof", "whole", "--key", self.key)
        signature = data.split(b"\n")[-2] + b"\n"
        for altered in self.altered(data):
            if altered != data + signature:
                self.both_refuse("proof", altered)

    def test_consistency(self):
        key = verify.Key(self.key)
        for old in self.SIZES:
            for new in self.SIZES:
                if old <= new:
                    data = self.ledgerctl("prove", "--consistency", str(old), str(new))
                    heads = verify.check_growth(data, key)
                    self.assertEqual([head.size for head in heads], [old, new])

    def test_altered_consistency(self):
        data = self.ledgerctl("prove", "--consistency", "5", "13")
        signature = data.split(b"\n")[-2] + b"\n"
        for altered in self.altered(data):
            if altered != data + signature:
                self.both_refuse("consistency", altered)

    def test_whole_log(self):
        key = verify.Key(self.key)
        lines = self.ledgerctl("replay").splitlines(keepends=True)
        for size in self.SIZES:
            checkpoint = verify.Checkpoint(self.checkpoints[size], key)
            checked = verify.check_log(lines, checkpoint)
            self.assertEqual(checked.size, 21)
        self.assertEqual(checked.root, verify.Checkpoint(self.checkpoints[21], key).root)
        files = "zcat ledger/log/*.jsonl.gz; grep -hv '^#' ledger/log/tail-*.log"
        plain = subprocess.run(
            ["sh", "-c", files], cwd=self.folder, capture_output=True, check=False).stdout
        self.assertEqual(plain, b"".join(lines))

    def test_altered_log(self):
        key = verify.Key(self.key)
        lines = self.ledgerctl("replay").splitlines(keepends=True)
        checkpoint = verify.Checkpoint(self.checkpoints[13], key)
        wrong = [lines[:12], lines[:4] + lines[5:], lines[:4] + [lines[5], lines[4]] + lines[6:]]
        wrong.append([re.sub(rb"1\.05", b"1.06", line) for line in lines])
        wrong.append([line.replace(b'"at":"2', b'"at":"1') for line in lines[:3]] + lines[3:])
        for altered in wrong:
            with self.assertRaises(verify.Refused):
                verify.check_log(altered, checkpoint)


if __name__ == "__main__":
    unittest.main()
