# The dashboard, whose queries name only metrics that the server has; and the metrics themselves.
#
# LEDGERCTL names the program. What needs promtool is skipped where it is not installed.
import json
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from exposed import ROOT, exposed, known_metrics

DASHBOARD = ROOT / "examples/dashboard.json"


class DashboardTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.names, cls.text = exposed()

    def test_the_dashboard_names_metrics_of_the_server(self):
        dashboard = json.loads(DASHBOARD.read_text())
        panels = dashboard["panels"]
        self.assertGreater(len(panels), 10)
        numbers = [panel["id"] for panel in panels]
        self.assertEqual(len(numbers), len(set(numbers)))
        for panel in panels:
            if panel["type"] == "row":
                continue
            with self.subTest(panel["title"]):
                for target in panel["targets"]:
                    # A counter shows nothing by itself, and a gauge has no rate.
                    for name in known_metrics(self, panel["title"], target["expr"], self.names):
                        is_rated = re.search(rf"(?:rate|increase)\({name}\b", target["expr"]) is not None
                        is_growing = self.names[name] in ("counter", "histogram")
                        self.assertEqual(is_rated, is_growing, f"{name}: {target['expr']}")

    @unittest.skipIf(shutil.which("promtool") is None, "promtool is not installed")
    def test_promtool_finds_no_fault_with_what_is_exposed(self):
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=self.text, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.stdout + done.stderr, "")

    @unittest.skipIf(shutil.which("promtool") is None, "promtool is not installed")
    def test_each_query_of_the_dashboard_is_valid(self):
        panels = json.loads(DASHBOARD.read_text())["panels"]
        queries = [target["expr"] for panel in panels for target in panel.get("targets", [])]
        rules = [
            {"record": f"dashboard:{number}", "expr": query.replace("$__rate_interval", "5m")}
            for number, query in enumerate(queries)
        ]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
            file.flush()
            done = subprocess.run(
                ["promtool", "check", "rules", file.name], capture_output=True, text=True, check=False
            )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_figures_of_the_process_are_plausible(self):
        values = dict(re.findall(r"^(process_\w+) (\S+)$", self.text, re.MULTILINE))
        self.assertEqual(len(values), 5)
        figures = {name: float(value) for name, value in values.items()}
        self.assertGreater(figures["process_resident_memory_bytes"], 1 << 20)
        self.assertLess(figures["process_cpu_seconds_total"], 60)
        self.assertLess(abs(time.time() - figures["process_start_time_seconds"]), 120)
        self.assertGreater(figures["process_open_fds"], 5)
        self.assertGreater(figures["process_max_fds"], figures["process_open_fds"])


if __name__ == "__main__":
    unittest.main()
