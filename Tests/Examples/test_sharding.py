# examples/sharding: three ledgers behind nginx, and the failure of one of their servers.
#
# PROGRAMS names the folder of the built programs. Skipped where nginx is not installed.
import json
import os
import pathlib
import signal
import ssl
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "script"))
import sharding  # noqa: E402
from sharding import APPS, host  # noqa: E402

PROGRAMS = pathlib.Path(os.environ.get("PROGRAMS", ROOT / ".build/debug"))


@unittest.skipIf(sharding.NGINX is None, "nginx is not installed")
class ShardingTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.shards = sharding.Shards(PROGRAMS, pathlib.Path(directory.name))
        cls.addClassCleanup(cls.shards.stop)

    def uploads(self, app):
        """How many uploads are in the app's ledger, which must hold no other app's."""
        count, bundle_ids = self.shards.uploads_by_bundle(app)
        self.assertLessEqual(bundle_ids, {f"com.example.{app}"})
        return count

    def upload_all(self, apps, seed, count=4):
        """The statuses of uploads of each app."""
        bodies = {app: self.shards.bodies(app, count, seed) for app in apps}
        return {app: [self.shards.upload(app, body)[0] for body in bodies[app]] for app in apps}

    def test_each_ledger_holds_what_its_name_took(self):
        before = {app: self.uploads(app) for app in APPS}
        self.assertEqual(self.upload_all(APPS, seed=1), {app: [200] * 4 for app in APPS})
        for app in APPS:
            sent = self.shards.notifications(app, 1)
            self.assertTrue(sent)
            for body in sent:
                self.assertEqual(self.shards.notify(app, body)[0], 200)
        # Another name's upload is refused, and can be sent again.
        body = self.shards.bodies("game", 1, seed=2)[0]
        self.assertEqual(self.shards.upload("puzzle", body, token_of="game")[0], 401)
        stray = self.shards.notifications("game", 2)[-1]
        status, answer = self.shards.notify("puzzle", stray)
        self.assertEqual((status, json.loads(answer)["errors"][0]["code"]), (503, "bundle_not_registered"))
        self.assertEqual({app: self.uploads(app) - before[app] for app in APPS}, {app: 4 for app in APPS})

    def test_others_serve_on_while_one_is_gone_or_hangs(self):
        before = {app: self.uploads(app) for app in APPS}
        self.assertEqual(self.upload_all(APPS, seed=3), {app: [200] * 4 for app in APPS})
        self.shards.kill("puzzle")
        self.assertEqual([self.shards.ready(app) for app in APPS], [200, 502, 200])
        self.assertEqual(self.upload_all(["game", "radio"], seed=4), {"game": [200] * 4, "radio": [200] * 4})
        body = self.shards.bodies("puzzle", 1, seed=4)[0]
        self.assertEqual(self.shards.upload("puzzle", body)[0], 502)
        self.shards.start_again("puzzle")
        self.assertEqual([self.shards.ready(app) for app in APPS], [200, 200, 200])
        self.assertEqual(self.shards.upload("puzzle", body)[0], 200)
        # A server that hangs accepts connections and never responds.
        radio = self.shards.servers["radio"].process
        radio.send_signal(signal.SIGSTOP)
        try:
            self.assertEqual(self.upload_all(["game"], seed=5), {"game": [200] * 4})
        finally:
            radio.send_signal(signal.SIGCONT)
        added = {app: self.uploads(app) - before[app] for app in APPS}
        self.assertEqual(added, {"game": 12, "puzzle": 5, "radio": 8})

    def test_the_servers_learn_the_clients_address(self):
        request = json.loads(self.shards.bodies("game", 1, seed=6)[0])
        request.pop("ip_address", None)
        forged = {"X-Forwarded-For": "198.51.100.7"}
        status, answer = self.shards.upload(
            "game", json.dumps(request), headers=forged, source="127.0.0.2"
        )
        self.assertEqual((status, json.loads(answer)["ip_address"]), (200, "127.0.0.2"))

    def test_bodies_above_the_limits(self):
        # Up to 5 MiB the server responds itself, then nginx does.
        status, answer = self.shards.upload("game", b" " * (4_500 << 10))
        self.assertEqual((status, json.loads(answer)["errors"][0]["code"]), (413, "body_too_large"))
        status, answer = self.shards.upload("game", b" " * (5_500 << 10))
        self.assertEqual((status, b"nginx" in answer), (413, True))
        self.assertEqual(self.shards.notify("game", b" " * (310 << 10))[0], 413)

    def test_nothing_else_is_reached(self):
        nginx = self.shards.nginx
        for path in ["/", "/metrics", "/client", "/app_store/other"]:
            self.assertEqual(nginx.request(host("game"), "GET", path)[0], 404)
        for path in ["/v1/purchases", "/v1/entitlements"]:
            self.assertEqual(nginx.request(host("game"), "POST", path, "{}")[0], 403)
        with self.assertRaises(ssl.SSLError):
            nginx.request("other.receipts.example.com", "GET", "/readyz")
        status = nginx.request(host("game"), "GET", "/readyz", named="other.receipts.example.com")[0]
        self.assertEqual(status, 421)


if __name__ == "__main__":
    unittest.main()
