"""What a registry's own logs say, and which of it this ledger did not do.

The tables of a ledger say what it sent. What the chain holds is in its logs: who else recorded a statement of one of
its agreements, took its id, or changed the verifiers. Each log is counted once, by its block's hash and its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from eth_typing import ChecksumAddress
from eth_utils import keccak
from web3 import Web3
from web3.types import LogReceipt

from ledger.anchor.abi import contract_build
from ledger.anchor.logs import read_logs
from ledger.app.ports.chain import Among, Seen

_CHANGES_OF_THE_REGISTRY: Final = frozenset(
    {"VerifierAdded", "VerifierRetired", "Paused", "Unpaused", "RoleGranted", "RoleRevoked", "RoleAdminChanged"}
)


class Watcher:
    """Reads the events of one registry: ``own`` knows the transactions of this ledger, ``known`` its agreements."""

    def __init__(self, w3: Web3, registry: ChecksumAddress, *, own: Among, known: Among) -> None:
        self._w3 = w3
        self._registry = registry
        self._contract = w3.eth.contract(address=registry, abi=contract_build("SlaAnchor").abi)
        self._own = own
        self._known = known

    def events(self, from_block: int, to_block: int | None = None) -> tuple[Seen, ...]:
        """The registry's events in these blocks, up to the newest by default. Raises ChainUnavailable."""
        last = self._w3.eth.block_number if to_block is None else to_block
        logs = read_logs(self._w3, self._registry, (), from_block, last)
        found = [self._decoded(log) for log in logs]
        own = self._own({each.tx_hash for each in found})
        others = [each.arguments["slaId"] for each in found if each.tx_hash not in own and "slaId" in each.arguments]
        known = self._known(set(others))
        return tuple(
            replace(each, own=True) if each.tx_hash in own else replace(each, concerns=_concerns(each, known))
            for each in found
        )

    def _decoded(self, log: LogReceipt) -> Seen:
        """An event as of somebody else, about nothing of this ledger."""
        name, arguments = self._named(log)
        return Seen(
            name=name,
            arguments=arguments,
            tx_hash="0x" + bytes(log["transactionHash"]).hex(),
            block_number=log["blockNumber"],
            block_hash="0x" + bytes(log["blockHash"]).hex(),
            log_index=log["logIndex"],
            own=False,
            concerns=None,
        )

    def _named(self, log: LogReceipt) -> tuple[str, dict[str, Any]]:
        name = _names().get(bytes(log["topics"][0])) if log["topics"] else None
        if name is None:
            return "unknown", {"data": "0x" + bytes(log["data"]).hex()}
        event = self._contract.events[name]().process_log(log)
        return name, {key: _plain(value) for key, value in event["args"].items()}


def _concerns(event: Seen, known: Collection[str]) -> str | None:
    if event.name in _CHANGES_OF_THE_REGISTRY:
        return "registry"
    if event.arguments.get("slaId") not in known:
        return None
    return "registration" if event.name == "Registered" else "statement"


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
