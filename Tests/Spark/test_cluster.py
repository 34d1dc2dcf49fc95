# A standalone cluster, whose machines have Python, Java and the wheel, and nothing else of this
# project.

from __future__ import annotations

import os
import pathlib
import re
import socket
import subprocess
import sys
import time
import unittest

import programs
import spark
from expected import Options
from histories import History
from programs import PROGRAMS, ROOT
from test_equality import SEED

OPTIONS = Options(environment="all", has_pending=True)
WAIT_SECONDS = 120


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@spark.needs_spark
class ClusterTests(spark.SparkTests):
    def setUp(self) -> None:
        import pyspark

        temporary = programs.temporary_folder(in_memory=False)
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.bin = pathlib.Path(pyspark.__file__).parent / "bin"
        wheel = subprocess.run(
            [ROOT / "script/package-spark", "--programs", PROGRAMS, "--output", self.folder],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
        ).stdout.splitlines()[-1]
        # What the wheel asks for is there.
        subprocess.run(
            [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install",
             "--no-deps", "--target", self.folder / "installed", wheel], check=True)
        kept = ("PATH", "JAVA_HOME", "HOME", "LANG", "TMPDIR")
        self.environment = {
            name: value for name, value in os.environ.items() if name in kept} | {
            "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONPATH": str(self.folder / "installed")}

    def start(self, name: str, wanted: str, *arguments: object) -> None:
        """Starts a daemon of Spark, and waits until its log says that it is there."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [self.bin / "spark-class", *map(str, arguments)], env=self.environment,
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + WAIT_SECONDS
        while not re.search(wanted, log.read_text(errors="replace")):
            if process.poll() is not None or time.monotonic() > deadline:
                self.fail(f"{name} did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.2)

    def test_a_cluster_gives_the_tables_of_ledgerctl(self) -> None:
        print(f"\nSPARK_TEST_SEED={SEED}", flush=True)
        history = History(self.folder / "history", SEED + 4, 25, is_nasty=False)
        ledgers = programs.resegment([history.ledger], self.folder / "fleet")
        master = f"spark://127.0.0.1:{free_port()}"
        self.start(
            "master", "I have been elected leader", "org.apache.spark.deploy.master.Master",
            "--host", "127.0.0.1", "--port", master.rpartition(":")[2], "--webui-port", 0)
        for number in (1, 2):
            self.start(
                f"worker-{number}", "Successfully registered",
                "org.apache.spark.deploy.worker.Worker", master, "--host", "127.0.0.1",
                "--cores", 1, "--memory", "1g", "--webui-port", 0,
                "--work-dir", self.folder / f"worker-{number}")
        out = self.folder / "out"
        done = subprocess.run(
            [self.bin / "spark-submit", "--master", master,
             "--properties-file", ROOT / "examples/spark/executors.conf",
             ROOT / "examples/spark/submit.py", "run", "--ledger", *ledgers, "-o", out,
             "--partitions", "4", *OPTIONS.of_run()],
            env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False)
        # spark-submit passes on both as its output.
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-1000:])
        self.assert_same(out, ledgers[0], OPTIONS, about=f"seed {SEED + 4}")


if __name__ == "__main__":
    unittest.main()
