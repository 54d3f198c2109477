"""A chain in this process: py-evm behind web3, one block per transaction, nothing left to chance.

For demos, tests and the embedded default. It lives in memory; ``ledger.anchor.replay`` rebuilds it. Genesis,
block times and prevrandao are functions of what is given here, so that the same transactions make the same
block hashes again. Proofs and addresses made for it are worth nothing on any other chain (its id is in ctx).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from eth.abc import ComputationAPI
from eth.vm.forks.prague import PragueVM
from eth.vm.forks.prague.computation import PragueComputation
from eth.vm.forks.prague.state import PragueState
from eth_tester import EthereumTester
from eth_tester.backends.pyevm import PyEVMBackend
from eth_typing import Hash32
from eth_utils import to_canonical_address, to_checksum_address
from web3 import EthereumTesterProvider, Web3
from web3.types import RPCEndpoint, RPCResponse

_ZERO_ADDRESS: Final = bytes(20)
_ECPAIRING: Final = to_canonical_address(f"0x{8:040x}")
_REMEMBERED: Final = 256


@dataclass(frozen=True, slots=True)
class Genesis:
    """What block 0 holds: its time and the balances in wei by EIP-55 address, at least one of them above zero.

    Keep it with the data: a chain is rebuilt from it and the stored transactions.
    """

    timestamp_s: int
    balances_wei: Mapping[str, int]
    gas_limit: int = 30_000_000


class _Remembering:
    """A precompile that answers equal input from memory, for the same gas.

    A pairing takes py-evm most of a second, and every proof comes three times: in the call that tries a recording,
    in the transaction and in its block.
    """

    def __init__(self, precompile: Callable[[ComputationAPI], ComputationAPI]) -> None:
        self._precompile = precompile
        self._answers: dict[bytes, tuple[int, bytes]] = {}

    def __call__(self, computation: ComputationAPI) -> ComputationAPI:
        asked = bytes(computation.msg.data)
        if known := self._answers.get(asked):
            computation.consume_gas(known[0], reason="precompile")
            computation.output = known[1]
            return computation
        before = computation.get_gas_remaining()
        self._precompile(computation)
        if len(self._answers) >= _REMEMBERED:
            self._answers.clear()
        self._answers[asked] = before - computation.get_gas_remaining(), computation.output
        return computation


_PRECOMPILES: Final = dict(PragueComputation.get_precompiles())
_PRECOMPILES[_ECPAIRING] = _Remembering(_PRECOMPILES[_ECPAIRING])


class _Computation(PragueComputation):
    _precompiles = _PRECOMPILES


class _State(PragueState):
    computation_class = _Computation


class _VM(PragueVM):
    _state_class = _State


class _Backend(PyEVMBackend):  # type: ignore[misc]  # eth-tester has no types
    """PyEVMBackend without its two sources of chance: the clock and random prevrandao."""

    def mine_blocks(self, num_blocks: int = 1, coinbase: bytes = _ZERO_ADDRESS) -> tuple[Hash32, ...]:
        mined = []
        for _ in range(num_blocks):
            parent = self.chain.header.parent_hash
            mix_hash = hashlib.sha256(b"sla-ledger/embedded-prevrandao/v1" + parent).digest()
            block = self.chain.mine_block(coinbase=coinbase, mix_hash=mix_hash, blob_gas_used=0)
            mined.append(block.hash)
        return tuple(mined)

    def pin_block_time(self, timestamp_s: int) -> int:
        header = self.chain.header
        parent = self.chain.get_canonical_block_header_by_number(header.block_number - 1)
        pinned = max(timestamp_s, int(parent.timestamp) + 1)
        self.chain.header = header.copy(timestamp=pinned)
        return pinned


class _Provider(EthereumTesterProvider):
    """One request at a time: executing a transaction and mining its block are two steps in eth-tester."""

    def __init__(self, backend: _Backend) -> None:
        super().__init__(EthereumTester(backend))
        self._one_at_a_time = threading.RLock()

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        with self._one_at_a_time:
            return super().make_request(method, params)


class EmbeddedChain:
    """A fresh chain from a genesis. ``w3`` is an ordinary web3 object on it."""

    def __init__(self, genesis: Genesis) -> None:
        state: dict[bytes, dict[str, Any]] = {
            to_canonical_address(address): {"balance": wei, "nonce": 0, "code": b"", "storage": {}}
            for address, wei in sorted(genesis.balances_wei.items())
        }
        parameters: dict[str, Any] = PyEVMBackend.generate_genesis_params(
            overrides={"timestamp": genesis.timestamp_s, "gas_limit": genesis.gas_limit}
        )
        self.genesis = genesis
        self._backend = _Backend(genesis_parameters=parameters, genesis_state=state, vm_configuration=((0, _VM),))
        self.w3 = Web3(_Provider(self._backend))
        # eth-tester charges calls for gas too, so reads are made in the name of someone who has some.
        self.w3.eth.default_account = to_checksum_address(max(state, key=lambda a: state[a]["balance"]))
        # The pending block would otherwise carry the clock's time from the start.
        self.pin_block_time(genesis.timestamp_s + 1)

    @property
    def chain_id(self) -> int:
        """The id that signatures, ctx and the key guard use."""
        return self.w3.eth.chain_id

    def pin_block_time(self, timestamp_s: int) -> int:
        """Give the next block this time, or one second after its parent if that is later; returns which."""
        return self._backend.pin_block_time(timestamp_s)
