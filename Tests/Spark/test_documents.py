# The commands of docs/scale.md, typed as they stand there after script/demo-fleet, print what
# stands there. A line `…` stands for any lines.

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import unittest

import programs
import spark
from programs import PROGRAMS, ROOT


def block() -> list[tuple[str, str]]:
    """The commands and what they print."""
    text = (ROOT / "docs/scale.md").read_text()
    found = re.search(r"```\n(\$ script/demo-fleet\n.*?)```", text, re.DOTALL)
    assert found is not None, "docs/scale.md shows no script/demo-fleet"
    parts = re.split(r"^\$ (.*)\n", found[1], flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2]))


def pattern(printed: str) -> str:
    lines = re.split(r"^…\n", printed, flags=re.MULTILINE)
    return "(.*\n)*".join(map(re.escape, lines))


@spark.needs_spark
class DocumentTests(unittest.TestCase):
    def test_the_commands_print_what_stands_there(self) -> None:
        commands = block()
        self.assertGreater(len(commands), 3)
        with programs.temporary_folder() as temporary:
            folder = pathlib.Path(temporary)
            # What is installed stands for what demo-fleet would install.
            bin = folder / "bin"
            bin.mkdir()
            for name, line in {
                "receipt-ledger-spark": f"{sys.executable} -m receipt_ledger_spark",
                "ledgerctl": str(PROGRAMS / "ledgerctl"),
            }.items():
                (bin / name).write_text(f'#!/bin/sh\nexec {line} "$@"\n')
                (bin / name).chmod(0o755)
            spark.prepare()
            environment = os.environ | {"PATH": f"{bin}:{os.environ['PATH']}"}
            place = ROOT
            for command, printed in commands:
                if command.startswith("export PATH="):
                    continue
                if command == "script/demo-fleet":
                    command += f" --programs {PROGRAMS} --python {sys.executable}"
                if command.startswith("cd "):
                    place = place / command[3:]
                    continue
                with self.subTest(command):
                    done = subprocess.run(
                        ["bash", "-c", command], cwd=place, env=environment, text=True,
                        stdin=subprocess.DEVNULL, capture_output=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    # Progress is on standard error, among what Spark says while it starts.
                    said = "".join(
                        line for line in done.stderr.splitlines(keepends=True)
                        if re.match(r"[0-9]+ events of |folding in |tables-again: ", line))
                    self.assertRegex(said + done.stdout, f"^{pattern(printed)}$")


if __name__ == "__main__":
    unittest.main()
