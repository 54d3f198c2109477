"""What holders of a registry's roles do: retire a verifier for good, pause, grant and revoke.

The chain is asked before anything is signed: one who lacks a role is told who holds it, and the same again sends
nothing. Holders come from the registry's own logs: the contract keeps no list.
Reference: OpenZeppelin Contracts 5, AccessControl and Pausable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from eth_utils import keccak, to_checksum_address
from web3 import Web3
from web3.types import TxReceipt

from ledger.anchor.abi import contract_build
from ledger.anchor.chain import AnchorChain, read_registry
from ledger.anchor.logs import read_logs
from ledger.anchor.sender import Call, Sender
from ledger.anchor.signers import Signer
from ledger.domain.time.instant import SECOND_NS, Clock
from ledger.errors import AnchorRefused

ADMIN: Final = "admin"
REGISTRAR: Final = "registrar"
PAUSER: Final = "pauser"
ROLES: Final = {ADMIN: bytes(32), REGISTRAR: keccak(text="REGISTRAR_ROLE"), PAUSER: keccak(text="PAUSER_ROLE")}

_GAS: Final = 150_000


@dataclass(frozen=True, slots=True)
class VerifierState:
    """A verifier that was added: ``retired_at_s`` (Unix seconds) is None while it is in use.

    ``code_unchanged``: the code at its address has the hash that it was added with; else the registry asks it no more.
    """

    circuit_id: bytes
    verifier: str
    added_in_block: int
    retired_at_s: int | None
    code_unchanged: bool


@dataclass(frozen=True, slots=True)
class Done:
    """What was asked for stands. ``tx_hash`` is None where it stood before and nothing was sent."""

    tx_hash: str | None


class Administration:
    """Deeds of ``account`` on one registry. All raise AnchorRefused and ChainUnavailable."""

    def __init__(self, w3: Web3, sender: Sender, chain: AnchorChain, account: Signer, clock: Clock) -> None:
        self._w3 = w3
        self._sender = sender
        self._chain = chain
        self._registry = chain.registry
        self._account = account
        self._clock = clock
        self._contract = w3.eth.contract(address=chain.registry, abi=contract_build("SlaAnchor").abi)

    @property
    def location(self) -> tuple[int, str]:
        """The chain's id and the registry's address."""
        return self._chain.chain_id, self._registry

    def verifiers(self) -> tuple[VerifierState, ...]:
        """Every verifier of the registry, in the order in which they were added."""
        return tuple(
            self._verifier(bytes(each["args"]["circuitId"]), each["blockNumber"])
            for each in self._logs("VerifierAdded")
        )

    def paused(self) -> bool:
        """Whether registering and publishing are held up; recording never is."""
        return bool(self._call("paused"))

    def holders(self) -> dict[str, tuple[str, ...]]:
        """Who holds each role, by name, in the order in which they were granted it."""
        held: dict[bytes, dict[str, None]] = {role: {} for role in ROLES.values()}
        logs = [*self._logs("RoleGranted"), *self._logs("RoleRevoked")]
        for each in sorted(logs, key=lambda log: (log["blockNumber"], log["logIndex"])):
            of_role = held.setdefault(bytes(each["args"]["role"]), {})
            account = str(each["args"]["account"])
            if each["event"] == "RoleGranted":
                of_role[account] = None
            else:
                of_role.pop(account, None)
        return {name: tuple(held[role]) for name, role in ROLES.items()}

    def retire(self, circuit_id: bytes) -> Done:
        """Retire the verifier of a circuit, for good. Raises NotFound for a circuit without one."""
        if self._chain.verifier_of(circuit_id).retired_at_s is not None:
            return Done(None)
        self._require(REGISTRAR, "retire the verifier")
        effect = f"{self._registry}/retire/{circuit_id.hex()}"
        receipt = self._chain.retire_verifier(self._account, circuit_id, now_s=self._now_s(), effect=effect)
        return _sent(receipt)

    def pause(self) -> Done:
        """Hold up registering and publishing; recording, with which a party disputes, goes on."""
        return Done(None) if self.paused() else self._do(PAUSER, "pause the registry", "pause")

    def unpause(self) -> Done:
        """End a pause."""
        return self._do(PAUSER, "unpause the registry", "unpause") if self.paused() else Done(None)

    def grant(self, role: str, account: str) -> Done:
        """Let an account hold a role."""
        if self._call("hasRole", ROLES[role], to_checksum_address(account)):
            return Done(None)
        return self._do(ADMIN, f"grant {role}", "grantRole", ROLES[role], to_checksum_address(account))

    def revoke(self, role: str, account: str) -> Done:
        """Take a role from an account; the only admin stays one, or nobody could ever grant a role again."""
        address = to_checksum_address(account)
        if not self._call("hasRole", ROLES[role], address):
            return Done(None)
        if role == ADMIN and self.holders()[ADMIN] == (address,):
            raise AnchorRefused(
                f"{address} is the registry's only admin; grant admin to another account first, or nobody could ever "
                "change a role again",
                registry=self._registry,
                account=address,
            )
        return self._do(ADMIN, f"revoke {role}", "revokeRole", ROLES[role], address)

    def _do(self, role: str, purpose: str, function: str, *args: object) -> Done:
        self._require(role, purpose)
        data = bytes.fromhex(self._contract.encode_abi(function, args=list(args))[2:])
        call = Call(self._chain.registry, data, _GAS, purpose)
        return _sent(self._sender.send(self._account, call, now_s=self._now_s()))

    def _require(self, role: str, purpose: str) -> None:
        if self._call("hasRole", ROLES[role], self._account.address):
            return
        holders = self.holders()[role]
        raise AnchorRefused(
            f"{self._account.address} may not {purpose}: on the registry {self._registry} that takes the role {role}, "
            f"held by {', '.join(holders) or 'nobody'}. Use that account's key as the deployer's, or let the admin "
            "grant it",
            registry=self._registry,
            account=self._account.address,
            role=role,
            holders=list(holders),
        )

    def _verifier(self, circuit_id: bytes, block: int) -> VerifierState:
        found = self._chain.verifier_of(circuit_id)
        unchanged = keccak(self._w3.eth.get_code(to_checksum_address(found.address))) == found.code_hash
        return VerifierState(circuit_id, found.address, block, found.retired_at_s, unchanged)

    def _logs(self, name: str) -> list[Any]:
        event = self._contract.events[name]()
        logs = read_logs(self._w3, self._chain.registry, [event.topic], 0, self._w3.eth.block_number)
        return [event.process_log(log) for log in logs]

    def _call(self, function: str, *args: object) -> Any:
        return read_registry(self._contract, self._sender.chain_id, function, *args)

    def _now_s(self) -> int:
        return self._clock.now_ns() // SECOND_NS


def _sent(receipt: TxReceipt) -> Done:
    return Done("0x" + bytes(receipt["transactionHash"]).hex())
