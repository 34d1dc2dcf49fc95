# The copies that `ledgerctl` replicates to (docs/replication.md), on any file system that Arrow
# reads: the newest state by their steps, and the files of a log out of their objects.

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
import urllib.parse
import uuid
import zlib
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, NamedTuple, Tuple

import pyarrow as pa
from pyarrow import fs

from .errors import DAMAGE, FAILED, NEWER_FORMAT, NO_LEDGER, Failure
from .fleet import Ledger

_VERSION_MAX = 2
_HEADER_BYTES_MAX = 16 << 20
_STEPS_MAX = 1_000
# How many numbers after the newest step are tried: a lost step hides those after it.
_LOST_STEPS_MAX = 64
_READ_BYTES = 4 << 20


class Piece(NamedTuple):
    """An object, or the frames of a step: a part of a file."""

    key: str
    bytes: int
    sha256: str


class File(NamedTuple):
    """A file of the log, and the positions that it holds."""

    name: str
    first: int
    end: int
    pieces: List[Piece]

    @property
    def is_tail(self) -> bool:
        return self.name.startswith("tail-")


class State(NamedTuple):
    """A copy as of its newest step."""

    size: int
    root: str
    identity: str
    files: List[File]


class Store:
    """The objects of a copy. Credentials are those of the environment, as Arrow finds them."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.place = f"{ledger.name} ({ledger.path})"
        options: Dict[str, str] = {}
        if ledger.endpoint is not None:
            parts = urllib.parse.urlsplit(ledger.endpoint)
            options = {"scheme": parts.scheme, "endpoint_override": parts.netloc,
                       "region": "us-east-1"}
        if ledger.region is not None:
            options["region"] = ledger.region
        query = "?" + urllib.parse.urlencode(options) if options else ""
        try:
            self._system, self._base = fs.FileSystem.from_uri(ledger.path + query)
        except (OSError, pa.ArrowException, ValueError) as error:
            raise Failure("open copy", self.place, _first_line(error)) from None

    @contextlib.contextmanager
    def opened(self, key: str) -> Iterator[BinaryIO]:
        try:
            # Without a compression named, Arrow would decompress a segment.
            with self._system.open_input_stream(f"{self._base}/{key}", compression=None) as file:
                yield file
        except FileNotFoundError:
            raise Failure("read copy", self.place, f"{key} is missing", DAMAGE) from None
        except (OSError, pa.ArrowException) as error:
            raise Failure("read copy", f"{self.place} {key}", _first_line(error), FAILED) from None

    def exist(self, numbers: List[int]) -> List[int]:
        """Which of these steps there are."""
        try:
            found = self._system.get_file_info([f"{self._base}/{_step_key(n)}" for n in numbers])
        except (OSError, pa.ArrowException) as error:
            raise Failure("read copy", self.place, _first_line(error)) from None
        return [n for n, entry in zip(numbers, found) if entry.type == fs.FileType.File]

    def write(self, piece: Piece, target: BinaryIO) -> None:
        """Copies an object, and checks it."""
        digest, size = hashlib.sha256(), 0
        with self.opened(piece.key) as source:
            rest = _after_header(source) if piece.key.startswith("steps/") else b""
            while rest or (rest := source.read(_READ_BYTES)):
                digest.update(rest)
                size += target.write(rest)
                rest = b""
        if size != piece.bytes or digest.hexdigest() != piece.sha256:
            raise self.damage(piece.key, "its SHA-256 is not that of the steps")

    def damage(self, key: str, cause: str) -> Failure:
        return Failure("read copy", f"{self.place} {key}", cause, DAMAGE)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _step_key(number: int) -> str:
    return f"steps/{number:020d}"


def _header(source: BinaryIO) -> Tuple[bytes, bytes]:
    """A step's header with its line feed, and what was read after it."""
    data = b""
    while b"\n" not in data and len(data) < _HEADER_BYTES_MAX:
        more = source.read(1 << 16)
        if not more:
            break
        data += more
    end = data.find(b"\n") + 1
    return data[:end], data[end:]


def _after_header(source: BinaryIO) -> bytes:
    return _header(source)[1]


# Steps


def state(store: Store) -> State:
    """The newest state: that of the newest complete step, and of the steps after it."""
    number = _newest(store.exist)
    if number is None:
        raise Failure("open copy", store.place, "there is no copy", NO_LEDGER)
    steps = [_step(store, number)]
    while not steps[-1][0].get("complete"):
        if number == 0 or len(steps) > _STEPS_MAX:
            raise store.damage(_step_key(number), "no complete step is before it")
        number -= 1
        steps.append(_step(store, number))
        later, (step, sha256) = steps[-2][0], steps[-1]
        if later["previous"] != sha256 or later["ledger"] != step["ledger"]:
            raise store.damage(_step_key(number + 1), "it does not continue the step before it")
    try:
        return _state(store, [step for step, _ in reversed(steps)])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise store.damage(_step_key(number), "it does not have the form of a step") from None


def _newest(exist: Callable[[List[int]], List[int]]) -> Any:
    """The number of the newest step; None without any."""
    low = -1
    while True:
        distance = 1
        while exist([low + distance]):
            low, distance = low + distance, 2 * distance
        high = low + distance
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if exist([middle]) else (low, middle)
        further = exist(list(range(low + 1, low + 1 + _LOST_STEPS_MAX)))
        if not further:
            return None if low < 0 else low
        low = further[-1]


