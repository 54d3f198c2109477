"""What a registry's own logs say, and which of it this ledger did not do.

The tables of a ledger say what it sent. What the chain holds is in its logs: who else recorded a statement of one of
its agreements, took its id, or changed the verifiers. Each log is counted once, by its block's hash and its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from eth_typing import ChecksumAddress
from eth_utils import keccak
from web3 import Web3
from web3.types import LogReceipt

from ledger.anchor.abi import contract_build
from ledger.anchor.logs import read_logs
from ledger.app.chain_port import Seen

_CHANGES_OF_THE_REGISTRY: Final = frozenset(
    {"VerifierAdded", "VerifierRetired", "Paused", "Unpaused", "RoleGranted", "RoleRevoked", "RoleAdminChanged"}
)


class Watcher:
    """Reads the events of one registry: ``own`` knows the transactions of this ledger, ``known`` its agreements.

    Both are asked for 0x and 64 hex digits in lower case.
    """

    def __init__(
        self, w3: Web3, registry: ChecksumAddress, *, own: Callable[[str], bool], known: Callable[[str], bool]
    ) -> None:
        self._w3 = w3
        self._registry = registry
        self._contract = w3.eth.contract(address=registry, abi=contract_build("SlaAnchor").abi)
        self._own = own
        self._known = known

    def events(self, from_block: int, to_block: int | None = None) -> tuple[Seen, ...]:
        """The registry's events in these blocks, up to the newest by default. Raises ChainUnavailable."""
        last = self._w3.eth.block_number if to_block is None else to_block
        logs = read_logs(self._w3, self._registry, (), from_block, last)
        return tuple(self._seen(log) for log in logs)

    def _seen(self, log: LogReceipt) -> Seen:
        name, arguments = self._decoded(log)
        tx_hash = "0x" + bytes(log["transactionHash"]).hex()
        own = self._own(tx_hash)
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
        sla_id = arguments.get("slaId")
        if sla_id is None or not self._known(sla_id):
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
