# The commands of docs/settlement.md that close a fiscal month, each run as written: what they print is there.
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import accounting
from accounting import LIMIT_S, PATH, PROGRAMS, PUBLISHED, ROOT

PAGE = ROOT / "docs/settlement.md"
ORIGIN = "example.com/shop"


def steps(page):
    """(command, what it prints) of the section, in order."""
    section = page.split("\n## Closing a fiscal month\n")[1].split("\n## ")[0]
    found = []
    for block in re.findall(r"(?ms)^```\n(\$ .*?)^```$", section):
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            found.append(tuple(part.split("\n", 1)))
    return found


@unittest.skipUnless(PUBLISHED.is_dir(), "no ../shared/fixtures here")
class ClosingOfAMonth(unittest.TestCase):
    def test_the_page_shows_what_its_commands_print(self):
        missing = [program for program in PROGRAMS.values() if not accounting.is_installed(program)]
        if missing:
            self.skipTest(f"not installed: {', '.join(missing)}")
        shown = steps(PAGE.read_text(encoding="utf-8"))
        self.assertGreater(len(shown), 10)
        with tempfile.TemporaryDirectory() as temporary:
            for path in PUBLISHED.iterdir():
                shutil.copy(path, temporary)
            self.run_in(temporary, f"ledgerctl init shop --origin {ORIGIN}")
            for command, expected in shown:
                with self.subTest(command=command):
                    printed = self.run_in(temporary, command)
                    self.assertEqual(re.sub(r"root \S{44}", "root ROOT", printed), expected)

    def run_in(self, folder, command):
        """What a command prints on either channel."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=os.environ | {"PATH": PATH, "LEDGER_DIR": "shop"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
