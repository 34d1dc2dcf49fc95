# Searches files for identifiers and their hashes: as they stand, inflated, and out of base64.
import binascii
import collections
import csv
import hashlib
import io
import ipaddress
import json
import os
import pathlib
import re
import subprocess
import tempfile
import uuid
import zlib

# Runs that may be base64 or base64url; a shorter one holds no identifier.
RUN = re.compile(rb"[A-Za-z0-9+/_-]{16,}")
STANDARD = bytes.maketrans(b"-_", b"+/")
# How often something was put into base64.
DEPTH = 2
# A part of a digest's bytes that is no coincidence; `grep` takes no line feed in what it looks for.
RAW_LENGTH = 8
GZIP = b"\x1f\x8b\x08"


def needles(value):
    """The bytes that tell of an identifier, each with what it is."""
    found = {"as it is": value.encode()}
    found["in JSON"] = json.dumps(value, ensure_ascii=False)[1:-1].encode()
    found["in JSON, escaped"] = json.dumps(value)[1:-1].encode()
    found["in JSON, escaped in capitals"] = re.sub(
        r"\\u[0-9a-f]{4}", lambda match: "\\u" + match.group()[2:].upper(), json.dumps(value)[1:-1]
    ).encode()
    found["in other case"] = value.swapcase().encode()
    found["doubled quotes"] = value.replace('"', '""').encode()
    digest = hashlib.sha256(value.encode()).digest()
    found |= {f"its SHA-256 {how}": text for how, text in _digest(digest).items()}
    if re.fullmatch(r"[0-9a-f]{64}", value):
        found |= {f"the digest {how}": text for how, text in _digest(bytes.fromhex(value)).items()}
    if re.fullmatch(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", value):
        found |= {"its bytes": uuid.UUID(value).bytes, "without hyphens": value.replace("-", "").encode()}
    if ":" in value:
        try:
            found["its bytes"] = ipaddress.IPv6Address(value).packed
        except ValueError:
            pass
    return {how: text for how, text in found.items() if text}


def _digest(digest):
    standard = binascii.b2a_base64(digest, newline=False).rstrip(b"=")
    return {
        "in hex": digest.hex().encode(),
        "in capital hex": digest.hex().upper().encode(),
        "in base64": standard,
        "in base64url": standard.translate(bytes.maketrans(b"+/", b"-_")),
        "as bytes": digest,
    }


def _pattern(text):
    """What `grep` can look for: the longest part without a line feed."""
    longest = max(re.split(rb"[\n\0]", text), key=len)
    return longest if len(longest) == len(text) or len(longest) >= RAW_LENGTH else b""


class Searcher:
    """Looks for the identifiers of some people in bytes of any kind."""

    def __init__(self, people):
        self.meanings = {}
        for person in people:
            for kind, value in person.identifiers:
                for how, text in needles(value).items():
                    pattern = _pattern(text)
                    if len(pattern) >= RAW_LENGTH:
                        self.meanings.setdefault(pattern, (person.number, kind, how, value))

    def in_blobs(self, blobs):
        """{where: meanings} of (name, bytes) pairs."""
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            patterns = folder / "patterns"
            patterns.write_bytes(b"".join(pattern + b"\n" for pattern in self.meanings))
            names = {}
            for name, data in blobs:
                for view, content in views(data):
                    path = folder / f"view-{len(names)}"
                    path.write_bytes(content)
                    names[os.fsencode(path)] = f"{name}{view}"
            command = ["grep", "-F", "-a", "-o", "-Z", "-H", "-f", str(patterns)]
            done = subprocess.run(
                [*command, *names], capture_output=True, check=False, env=os.environ | {"LC_ALL": "C"}
            )
            if done.returncode not in (0, 1):
                raise SystemExit(f"grep exited with {done.returncode}: {done.stderr[:500]}")
        found = collections.defaultdict(set)
        for line in done.stdout.split(b"\n"):
            path, _, match = line.partition(b"\0")
            if match in self.meanings:
                found[names[path]].add(self.meanings[match])
        return dict(found)

    def in_directory(self, directory):
        return self.in_blobs(files(directory))


def files(directory):
    """All files under a directory with their bytes, and their names, which may tell something too."""
    paths = sorted(path for path in pathlib.Path(directory).rglob("*"))
    yield "names of files", "\n".join(map(str, paths)).encode()
    for path in paths:
        if path.is_file() and not path.is_symlink():
            try:
                yield str(path.relative_to(directory)), path.read_bytes()
            except FileNotFoundError:
                # A running server may remove what it made for a while.
                continue


def views(data):
    """(suffix, bytes) of all that a file may say: itself, gzip members inflated, what is base64 in them."""
    yield "", data
    texts = [data]
    inflated = _inflated(data)
    if inflated:
        yield ", inflated", inflated
        texts.append(inflated)
    for text in texts:
        for depth in range(DEPTH):
            text = _decoded(text)
            if not text:
                break
            yield f", out of base64 ({depth + 1})", text


def _inflated(data):
    """Every gzip member, wherever one begins; raw deflate would show as such a member's content."""
    parts, at = [], data.find(GZIP)
    while at >= 0:
        inflater = zlib.decompressobj(wbits=31)
        end = at + 1
        try:
            parts.append(inflater.decompress(data[at:]))
            end = len(data) - len(inflater.unused_data) if inflater.eof else end
        except zlib.error:
            pass
        at = data.find(GZIP, end)
    return b"\n".join(parts)


def _decoded(text):
    """What every run of base64 holds, from each of its four places where a group may begin."""
    parts = []
    for match in RUN.finditer(text):
        run = match.group().translate(STANDARD)
        for offset in range(4):
            length = len(run) - offset
            # Two or three letters at the end hold one or two bytes.
            rest = length % 4
            end = len(run) - (1 if rest == 1 else 0)
            padding = b"=" * (4 - rest) if rest > 1 else b""
            parts.append(binascii.a2b_base64(run[offset:end] + padding))
    return b"\n".join(parts)


# The columns in which an erasure may show.
NAMING = ("user_identifier", "receipt_id", "detail")


def figures(text):
    """How often each row stands in a CSV, without what an erasure may change."""
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    places = [place for place, name in enumerate(rows[0]) if name not in NAMING]
    return collections.Counter(tuple(row[place] for place in places) for row in rows)
