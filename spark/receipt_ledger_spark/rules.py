# The program `ledger-rules`: where it is, whether it fits, and its runs.
#
# It runs on the driver (plan, csv) and on executors (scan, fold). Its exit code becomes that of a
# Failure.

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from importlib import resources
from typing import Any, BinaryIO, Iterator, NamedTuple, Optional, Sequence

from . import errors, streams
from .errors import Failure

NAME = "ledger-rules"
_STDERR_SHOWN_BYTES = 4096


class Program(NamedTuple):
    """A program that fits, and what it says of itself."""

    path: str
    version: str
    format_version: int


@contextlib.contextmanager
def found() -> Iterator[Program]:
    """The program named by LEDGER_RULES, else the one in this package, else in PATH; checked."""
    named = os.environ.get("LEDGER_RULES")
    own = resources.files(__package__) / NAME
    if named or not own.is_file():
        path = shutil.which(named or NAME)
        if path is None:
            raise errors.usage(
                "find ledger-rules", named or "PATH",
                "no such program" if named else "it is not there; name it with LEDGER_RULES")
        yield _checked(os.path.abspath(path))
        return
    # pip drops that it is a program.
    with tempfile.TemporaryDirectory(prefix="receipt-ledger-") as folder:
        path = os.path.join(folder, NAME)
        with own.open("rb") as source, open(path, "xb") as target:
            shutil.copyfileobj(source, target)
        os.chmod(path, 0o700)
        yield _checked(path)


def _checked(path: str) -> Program:
    try:
        said = json_of(path, ["version"])
    except Failure as failure:
        raise errors.usage("find ledger-rules", path, failure.cause) from None
    if not isinstance(said, dict) or not isinstance(said.get("version"), str):
        raise errors.usage("find ledger-rules", path, "it is another program")
    if said.get("streams") != streams.VERSION:
        raise errors.usage(
            "find ledger-rules", path,
            f"it has version {said.get('streams')} of the streams, this package {streams.VERSION}")
    return Program(path, said["version"], int(said.get("format_version", 0)))


def json_of(path: str, arguments: Sequence[str]) -> Any:
    """What a command prints as one JSON on standard output."""
    with run(path, arguments, feeds=False) as process:
        text = process.stdout.read()
    try:
        return json.loads(text)
    except ValueError:
        raise Failure(f"{NAME} {arguments[0]}", path, "its output is not JSON") from None


@contextlib.contextmanager
def run(
    path: str, arguments: Sequence[str], feeds: bool = True, output: Optional[BinaryIO] = None
) -> Iterator[Any]:
    """One run of the program, which writes nothing before it has read everything, or writes to
    `output`. Leaving the context waits for its end; an exception kills it.
    """
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                [path, *arguments], stdin=subprocess.PIPE if feeds else subprocess.DEVNULL,
                stdout=subprocess.PIPE if output is None else output, stderr=said)
        except OSError as error:
            raise Failure(
                f"{NAME} {arguments[0]}", path, error.strerror or "it cannot be run") from None
        is_broken = False
        try:
            yield process
        except (BrokenPipeError, streams.CutShort):
            # It ended too early, and tells why itself.
            is_broken = True
        except streams.Malformed as error:
            raise Failure(f"{NAME} {arguments[0]}", path, str(error)) from None
        else:
            process.wait()
        finally:
            if not is_broken:
                process.kill()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    if stream is not None:
                        stream.close()
            code = process.wait()
        if code or is_broken:
            said.seek(0)
            raise _failure(path, arguments[0], code, said.read())


def _failure(path: str, command: str, code: int, text: bytes) -> Failure:
    lines = text[-_STDERR_SHOWN_BYTES:].decode(errors="replace").strip().splitlines()
    last = lines[-1] if lines else ""
    if code < 0:
        hint = "; the system may be out of memory" if code == -signal.SIGKILL else ""
        name = signal.Signals(-code).name
        return Failure(f"{NAME} {command}", path, f"ended by {name}{hint} {last[:500]}".strip())
    parts = last.split(": ", 3)
    if len(parts) == 4 and parts[0] == NAME:
        return Failure(*parts[1:], code)
    return Failure(
        f"{NAME} {command}", path, last or (f"exit code {code}" if code else "it ended too early"),
        code or errors.FAILED)
