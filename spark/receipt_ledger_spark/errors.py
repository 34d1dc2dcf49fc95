# One shape of failures: operation, object, cause and exit code; on tasks of Spark, too.

from __future__ import annotations

import json
import re

DONE = 0
FAILED = 1
USAGE = 2
NO_LEDGER = 10
NEWER_FORMAT = 12
DAMAGE = 20
INTERRUPTED = 130

_MARKED = re.compile(r"receipt-ledger-spark-failure:([0-9a-f]+):end")


class Failure(Exception):
    """What went wrong, as one line, and the exit code that says so."""

    def __init__(self, operation: str, subject: str, cause: str, code: int = FAILED) -> None:
        self.operation = operation
        self.subject = subject
        self.cause = cause
        self.code = code
        super().__init__(operation, subject, cause, code)

    def __str__(self) -> str:
        parts = (self.operation, self.subject, self.cause)
        return ": ".join(one_line(part) for part in parts if part)

    def of(self, ledger: str) -> Failure:
        """The same, with the ledger's name in front."""
        return Failure(f"{ledger}: {self.operation}", self.subject, self.cause, self.code)

    def marked(self) -> TaskFailure:
        """An exception whose text survives the way through Java."""
        text = json.dumps(self.args).encode().hex()
        return TaskFailure(f"receipt-ledger-spark-failure:{text}:end")


class TaskFailure(Exception):
    """A failure on an executor."""


def usage(operation: str, subject: str, cause: str) -> Failure:
    return Failure(operation, subject, cause, USAGE)


def from_spark(error: BaseException, operation: str) -> Failure:
    """The failure behind an exception of Spark: our task's, or what Spark says first."""
    text = str(error)
    found = _MARKED.search(text)
    if found:
        return Failure(*json.loads(bytes.fromhex(found.group(1))))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # Of a Python worker's traceback the last line says what happened.
    raised = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception)\b", line)]
    cause = (raised[-1:] or lines[:1] or [type(error).__name__])[0]
    return Failure(operation, "Spark", cause[:500])


def one_line(text: str) -> str:
    """Text without line ends or other control characters."""
    return "".join(c if c.isprintable() else " " for c in str(text)).strip()
