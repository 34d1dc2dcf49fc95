# fleet.json: what is accepted, and the message for each mistake.

from __future__ import annotations

import json
import os
import pathlib
import tempfile
import unittest

import package  # noqa: F401
from receipt_ledger_spark import fleet
from receipt_ledger_spark.errors import USAGE, Failure

ROOT = "ab" * 32

MISTAKES = [
    ("", "it is not JSON"),
    ("[]", "it must be an object"),
    ("{}", "it lacks 'ledgers'"),
    ('{"ledgers":[]}', "'ledgers' must be a list of at least one ledger"),
    ('{"ledgers":[{"name":"a","path":"b"}],"x":1}', "it has no member 'x'; it has ledgers"),
    ('{"ledgers":[1]}', "ledgers[0] must be an object"),
    ('{"ledgers":[{"name":"a"}]}', "ledgers[0] lacks 'path'"),
    ('{"ledgers":[{"name":"a","path":"b","pth":"c"}]}', "ledgers[0] has no member 'pth'"),
    ('{"ledgers":[{"name":"a","path":7}]}', "ledgers[0].path must be a text"),
    ('{"ledgers":[{"name":"a b","path":"b"}]}', "ledgers[0].name: a ledger's name has"),
    ('{"ledgers":[{"name":"a","path":"b"},{"name":"a","path":"c"}]}',
     "two ledgers have the name 'a'"),
    ('{"ledgers":[{"name":"a","name":"b","path":"c"}]}', "the member 'name' is given twice"),
    ('{"ledgers":[{"name":"a","path":"b","region":"c"}]}', "region needs a path in s3://"),
    ('{"ledgers":[{"name":"a","path":"s3://"}]}', "path must read SCHEME://PLACE"),
    ('{"ledgers":[{"name":"a","path":"s3://b","endpoint":"http://example.com"}]}',
     "ledgers[0].endpoint must use https, or http to a loopback address"),
    ('{"ledgers":[{"name":"a","path":"s3://b","endpoint":"https://me:secret@example.com"}]}',
     "ledgers[0].endpoint must read https://HOST"),
    ('{"ledgers":[{"name":"a","path":"b","head":{"size":1}}]}', "ledgers[0].head lacks 'root'"),
    ('{"ledgers":[{"name":"a","path":"b","head":{"size":true,"root":"%s"}}]}' % ROOT,
     "head.size must be a number of events"),
    ('{"ledgers":[{"name":"a","path":"b","head":{"size":1,"root":"AB"}}]}',
     "head.root must be 64 hexadecimal digits"),
]


class FleetTests(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.path = self.folder / "fleet.json"

    def test_mistakes_are_named(self) -> None:
        for text, wanted in MISTAKES:
            with self.subTest(text):
                self.path.write_text(text)
                with self.assertRaises(Failure) as raised:
                    fleet.of_file(str(self.path))
                self.assertIn(wanted, str(raised.exception))
                self.assertIn(str(self.path), str(raised.exception))
                self.assertEqual(raised.exception.code, USAGE)

    def test_missing_file(self) -> None:
        with self.assertRaises(Failure) as raised:
            fleet.of_file(str(self.path))
        self.assertIn("No such file", str(raised.exception))

    def test_paths_are_relative_to_the_file(self) -> None:
        self.path.write_text(json.dumps({"ledgers": [
            {"name": "eu", "path": "data/eu", "head": {"size": 3, "root": ROOT}},
            {"name": "us", "path": "s3://bucket/us/", "endpoint": "http://127.0.0.1:1",
             "region": "r"},
            {"name": "asia", "path": "file:///mnt/copies/asia"},
        ]}))
        found = fleet.of_file(str(self.path))
        self.assertEqual(found[0].path, str(self.folder / "data/eu"))
        self.assertEqual(found[0].head, fleet.Head(3, ROOT))
        self.assertEqual(found[1], fleet.Ledger(
            "us", "s3://bucket/us", "http://127.0.0.1:1", "r"))
        self.assertEqual([ledger.is_copy for ledger in found], [False, True, True])

    def test_directories_are_named_by_their_last_part(self) -> None:
        found = fleet.of_directories(["/data/eu/", "us"])
        self.assertEqual([ledger.name for ledger in found], ["eu", "us"])
        self.assertTrue(os.path.isabs(found[1].path))
        with self.assertRaises(Failure) as raised:
            fleet.of_directories(["/a/shop", "/b/shop"])
        self.assertIn("two ledgers have the name 'shop'", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
