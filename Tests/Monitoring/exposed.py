# The metrics of a fresh server, and the names of metrics in an expression of Prometheus.
import os
import pathlib
import re
import subprocess
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEDGERCTL = os.environ.get("LEDGERCTL", str(ROOT / ".build/debug/ledgerctl"))
ADDRESSES = ("--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0")
METRIC = re.compile(r"\b(?:receipt_ledger|process)_\w+")


def exposed():
    """The types of all series of a fresh server, by their names; and the text that it serves."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = f"{folder}/ledger"
        subprocess.run(
            [LEDGERCTL, "init", ledger, "--origin", "monitoring.example"], check=True, capture_output=True
        )
        server = subprocess.Popen(
            [LEDGERCTL, "serve", "--ledger", ledger, *ADDRESSES], stderr=subprocess.PIPE, text=True
        )
        try:
            address = None
            for line in server.stderr:
                if found := re.search(r"metrics on (http://\S+)", line):
                    address = found[1]
                    break
            with urllib.request.urlopen(address, timeout=30) as response:
                text = response.read().decode()
        finally:
            server.terminate()
            server.wait(timeout=60)
            server.stderr.close()
    names = {}
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE):
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        names |= {name + suffix: kind for suffix in suffixes}
    return names, text


def known_metrics(test, place, expression, names):
    """The metrics that an expression names; each must be one of the server's."""
    found = METRIC.findall(expression)
    test.assertTrue(found, f"{place} names no metric: {expression}")
    for name in found:
        test.assertIn(name, names, f"{place}: {expression}")
    return found
