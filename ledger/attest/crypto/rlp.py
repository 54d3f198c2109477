"""The recursive length prefix of Ethereum (yellow paper, appendix B), read strictly: one value has one spelling.

Lengths are minimal, integers have no leading zeros, and nothing stands after the end. What breaks a rule raises
TransactionInvalid, because signed transactions are what is read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from ledger.errors import TransactionInvalid

RlpItem: TypeAlias = "bytes | list[RlpItem]"

_MAX_DEPTH: Final = 4


def decode_list(body: bytes) -> tuple[list[RlpItem], list[int]]:
    """The items of the list that ``body`` is, and where each begins in it; the last number is the end of all."""
    if not body or body[0] < 0xC0:
        raise invalid("is not an RLP list")
    position, end = _span(body, 0, len(body))
    if end != len(body):
        raise invalid("has bytes after its end")
    items: list[RlpItem] = []
    places = [position]
    while position < end:
        item, position = _decode_item(body, position, end, 1)
        items.append(item)
        places.append(position)
    return items, places


def list_of(encoded: bytes) -> bytes:
    """A list whose items are encoded already, one after the other."""
    return _prefix(0xC0, len(encoded)) + encoded


def encode_uint(value: int) -> bytes:
    """A number from 0 up."""
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return data if len(data) == 1 and data[0] < 0x80 else _prefix(0x80, len(data)) + data


def as_bytes(item: RlpItem, name: str) -> bytes:
    """An item that is no list; ``name`` says what it is for."""
    if not isinstance(item, bytes):
        raise invalid(f"has a list as its {name}")
    return item


def as_uint(item: RlpItem, name: str) -> int:
    """An item that is a number of at most 256 bits."""
    value = as_bytes(item, name)
    if len(value) > 32 or value[:1] == b"\x00":
        raise invalid(f"has a {name} with leading zeros or more than 256 bits")
    return int.from_bytes(value, "big")


def as_list(item: RlpItem, name: str, length: int | None = None) -> Sequence[RlpItem]:
    """An item that is a list, of ``length`` items where that is given."""
    if not isinstance(item, list) or length not in (None, len(item)):
        raise invalid(f"has a malformed {name}")
    return item


def invalid(what: str) -> TransactionInvalid:
    """The error that says what is wrong with the raw transaction."""
    return TransactionInvalid(f"the raw transaction {what}")


def _decode_item(data: bytes, position: int, limit: int, depth: int) -> tuple[RlpItem, int]:
    if depth > _MAX_DEPTH:
        raise invalid("nests lists too deeply")
    prefix = data[position]
    start, end = _span(data, position, limit)
    if prefix < 0xC0:
        return data[start:end], end
    items: list[RlpItem] = []
    while start < end:
        item, start = _decode_item(data, start, end, depth + 1)
        items.append(item)
    return items, end


def _span(data: bytes, position: int, limit: int) -> tuple[int, int]:
    """Where the content of the item at ``position`` starts and ends, inside ``limit``; its length is minimal."""
    prefix = data[position]
    if prefix < 0x80:
        return position, position + 1
    base = 0x80 if prefix < 0xC0 else 0xC0
    if prefix <= base + 55:
        start, length = position + 1, prefix - base
    else:
        start = position + 1 + prefix - base - 55
        size = data[position + 1 : start]
        length = int.from_bytes(size, "big")
        if start > limit or size[0] == 0 or length <= 55:
            raise invalid("has an RLP length that is not minimal or cut off")
    if start + length > limit:
        raise invalid("is cut off")
    if base == 0x80 and length == 1 and data[start] < 0x80:
        raise invalid("spells a single byte with a length")
    return start, start + length


def _prefix(base: int, length: int) -> bytes:
    if length <= 55:
        return bytes([base + length])
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([base + 55 + len(size)]) + size
