"""A contract's logs over a range of blocks: in pieces that nodes answer, each log once, all of one branch.

Nodes refuse ranges that are long or hold much, each by a rule of its own, so a refused range is halved. While one
piece after the other is read the chain may change its branch; what was read is looked at again before it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from eth_typing import ChecksumAddress, HexStr
from hexbytes import HexBytes
from web3 import Web3
from web3.exceptions import BlockNotFound, Web3RPCError
from web3.types import FilterParams, LogReceipt

from ledger.errors import ChainUnavailable

SPAN: Final = 5_000
"""Blocks asked for at a time, at first."""
_LOOKS: Final = 5
_RETRY_AFTER_S: Final = 5


def read_logs(
    w3: Web3,
    contract: ChecksumAddress,
    topics: Sequence[str | None],
    from_block: int,
    to_block: int,
    *,
    span: int = SPAN,
) -> tuple[LogReceipt, ...]:
    """The logs that ``contract`` emitted in these blocks, both ends included, in the order of the chain.

    Raises ChainUnavailable where the node refuses the logs of a single block, or changes its branch at every look.
    """
    found: dict[tuple[bytes, int], LogReceipt] = {}
    start = from_block
    for _ in range(_LOOKS):
        for log in _in_pieces(w3, contract, topics, start, to_block, span):
            found[bytes(log["blockHash"]), log["logIndex"]] = log
        left = _first_left_block(w3, found.values())
        if left is None:
            return tuple(sorted(found.values(), key=lambda log: (log["blockNumber"], log["logIndex"])))
        found = {place: log for place, log in found.items() if log["blockNumber"] < left}
        start = left
    raise ChainUnavailable(
        f"the chain changed its branch at each of {_LOOKS} looks at the logs of blocks {from_block} to {to_block}; "
        "it is read again later",
        retry_after_s=_RETRY_AFTER_S,
    )


def _in_pieces(
    w3: Web3, contract: ChecksumAddress, topics: Sequence[str | None], start: int, to_block: int, span: int
) -> list[LogReceipt]:
    found: list[LogReceipt] = []
    while start <= to_block:
        end = min(start + span - 1, to_block)
        try:
            logs = _asked(w3, contract, topics, start, end)
        except ChainUnavailable as error:
            if not error.data.get("answered") or start == end:
                raise
            span = max((end - start + 1) // 2, 1)
            continue
        # A node that gives more than it was asked for would put words into the registry's mouth.
        found += [log for log in logs if _fits(log, contract, topics, start, end)]
        start = end + 1
    return found


def _asked(
    w3: Web3, contract: ChecksumAddress, topics: Sequence[str | None], start: int, end: int
) -> Sequence[LogReceipt]:
    wanted: FilterParams = {"address": contract, "fromBlock": start, "toBlock": end}
    if topics:
        wanted["topics"] = [None if topic is None else HexStr(topic) for topic in topics]
    try:
        return w3.eth.get_logs(wanted)
    except Web3RPCError as error:
        raise ChainUnavailable(
            f"the node refuses the logs of blocks {start} to {end}: {error}",
            answered=True,
            retry_after_s=_RETRY_AFTER_S,
        ) from error


def _fits(log: LogReceipt, contract: ChecksumAddress, topics: Sequence[str | None], start: int, end: int) -> bool:
    if log["address"] != contract or not start <= log["blockNumber"] <= end or log.get("removed"):
        return False
    given = log["topics"]
    return len(given) >= len(topics) and all(
        topic is None or bytes(HexBytes(topic)) == bytes(given[i]) for i, topic in enumerate(topics)
    )


def _first_left_block(w3: Web3, logs: Iterable[LogReceipt]) -> int | None:
    """The lowest block with logs that the chain does not hold any more; None where it holds all of them."""
    blocks = sorted({(log["blockNumber"], bytes(log["blockHash"])) for log in logs})
    for number, block_hash in blocks:
        try:
            standing = bytes(w3.eth.get_block(number)["hash"])
        except BlockNotFound:
            return number
        if standing != block_hash:
            return number
    return None
