# The program `ledger-rules`: where it is, whether it fits, and its runs.
#
# It runs on the driver (plan, csv) and on executors (scan, fold). Its standard error is kept, its
# exit code becomes that of a Failure.

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from . import errors, exchange
from .errors import Failure

NAME = "ledger-rules"
_STDERR_KEPT_BYTES = 4096


class Program(NamedTuple):
    """A program that fits, and what it says of itself."""

    path: str
    version: str
    format_version: int


def find(option: Optional[str]) -> Program:
    """The program named by --rules, else by LEDGER_RULES, else in PATH; checked."""
    named = option or os.environ.get("LEDGER_RULES")
    path = shutil.which(named or NAME)
    if path is None:
        if named:
            raise errors.usage("find ledger-rules", named, "no such program")
        raise errors.usage(
            "find ledger-rules", "PATH", "not found; name it with --rules or LEDGER_RULES")
    path = os.path.abspath(path)
    try:
        said = json_of(path, ["version"])
    except Failure as failure:
        raise errors.usage("find ledger-rules", path, failure.cause) from None
    if not isinstance(said, dict) or not isinstance(said.get("version"), str):
        raise errors.usage("find ledger-rules", path, "it is another program")
    if said.get("exchange") != exchange.VERSION:
        raise errors.usage(
            "find ledger-rules", path,
            f"it has version {said.get('exchange')} of the exchange format, this package "
            f"{exchange.VERSION}")
    return Program(path, said["version"], int(said.get("format_version", 0)))


def json_of(path: str, arguments: Sequence[str]) -> Any:
    """What a command prints as one JSON on standard output."""
    with Run(path, arguments, feeds=False) as run:
        text = run.output.read()
        run.finish()
    try:
        return json.loads(text)
    except ValueError:
        raise Failure(f"{NAME} {arguments[0]}", path, "its output is not JSON") from None


class Run:
    """One run of the program. Leaving the context ends it, whatever happened."""

    def __init__(
        self, path: str, arguments: Sequence[str], feeds: bool = True,
        output: Optional[BinaryIO] = None,
    ) -> None:
        """`feeds`: it reads what `feed` writes. `output`: where it writes, instead of `output`."""
        self._name = f"{NAME} {arguments[0]}"
        self._path = path
        self._stderr = b""
        self._reading: List[threading.Thread] = []
        self._read_error: Optional[BaseException] = None
        self._was_stopped = False
        try:
            self._process = subprocess.Popen(
                [path, *arguments],
                stdin=subprocess.PIPE if feeds else subprocess.DEVNULL,
                stdout=output if output is not None else subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise Failure(self._name, path, error.strerror or "it cannot be run") from None
        self._in_thread(self._keep_stderr)

    @property
    def output(self) -> BinaryIO:
        """What the program writes."""
        assert self._process.stdout is not None
        return self._process.stdout

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for thread in self._reading:
            thread.join()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass

    def _in_thread(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self._reading.append(thread)

    def _keep_stderr(self) -> None:
        assert self._process.stderr is not None
        while True:
            data = os.read(self._process.stderr.fileno(), 65_536)
            if not data:
                return
            self._stderr = (self._stderr + data)[-_STDERR_KEPT_BYTES:]

    def read_batches(self, take: Callable[[exchange.Batch], None]) -> Callable[[], Any]:
        """Calls `take` with each batch in a thread of its own, so that feeding and reading never
        wait for each other. The result waits for the end and returns its JSON.
        """
        reader = exchange.Reader(self.output)

        def read() -> None:
            try:
                for batch in reader:
                    take(batch)
            except BaseException as error:  # It is raised again by `wait`.
                self._read_error = error
                # Whoever feeds must not wait for a reader that is gone. A program that ended
                # tells why itself.
                if not isinstance(error, exchange.CutShort):
                    self._was_stopped = True
                    self._process.kill()

        self._in_thread(read)
        thread = self._reading[-1]

        def wait() -> Any:
            thread.join()
            error = self._read_error
            if error is not None and not isinstance(error, exchange.Malformed):
                raise error
            self.finish()
            if error is not None:
                raise Failure(self._name, self._path, str(error))
            return reader.end

        return wait

    def feed(self, pieces: Iterator[exchange.Piece]) -> None:
        """Writes to the program. If it ends before it has read all, `finish` says why."""
        stream = self._process.stdin
        assert stream is not None
        try:
            for piece in pieces:
                stream.write(piece)
            stream.close()
        except BrokenPipeError:
            pass

    def finish(self) -> None:
        """Waits for the program; raises its failure if it has one."""
        code = self._process.wait()
        if self._was_stopped and code == -signal.SIGKILL:
            return
        for thread in self._reading:
            if thread is not threading.current_thread():
                thread.join()
        if code == 0:
            return
        raise self._failure(code)

    def _failure(self, code: int) -> Failure:
        lines = self._stderr.decode(errors="replace").strip().splitlines()
        said = lines[-1] if lines else ""
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = str(-code)
            hint = "; the system may be out of memory" if code == -signal.SIGKILL else ""
            return Failure(self._name, self._path, f"ended by {name}{hint} {said[:500]}".strip())
        parts = said.split(": ", 3)
        if len(parts) == 4 and parts[0] == NAME:
            return Failure(parts[1], parts[2], parts[3], code)
        return Failure(self._name, self._path, said or f"exit code {code}", code)


def with_stdin(run: Run, batches: Iterator[exchange.Batch]) -> None:
    """Feeds batches and the end."""

    def pieces() -> Iterator[exchange.Piece]:
        for batch in batches:
            yield from exchange.batch_pieces(batch.table, batch.columns)
        yield exchange.end_bytes({})

    run.feed(pieces())


def write_task(path: str, task: Dict[str, Any]) -> None:
    """Writes the file of --task."""
    with open(path, "x", encoding="utf-8") as file:
        json.dump(task, file, ensure_ascii=False)
