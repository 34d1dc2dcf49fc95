# The store for copies against a real server: each operation, what it refuses, and two writers of one key.
#
# PROGRAMS names the folder of the built programs; WEED the server, where it is not beside this Python.
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
import seaweed  # noqa: E402

PROGRAMS = pathlib.Path(os.environ.get("PROGRAMS", ROOT / ".build/debug")).resolve()
RACES = int(os.environ.get("RACES", "1000"))
LIMIT_SECONDS = 600
LARGE_BYTES = 20 << 20
SEED = 22
NO_OBJECT = 3


class Tool:
    """object-store-tool with one target."""

    def __init__(self, target, settings=()):
        self.options = ["--target", target, *settings]

    def run(self, command, *arguments):
        return subprocess.run(
            [PROGRAMS / "object-store-tool", command, *self.options, *map(str, arguments)],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip

    def out(self, command, *arguments):
        done = self.run(command, *arguments)
        if done.returncode != 0:
            raise AssertionError(f"{command} {arguments}: {done.returncode} {done.stderr.decode()}")
        return done.stdout

    def error(self, command, *arguments):
        done = self.run(command, *arguments)
        if done.returncode != 1:
            raise AssertionError(f"{command} {arguments}: {done.returncode}, not 1")
        return done.stderr.decode()


class AnyStore:
    """What holds of every store; `tool` reaches an empty one."""

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def test_objects_are_stored_read_listed_and_deleted(self):
        path = self.file("note", b"some bytes\0\xff")
        self.tool.out("put", "--key", "notes/a-1.txt", "--file", path)
        self.assertEqual(self.tool.out("get", "--key", "notes/a-1.txt"), b"some bytes\0\xff")
        self.assertEqual(self.tool.out("contains", "--key", "notes/a-1.txt"), b"yes\n")
        self.assertEqual(self.tool.out("list", "--prefix", "notes/"), b"12\tnotes/a-1.txt\n")
        self.tool.out("delete", "--key", "notes/a-1.txt")
        self.tool.out("delete", "--key", "notes/a-1.txt")
        self.assertEqual(self.tool.run("get", "--key", "notes/a-1.txt").returncode, NO_OBJECT)
        self.assertEqual(self.tool.out("contains", "--key", "notes/a-1.txt"), b"no\n")
        self.assertEqual(self.tool.out("list", "--prefix", "notes/"), b"")

    def test_an_object_may_be_empty(self):
        self.tool.out("put", "--key", "empty/none", "--file", self.file("none", b""))
        self.assertEqual(self.tool.out("get", "--key", "empty/none"), b"")
        self.assertEqual(self.tool.out("contains", "--key", "empty/none"), b"yes\n")
        self.assertEqual(self.tool.out("list", "--prefix", "empty/"), b"0\tempty/none\n")

    def test_a_put_replaces_and_a_create_does_not(self):
        one, two = self.file("one", b"one"), self.file("two", b"two")
        self.assertEqual(self.tool.out("create", "--key", "first/k", "--file", one), b"stored\n")
        self.assertEqual(self.tool.out("create", "--key", "first/k", "--file", two), b"exists\n")
        self.assertEqual(self.tool.out("get", "--key", "first/k"), b"one")
        self.tool.out("put", "--key", "first/k", "--file", two)
        self.assertEqual(self.tool.out("get", "--key", "first/k"), b"two")

    def test_files_of_20_mib_come_back_as_they_were(self):
        content = random.Random(SEED).randbytes(LARGE_BYTES)
        self.tool.out("put", "--key", "large/file", "--file", self.file("large", content))
        self.assertEqual(self.tool.out("get", "--key", "large/file"), content)
        self.assertEqual(self.tool.out("list", "--prefix", "large/"), b"%d\tlarge/file\n" % LARGE_BYTES)

    def test_lists_go_on_after_a_key_beyond_a_thousand(self):
        keys = [f"many/{number:020}" for number in range(1_003)]
        path = self.file("x", b"x")
        self.parallel(lambda key: self.quick_put(key, path), keys)
        lines = self.tool.out("list", "--prefix", "many/").decode().splitlines()
        self.assertEqual([line.split("\t")[1] for line in lines], keys)
        after = self.tool.out("list", "--prefix", "many/", "--after", keys[1_000]).decode().splitlines()
        self.assertEqual([line.split("\t")[1] for line in after], keys[1_001:])
        self.assertEqual(self.tool.out("list", "--prefix", "man/"), b"")

    def parallel(self, body, values):
        threads = [
            threading.Thread(target=lambda part=values[n::8]: [body(value) for value in part])
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_the_probe_finds_it_fit_and_leaves_nothing(self):
        self.tool.out("probe")
        self.assertEqual(self.tool.out("list", "--prefix", "probe/"), b"")

    def test_of_two_writers_of_a_key_exactly_one_wins(self):
        said = self.tool.out("race", "--races", RACES, "--pairs", 8).decode()
        self.assertTrue(said.startswith(f"{RACES} races, each won by one writer"), said)
        print(f"\n{type(self).__name__}: {said}", end="", file=sys.stderr)


@unittest.skipUnless(seaweed.program(), "there is no weed: script/bootstrap --tests installs it")
class SeaweedTests(AnyStore, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.server = seaweed.Store(cls.folder / "server")
        cls.addClassCleanup(cls.server.kill)
        cls.server.start()
        cls.server.make_bucket("copies")
        cls.tool = Tool("s3://copies/shop_1/ledger.a", cls.settings())

    @classmethod
    def settings(cls, credentials=None, region=seaweed.REGION):
        file = str(credentials or cls.server.credentials_file)
        return ["--endpoint", cls.server.endpoint, "--region", region, "--credentials", file]

    def quick_put(self, key, path):
        status, _ = self.server.request("PUT", f"/copies/shop_1/ledger.a/{key}", body=path.read_bytes())
        self.assertEqual(status, 200)

    def test_keys_stand_below_the_prefix(self):
        self.tool.out("put", "--key", "place/k", "--file", self.file("k", b"here"))
        self.assertEqual(self.server.request("GET", "/copies/shop_1/ledger.a/place/k"), (200, b"here"))
        other = Tool("s3://copies", self.settings())
        self.assertEqual(other.run("get", "--key", "place/k").returncode, NO_OBJECT)

    def test_a_proxy_of_the_environment_is_not_asked_for_a_store_on_this_machine(self):
        proxies = dict.fromkeys(("http_proxy", "all_proxy"), "http://127.0.0.1:1")
        with unittest.mock.patch.dict(os.environ, proxies):
            self.assertEqual(self.tool.out("contains", "--key", "never/stored"), b"no\n")

    def test_a_wrong_secret_is_denied_and_not_shown(self):
        wrong = self.server.write_credentials("wrong", "wrongsecret0123456789")
        tool = Tool("s3://copies/p", self.settings(wrong))
        for command in (["get", "--key", "k"], ["list"], ["contains", "--key", "k"], ["probe"]):
            said = tool.error(*command)
            self.assertIn("403 SignatureDoesNotMatch: the secret access key is wrong", said)
            self.assertNotIn("wrongsecret", said)
            self.assertNotIn(self.server.access_key, said)

    def test_a_missing_bucket_is_named_as_that(self):
        tool = Tool("s3://nowhere/p", self.settings())
        path = self.file("lost", b"lost")
        for command in (
            ["get", "--key", "k"], ["list"], ["contains", "--key", "k"],
            ["put", "--key", "k", "--file", path],
        ):  # fmt: skip
            self.assertIn("404 NoSuchBucket: there is no such bucket", tool.error(*command))

    def test_what_is_stored_outlives_a_kill_of_the_server(self):
        folder = self.folder / "killed"
        with seaweed.Store(folder) as server:
            server.make_bucket("copies")
            settings = ["--endpoint", server.endpoint, "--credentials", str(server.credentials_file)]
            tool = Tool("s3://copies", settings)
            tool.out("create", "--key", "steps/1", "--file", self.file("step", b"step"))
            server.kill()
            self.assertIn("no connection", tool.error("get", "--key", "steps/1"))
            server.start()
            self.assertEqual(tool.out("get", "--key", "steps/1"), b"step")
            said = tool.out("create", "--key", "steps/1", "--file", self.file("x", b"x"))
            self.assertEqual(said, b"exists\n")


class DirectoryTests(AnyStore, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.root = cls.folder / "root"
        cls.root.mkdir(mode=0o700)
        cls.tool = Tool(f"file://{cls.root}")

    def quick_put(self, key, path):
        (self.root / key).parent.mkdir(exist_ok=True)
        (self.root / key).write_bytes(path.read_bytes())

    def test_a_missing_directory_is_named_as_that(self):
        tool = Tool(f"file://{self.folder}/missing")
        self.assertIn("there is no directory", tool.error("get", "--key", "k"))


if __name__ == "__main__":
    unittest.main()
