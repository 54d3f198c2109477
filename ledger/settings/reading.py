"""How a number or an address is read from a setting, and refused under its name."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from ledger.errors import SettingInvalid

MAX_PORT = 65_535
MAX_SECONDS = 3600


def whole_number(environ: Mapping[str, str], name: str, default: int, maximum: int) -> int:
    """A number from 1 to ``maximum``; raises ``SettingInvalid``."""
    text = environ.get(name, "") or str(default)
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(maximum)) and 0 < int(text) <= maximum):
        raise SettingInvalid(f"{name}={text[:20]!r} must be a whole number from 1 to {maximum}", setting=name)
    return int(text)


def seconds(environ: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    """A number of seconds from ``least`` to an hour; raises ``SettingInvalid``."""
    text = environ.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SECONDS))):
        raise SettingInvalid(f"{name}={text[:20]!r} is not a number of seconds", setting=name)
    if not least <= int(text) <= MAX_SECONDS:
        raise SettingInvalid(f"{name}={text} is not between {least} and {MAX_SECONDS}", setting=name)
    return int(text)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    # A name such as "localhost" is refused too: what it resolves to is decided elsewhere.
    return is_address(host) and ipaddress.ip_address(host).is_loopback


def is_address(host: str) -> bool:
    """Whether this is an IP address, of either version."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_safe_url(url: str) -> bool:
    """Whether nobody on the way can change what the URL answers: https, or http on this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def is_http_url(text: str) -> bool:
    """Whether this is a URL that an HTTP client can ask."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and text.isprintable()
    except ValueError:
        return False
