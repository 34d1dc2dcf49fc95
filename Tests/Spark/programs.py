# The programs that the tests run, and folders for their output.

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
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


def split(
    source: pathlib.Path, into: int, seed: int, folder: pathlib.Path, *options: object,
    segment_bytes: int = 60_000,
) -> list[pathlib.Path]:
    """A fleet of the source's events, in small segments; its ledgers' folders."""
    run("fleet-ledgers", "split", source, "--into", into, "--seed", seed, "-o", folder,
        "--block-bytes", min(segment_bytes // 3, 1 << 20), "--segment-bytes", segment_bytes,
        *options)
    return [folder / f"shop-{number}" for number in range(1, into + 1)]


def ledger_id(ledger: pathlib.Path) -> str:
    return json.loads((ledger / "ledger.json").read_text())["id"]


def write_fleet(path: pathlib.Path, ledgers: list[pathlib.Path], **more: Any) -> pathlib.Path:
    """fleet.json for ledgers. `more`: further members of a ledger, by its name."""
    described = [
        {"name": ledger.name, "path": str(ledger)}
        | more.get(ledger.name.replace("-", "_"), {})
        for ledger in ledgers
    ]
    path.write_text(json.dumps({"ledgers": described}))
    return path
