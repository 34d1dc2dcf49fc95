# fleet.json: the ledgers of a fleet, their places and, on request, their heads. Every member is
# checked.

from __future__ import annotations

import json
import os
import re
import urllib.parse
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import errors

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ROOT = re.compile(r"[0-9a-f]{64}")
_SIZE_MAX = 10**18
_FILE_BYTES_MAX = 16 << 20


class Head(NamedTuple):
    """How many events count, and the root of their tree in hexadecimal."""

    size: int
    root: str


class Ledger(NamedTuple):
    """One ledger: `path` is a directory, or the URI of a copy that `ledgerctl` replicates to."""

    name: str
    path: str
    endpoint: Optional[str] = None
    region: Optional[str] = None
    head: Optional[Head] = None

    @property
    def is_copy(self) -> bool:
        return "://" in self.path


def of_directories(paths: Sequence[str]) -> List[Ledger]:
    """The ledgers of --ledger, named by their directories."""
    found = []
    for path in paths:
        name = os.path.basename(path.rstrip("/")) or path
        place = path.rstrip("/") if "://" in path else os.path.abspath(path)
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
    for key in ("endpoint", "region"):
        if key in members and not place.startswith("s3://"):
            raise errors.usage("read fleet", file, f"{at}.{key} needs a path in s3://")
    if "endpoint" in members:
        _check_endpoint(members["endpoint"], file, f"{at}.endpoint")
    if "://" in place:
        place = place.rstrip("/")
        if not re.fullmatch(r"[a-z][a-z0-9]*:///?[^/?#]+(/[^/?#]+)*", place):
            raise errors.usage("read fleet", file, f"{at}.path must read SCHEME://PLACE")
    else:
        place = os.path.normpath(os.path.join(base, place))
    head = _head(members["head"], file, f"{at}.head") if "head" in members else None
    return Ledger(name, place, members.get("endpoint"), members.get("region"), head)


def _check_endpoint(url: str, file: str, at: str) -> None:
    """Receipts go over https, or over http within this machine."""
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    if not host or parts.username is not None or parts.path.strip("/") or parts.query:
        raise errors.usage("read fleet", file, f"{at} must read https://HOST or https://HOST:PORT")
    is_loopback = host in ("localhost", "::1") or re.fullmatch(r"127(\.[0-9]{1,3}){3}", host)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback):
        raise errors.usage(
            "read fleet", file, f"{at} must use https, or http to a loopback address")


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
