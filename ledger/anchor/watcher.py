"""What a registry's own logs say, and which of it this ledger did not do.

The tables of a ledger say what it sent. What the chain holds is in its logs: who else recorded a statement of one of
its agreements, took its id, or changed the verifiers. Each log is counted once, by its block's hash and its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from eth_typing import ChecksumAddress
from eth_utils import keccak
from web3 import Web3
from web3.types import LogReceipt

from ledger.anchor.abi import contract_build
from ledger.anchor.logs import read_logs

_CHANGES_OF_THE_REGISTRY: Final = frozenset(
    {"VerifierAdded", "VerifierRetired", "Paused", "Unpaused", "RoleGranted", "RoleRevoked", "RoleAdminChanged"}
)


@dataclass(frozen=True, slots=True)
class Seen:
    """One event of the registry. ``arguments`` are plain values: bytes as 0x and hex digits, numbers as digits.

    ``own`` says that a transaction stored here made it. ``concerns`` says what an event that is not own means for this
    ledger: ``statement`` and ``registration`` are about one of its agreements, ``registry`` about all who use the
    contract, None about others alone.
    """

    name: str
    arguments: Mapping[str, Any]
    tx_hash: str
    block_number: int
    block_hash: str
    log_index: int
    own: bool
    concerns: str | None


class Watcher:
    """Reads the events of one registry, for a ledger that has sent ``own_transactions`` and keeps ``agreements``.

    Both are 0x and 64 hex digits in lower case.
    """

    def __init__(
        self, w3: Web3, registry: ChecksumAddress, *, own_transactions: Collection[str], agreements: Collection[str]
    ) -> None:
        self._w3 = w3
        self._registry = registry
        self._contract = w3.eth.contract(address=registry, abi=contract_build("SlaAnchor").abi)
        self._own = frozenset(own_transactions)
        self._agreements = frozenset(agreements)

    def events(self, from_block: int, to_block: int | None = None) -> tuple[Seen, ...]:
        """The registry's events in these blocks, up to the newest by default. Raises ChainUnavailable."""
        last = self._w3.eth.block_number if to_block is None else to_block
        logs = read_logs(self._w3, self._registry, (), from_block, last)
        return tuple(self._seen(log) for log in logs)

    def _seen(self, log: LogReceipt) -> Seen:
        name, arguments = self._decoded(log)
        tx_hash = "0x" + bytes(log["transactionHash"]).hex()
        own = tx_hash in self._own
        return Seen(
            name=name,
            arguments=arguments,
            tx_hash=tx_hash,
            block_number=log["blockNumber"],
            block_hash="0x" + bytes(log["blockHash"]).hex(),
            log_index=log["logIndex"],
            own=own,
            concerns=None if own else self._concerns(name, arguments),
        )

    def _decoded(self, log: LogReceipt) -> tuple[str, dict[str, Any]]:
        name = _names().get(bytes(log["topics"][0])) if log["topics"] else None
        if name is None:
            return "unknown", {"data": "0x" + bytes(log["data"]).hex()}
        event = self._contract.events[name]().process_log(log)
        return name, {key: _plain(value) for key, value in event["args"].items()}

    def _concerns(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        if name in _CHANGES_OF_THE_REGISTRY:
            return "registry"
        if arguments.get("slaId") not in self._agreements:
            return None
        return "registration" if name == "Registered" else "statement"


@cache
def _names() -> Mapping[bytes, str]:
    """The registry's events by the first topic of their logs."""
    entries = [entry for entry in contract_build("SlaAnchor").abi if entry["type"] == "event"]
    return {
        keccak(text=f"{entry['name']}({','.join(field['type'] for field in entry['inputs'])})"): str(entry["name"])
        for entry in entries
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
