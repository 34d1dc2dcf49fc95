# Three served ledgers behind nginx (examples/sharding), shared by demo-shards and its test.
import atexit
import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess

import serving

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIGURATION = ROOT / "examples/sharding/nginx.conf"
APPS = ["game", "puzzle", "radio"]
LIMIT_SECONDS = 60
# Debian installs it outside an ordinary user's PATH.
NGINX = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")


def host(app):
    return f"{app}.receipts.example.com"


def replaced(text, old, new, count=1):
    """Replaces a text, which must occur this often, so that only ports differ from the file."""
    if text.count(old) != count:
        raise SystemExit(f"{CONFIGURATION.name} holds {old!r} {text.count(old)} times, not {count}")
    return text.replace(old, new)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Nginx:
    """nginx with the example's configuration, on a free port, without root."""

    def __init__(self, directory, servers):
        directory.mkdir()
        self.directory = directory
        self.port = free_port()
        self.certificate = directory / "certificate.pem"
        key = directory / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
            + ["-days", "2", "-subj", "/CN=receipts.example.com"]
            + ["-addext", "subjectAltName=DNS:*.receipts.example.com"]
            + ["-keyout", key, "-out", self.certificate],
            stdin=subprocess.DEVNULL, capture_output=True, check=True,
        )
        text = CONFIGURATION.read_text(encoding="utf-8")
        text = replaced(text, "listen 443 ", f"listen 127.0.0.1:{self.port} ", count=2)
        text = replaced(text, "/etc/ssl/receipts.example.com.pem", str(self.certificate))
        text = replaced(text, "/etc/ssl/private/receipts.example.com.key", str(key))
        for number, app in enumerate(APPS):
            address = servers[app].url.removeprefix("http://")
            text = replaced(text, f"server    127.0.0.1:{8081 + number} ", f"server    {address} ")
        (directory / "ledgers.conf").write_text(text, encoding="utf-8")
        configuration = directory / "nginx.conf"
        configuration.write_text(self.main_configuration(), encoding="utf-8")
        self.process = subprocess.Popen(
            [NGINX, "-p", directory, "-e", directory / "error.log", "-c", configuration],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        atexit.register(self.process.terminate)
        self.wait_until_it_listens()

    def main_configuration(self):
        """The same settings as Debian's nginx.conf, with every file in our directory."""
        # By default, root's workers would run as `nobody`, which cannot read our directory.
        user = "user root;\n" if os.geteuid() == 0 else ""
        kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        temporary = "".join(f"  {kind}_temp_path {self.directory}/{kind};\n" for kind in kinds)
        return (
            f"{user}daemon off;\nworker_processes 2;\npid {self.directory}/nginx.pid;\n"
            "events { worker_connections 4096; }\n"
            f"http {{\n  access_log {self.directory}/access.log;\n{temporary}"
            f"  include {self.directory}/ledgers.conf;\n}}\n"
        )

    def wait_until_it_listens(self):
        def is_listening():
            if self.process.poll() is not None:
                said = (self.directory / "error.log").read_text(errors="replace").strip()
                raise SystemExit(f"nginx exited with {self.process.returncode}: {said[-500:]}")
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        if not serving.wait_until(is_listening, LIMIT_SECONDS, 0.02):
            raise SystemExit("nginx does not begin to listen")

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=LIMIT_SECONDS)

    def request(self, name, method, path, body=None, headers=None, source="127.0.0.1", named=None):
        """Status and body of a response. `named` is the Host header, if not the name of TLS."""
        trust = ssl.create_default_context(cafile=self.certificate)
        plain = socket.create_connection(
            ("127.0.0.1", self.port), timeout=LIMIT_SECONDS, source_address=(source, 0)
        )
        connection = http.client.HTTPConnection(named or name, timeout=LIMIT_SECONDS)
        try:
            connection.sock = trust.wrap_socket(plain, server_hostname=name)
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
            plain.close()


class Shards:
    """A ledger for each app, the App Store's stand-in, and nginx, before their servers start."""

    def __init__(self, programs, work):
        if NGINX is None:
            raise SystemExit("nginx is not installed (Debian package nginx)")
        self.programs = programs
        self.authority = work / "authority"
        self.stand_in = serving.StandIn(programs, self.authority)
        self.ledgers = {
            app: serving.Ledger(
                programs, work / app, self.stand_in.facts, bundle_id=f"com.example.{app}",
                settings={"trusted_proxies": ["127.0.0.1"]},
            )
            for app in APPS
        }
        self.servers = {app: serving.Server(ledger) for app, ledger in self.ledgers.items()}
        self.nginx = Nginx(work / "nginx", self.servers)

    def bodies(self, app, count, seed=1):
        """Upload requests for an app."""
        path = self.ledgers[app].directory.with_suffix(".bodies")
        serving.sign_bodies(
            self.programs, self.authority, path, count, seed, bundle_id=f"com.example.{app}"
        )
        return path.read_bytes().splitlines()

    def notifications(self, app, customers):
        path = self.ledgers[app].directory.with_suffix(".notifications")
        serving.sign_notifications(
            self.programs, self.authority, path, customers, bundle_id=f"com.example.{app}"
        )
        return path.read_bytes().splitlines()

    def upload(self, app, body, token_of=None, **options):
        headers = {
            "Authorization": "Bearer " + self.ledgers[token_of or app].token_path.read_text(),
            "Content-Type": "application/json",
        }
        headers |= options.pop("headers", {})
        return self.nginx.request(
            host(app), "POST", "/client/itunes_connect/receipts", body, headers, **options
        )

    def notify(self, app, body):
        headers = {"Content-Type": "application/json"}
        return self.nginx.request(host(app), "POST", serving.NOTIFICATIONS_PATH, body, headers)

    def ready(self, app):
        return self.nginx.request(host(app), "GET", "/readyz")[0]

    def kill(self, app):
        self.servers[app].kill()

    def start_again(self, app):
        """At the address that nginx knows."""
        address = self.servers[app].url.removeprefix("http://")
        self.servers[app] = serving.Server(self.ledgers[app], listen=address)

    def uploads_by_bundle(self, app):
        """How many uploads the ledger's log holds, and the bundle ids of their receipts."""
        events = self.ledgers[app].events()
        rows = [json.loads(line) for line in self.ledgers[app].report("receipts").splitlines()]
        uploads = sum(kind == "receipt.uploaded" for kind, _ in events)
        return uploads, {row["bundle_id"] for row in rows}

    def stop(self):
        """Stops everything; returns the servers' exit codes."""
        self.nginx.stop()
        codes = {app: server.terminate() for app, server in self.servers.items()}
        self.stand_in.stop()
        return codes