def _step(store: Store, number: int) -> Tuple[Dict[str, Any], str]:
    """A step's header, and its SHA-256."""
    key = _step_key(number)
    with store.opened(key) as source:
        text, _ = _header(source)
    try:
        step = json.loads(text)
        version = step.get("version", 0)
        is_right = step["step"] == number and step["size"] >= 0
        is_right = is_right and all(type(step[name]) is str for name in ("previous", "ledger"))
    except (ValueError, KeyError, TypeError, AttributeError):
        version, is_right = 0, False
    if type(version) is not int or version > _VERSION_MAX:
        raise Failure("read copy", f"{store.place} {key}",
                      f"a later program wrote it: version {version}", NEWER_FORMAT)
    if not is_right:
        raise store.damage(key, "it does not have the form of a step")
    return step, hashlib.sha256(text).hexdigest()


def _state(store: Store, steps: List[Dict[str, Any]]) -> State:
    """Adds up what steps name, from a complete one on."""
    segments: List[Dict[str, Any]] = []
    blocks: Dict[int, Dict[str, Any]] = {}
    frames: List[Dict[str, Any]] = []
    identity = ""
    for step in steps:
        identity = step.get("identity", identity)
        for segment in step.get("segments", []):
            segments = [each for each in segments
                        if each["first"] < segment["first"] or each["end"] > segment["end"]]
            segments.append(segment)
        segments.sort(key=lambda each: each["first"])
        blocks.update((block["first"], block) for block in step.get("blocks", []))
        frames += step.get("earlier_frames", [])
        if "frames" in step:
            frames.append({"step": step["step"], **step["frames"]})
    closed = segments[-1]["end"] if segments else 0
    opened = [blocks[first] for first in sorted(blocks) if blocks[first]["end"] > closed]
    sealed = opened[-1]["end"] if opened else closed
    files = [
        File(_segment_name(each["first"]), each["first"], each["end"],
             [Piece(_object_key("segments", each), each["bytes"], each["sha256"])])
        for each in segments]
    if opened:
        files.append(File(
            _segment_name(closed), closed, sealed,
            [Piece(_object_key("blocks", each), each["bytes"], each["sha256"])
             for each in opened]))
    files += _tails([each for each in frames if each["end"] > sealed])
    last = steps[-1]
    position = 0
    for file in files:
        if file.first != position:
            raise store.damage(_step_key(last["step"]), f"nothing begins at position {position}")
        position = file.end
    if position != last["size"]:
        raise store.damage(_step_key(last["step"]), "its objects hold another number of events")
    return State(int(last["size"]), str(last["root"]), identity, files)


def _tails(frames: List[Dict[str, Any]]) -> List[File]:
    """Frames of one tail, one after the other, are a file."""
    found: List[File] = []
    tail = None
    for each in frames:
        piece = Piece(_step_key(each["step"]), each["bytes"], each["sha256"])
        if found and tail == each["tail"]:
            last = found[-1]
            found[-1] = last._replace(end=each["end"], pieces=[*last.pieces, piece])
        else:
            name = f"tail-{each['first']:020d}.log"
            found.append(File(name, each["first"], each["end"], [piece]))
        tail = each["tail"]
    return found


def _segment_name(first: int) -> str:
    return f"{first:020d}.jsonl.gz"


def _object_key(folder: str, entry: Dict[str, Any]) -> str:
    return f"{folder}/{entry['first']:020d}-{entry['sha256']}.jsonl.gz"


# Files


def identity(store: Store, state: State) -> bytes:
    """The bytes of ledger.json."""
    key = f"identity/{state.identity}.json"
    with store.opened(key) as source:
        text = source.read(1 << 20)
    if hashlib.sha256(text).hexdigest() != state.identity:
        raise store.damage(key, "its SHA-256 is not the one in its key")
    return text


@contextlib.contextmanager
def directory(ledger: Ledger, first: int, end: int, state_before: State) -> Iterator[str]:
    """A directory from which `ledger-rules scan` reads the events first..<end, while the context
    lasts. If the writer has replaced objects since, newer steps name those that took their place.
    """
    store = Store(ledger)
    with tempfile.TemporaryDirectory(prefix="receipt-ledger-") as folder:
        try:
            _fetch(store, state_before, first, end, folder)
        except Failure as failure:
            now = state(store) if failure.code == DAMAGE else state_before
            if now == state_before:
                raise
            _fetch(store, now, first, end, folder)
        yield folder


def _fetch(store: Store, state: State, first: int, end: int, folder: str) -> None:
    log = os.path.join(folder, "log")
    os.makedirs(log, exist_ok=True)
    text = identity(store, state)
    with open(os.path.join(folder, "ledger.json"), "wb") as file:
        file.write(text)
    for found in needed(state.files, first, end):
        with open(os.path.join(log, found.name), "wb") as file:
            for piece in found.pieces:
                store.write(piece, file)
    if state.files[0].is_tail:
        with open(os.path.join(log, _segment_name(0)), "wb") as file:
            file.write(_opening(json.loads(text)["id"]))


def needed(files: List[File], first: int, end: int) -> List[File]:
    """The files with these events; before tails, the segment that they follow."""
    found = [file for file in files if file.first < end and file.end > first]
    if found[0].is_tail:
        before = [file for file in files if file.first < found[0].first]
        segments = [number for number, file in enumerate(before) if not file.is_tail]
        found = before[segments[-1] if segments else 0:] + found
    return found


def _opening(ledger_id: str) -> bytes:
    """A segment without events, as docs/format.md has it: a copy of tails alone has none."""
    head = bytes.fromhex("1f8b08040000000000ff") + struct.pack("<H2sH", 0x3C, b"RL", 0x38)
    head += struct.pack("<BBH", 1, 1, 0)
    rest = struct.pack("<QQIIQ", 0, 0, 0x52, 0, 0) + uuid.UUID(ledger_id).bytes
    rest += bytes.fromhex("0300") + bytes(8)
    return head + struct.pack("<I", zlib.crc32(head + rest)) + rest
