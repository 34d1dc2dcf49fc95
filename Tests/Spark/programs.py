# The programs that the tests run, and folders for their output.

from __future__ import annotations

import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEDGERCTL = pathlib.Path(os.environ.get("LEDGERCTL", ROOT / ".build/debug/ledgerctl")).resolve()
PROGRAMS = LEDGERCTL.parent
RULES = PROGRAMS / "ledger-rules"

for folder in (ROOT / "spark", ROOT / "Tests/Oracle"):
    sys.path.insert(0, str(folder))

DONE, DONE_WITH_WARNINGS = 0, 3


def temporary_folder(in_memory: bool = True) -> tempfile.TemporaryDirectory[str]:
    """A folder, in memory if there is such a place: ledgers sync every append."""
    memory = "/dev/shm"
    has_memory = in_memory and os.access(memory, os.W_OK)
    return tempfile.TemporaryDirectory(prefix="spark-test-", dir=memory if has_memory else None)


def run(program: str, *arguments: object, allowed: tuple[int, ...] = (DONE,)) -> str:
    """Runs a program of the build; returns its output."""
    done = subprocess.run(
        [PROGRAMS / program, *map(str, arguments)], stdin=subprocess.DEVNULL,
        capture_output=True, check=False)
    if done.returncode not in allowed:
        errors = done.stderr.decode(errors="replace").strip().splitlines()
        shown = " ".join(map(str, arguments))
        raise AssertionError(f"{program} {shown}\nexited with {done.returncode}: {errors[-3:]}")
    return done.stdout.decode()


def remove(folder: pathlib.Path) -> None:
    """Removes a folder and what is in it."""
    shutil.rmtree(folder)


def log_lines(ledger: pathlib.Path) -> list[bytes]:
    """The events of a ledger's log."""
    return run("ledgerctl", "replay", "--ledger", ledger).encode().splitlines()


def resegment(
    ledgers: list[pathlib.Path], folder: pathlib.Path, segment_bytes: int = 60_000
) -> list[pathlib.Path]:
    """The same ledgers in small segments."""
    folder.mkdir()
    for ledger in ledgers:
        run("resegment", ledger, "-o", folder / ledger.name, "--segment-bytes", segment_bytes)
    return [folder / ledger.name for ledger in ledgers]


def merge(
    ledgers: list[pathlib.Path], target: pathlib.Path, *options: object
) -> pathlib.Path:
    """The merged ledger; some may still hold what others have erased."""
    run("ledgerctl", "merge", *ledgers, "-o", target, *options,
        allowed=(DONE, DONE_WITH_WARNINGS))
    return target


def now() -> str:
    """A time that `--until` takes for what there is."""
    time.sleep(0.002)
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


def identity(ledger: pathlib.Path) -> dict[str, Any]:
    return json.loads((ledger / "ledger.json").read_text())


def write_fleet(path: pathlib.Path, ledgers: list[pathlib.Path], **more: Any) -> pathlib.Path:
    """fleet.json for ledgers. `more`: further members of a ledger, by its name."""
    described = [
        {"name": ledger.name, "path": str(ledger)}
        | more.get(ledger.name.replace("-", "_"), {})
        for ledger in ledgers
    ]
    path.write_text(json.dumps({"ledgers": described}))
    return path
