# fleet.json: the ledgers of a fleet, their places and, on request, their heads. Every member is
# checked.

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import errors
from .errors import Failure

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ROOT = re.compile(r"[0-9a-f]{64}")
_SIZE_MAX = 10**18
_FILE_BYTES_MAX = 16 << 20


class Head(NamedTuple):
    """How many events count, and the root of their tree in hexadecimal."""

    size: int
    root: str


class Ledger(NamedTuple):
    """One ledger: `path` is a directory or s3://bucket/prefix."""

    name: str
    path: str
    endpoint: Optional[str] = None
    region: Optional[str] = None
    head: Optional[Head] = None

    @property
    def is_remote(self) -> bool:
        return self.path.startswith("s3://")


def of_directories(paths: Sequence[str]) -> List[Ledger]:
    """The ledgers of --ledger, named by their directories."""
    found = []
    for path in paths:
        name = os.path.basename(path.rstrip("/")) or path
        place = path if path.startswith("s3://") else os.path.abspath(path)
        if name in (".", ".."):
            name = os.path.basename(place)
        found.append(Ledger(_name(name, f"--ledger {path}"), place))
    _distinct(found, "--ledger")
    return found


def of_file(path: str) -> List[Ledger]:
    """The ledgers of a fleet.json. Paths in it are relative to its folder."""
    try:
        with open(path, "rb") as file:
            text = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise errors.usage("read fleet", path, error.strerror or "it cannot be read") from None
    if len(text) > _FILE_BYTES_MAX:
        raise errors.usage("read fleet", path, "it is too large")
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=_object)
    except _Repeated as error:
        raise errors.usage("read fleet", path, str(error)) from None
    except ValueError as error:
        raise errors.usage("read fleet", path, f"it is not JSON: {error}") from None
    return _ledgers(value, path)


class _Repeated(ValueError):
    pass


def _object(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Repeated(f"the member '{twice}' is given twice")
    return result


def _ledgers(value: Any, path: str) -> List[Ledger]:
    members = _members(value, path, "", ["ledgers"], [])
    entries = members["ledgers"]
    if not isinstance(entries, list) or not entries:
        raise errors.usage("read fleet", path, "'ledgers' must be a list of at least one ledger")
    base = os.path.dirname(os.path.abspath(path))
    found = [_ledger(entry, path, f"ledgers[{at}]", base) for at, entry in enumerate(entries)]
    _distinct(found, path)
    return found


def _ledger(value: Any, file: str, at: str, base: str) -> Ledger:
    members = _members(value, file, at, ["name", "path"], ["endpoint", "region", "head"])
    for key in ("name", "path", "endpoint", "region"):
        if key in members and (not isinstance(members[key], str) or not members[key]):
            raise errors.usage("read fleet", file, f"{at}.{key} must be a text")
    name = _name(members["name"], file, f"{at}.name: ")
    place = members["path"]
    if place.startswith("s3://"):
        if not re.fullmatch(r"s3://[^/]+(/[^/]+)*/?", place):
            raise errors.usage("read fleet", file, f"{at}.path must read s3://BUCKET/PREFIX")
        place = place.rstrip("/")
    else:
        for key in ("endpoint", "region"):
            if key in members:
                raise errors.usage("read fleet", file, f"{at}.{key} needs a path in s3://")
        place = os.path.normpath(os.path.join(base, place))
    head = _head(members["head"], file, f"{at}.head") if "head" in members else None
    return Ledger(name, place, members.get("endpoint"), members.get("region"), head)


def _head(value: Any, file: str, at: str) -> Head:
    members = _members(value, file, at, ["size", "root"], [])
    size, root = members["size"], members["root"]
    if type(size) is not int or not 0 <= size <= _SIZE_MAX:
        raise errors.usage("read fleet", file, f"{at}.size must be a number of events")
    if not isinstance(root, str) or not _ROOT.fullmatch(root):
        raise errors.usage("read fleet", file, f"{at}.root must be 64 hexadecimal digits")
    return Head(size, root)


def _members(
    value: Any, file: str, at: str, required: Sequence[str], allowed: Sequence[str]
) -> Dict[str, Any]:
    place = at or "it"
    if not isinstance(value, dict):
        raise errors.usage("read fleet", file, f"{place} must be an object")
    known = [*required, *allowed]
    for key in value:
        if key not in known:
            raise errors.usage(
                "read fleet", file, f"{place} has no member '{key}'; it has {', '.join(known)}")
    for key in required:
        if key not in value:
            raise errors.usage("read fleet", file, f"{place} lacks '{key}'")
    return value


def _name(name: str, subject: str, at: str = "") -> str:
    if not _NAME.fullmatch(name):
        raise errors.usage(
            "read fleet", subject,
            f"{at}a ledger's name has 1 to 64 letters, digits, '.', '_' and '-'")
    return name


def _distinct(ledgers: Sequence[Ledger], subject: str) -> None:
    seen = set()
    for ledger in ledgers:
        if ledger.name in seen:
            raise errors.usage(
                "read fleet", subject, f"two ledgers have the name '{ledger.name}'")
        seen.add(ledger.name)


def with_heads(ledgers: Sequence[Ledger], manifest: Dict[str, Any], path: str) -> List[Ledger]:
    """The ledgers with the heads that the manifest of an earlier output names."""
    try:
        heads = {
            str(entry["name"]): Head(int(entry["size"]), str(entry["root"]))
            for entry in manifest["ledgers"]
        }
    except (KeyError, TypeError, ValueError):
        raise errors.usage("read heads", path, "it is not a manifest of this program") from None
    found = []
    for ledger in ledgers:
        head = heads.get(ledger.name)
        if head is None:
            raise Failure(
                "read heads", path, f"it has no head of the ledger '{ledger.name}'", errors.USAGE)
        found.append(ledger._replace(head=head))
    return found
