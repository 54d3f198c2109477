"""Who signs transactions: a key in this process, or a signer that holds the key elsewhere.

``RemoteAccount`` speaks ``eth_signTransaction`` by JSON-RPC, as web3signer, clef and development nodes do. What it
answers is used only if it is exactly what was asked for: a signer that is wrong, or somebody else's, could otherwise
have another call sent in the issuer's name. Reference: execution-apis, ``eth_signTransaction``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from eth_account import Account
from eth_typing import ChecksumAddress
from eth_utils import keccak
from web3.types import RPCEndpoint

from ledger.anchor.fees import fields_of
from ledger.anchor.rpc import RpcProvider
from ledger.errors import AnchorRefused, SlaLedgerError

_SETTING: Final = "SLA_LEDGER_SIGNER_RPC"


class Signed(Protocol):
    """A signed transaction: its bytes as they are sent, and their keccak256."""

    @property
    def raw_transaction(self) -> bytes: ...

    @property
    def hash(self) -> bytes: ...


class Signer(Protocol):
    """An account that pays for transactions; an ``eth_account`` account is one."""

    @property
    def address(self) -> ChecksumAddress: ...

    def sign_transaction(self, fields: dict[str, Any], /) -> Signed:
        """Sign EIP-1559 fields. Raises AnchorRefused and ChainUnavailable where that is done elsewhere."""
        ...


@dataclass(frozen=True, slots=True)
class SignedElsewhere:
    """What a remote signer gave, checked."""

    raw_transaction: bytes

    @property
    def hash(self) -> bytes:
        return keccak(self.raw_transaction)


class RemoteAccount:
    """An account whose key a signer at ``url`` holds. The URL may hold a secret and is never shown."""

    def __init__(self, url: str, address: ChecksumAddress, *, timeout_s: float = 5.0) -> None:
        self.address = address
        self._provider = RpcProvider(url, timeout_s=timeout_s, called="the signer", setting=_SETTING)

    def sign_transaction(self, fields: dict[str, Any], /) -> SignedElsewhere:
        """Raises ChainUnavailable where it does not answer or refuses, AnchorRefused where it signs something else."""
        asked = {name: _hex(value) for name, value in fields.items() if name != "accessList"}
        request = RPCEndpoint("eth_signTransaction")
        answer = self._provider.make_request(request, [{**asked, "from": self.address}])["result"]
        # Some give the bytes alone, others beside the fields.
        text = answer.get("raw") if isinstance(answer, Mapping) else answer
        try:
            raw = bytes.fromhex(str(text).removeprefix("0x"))
            signed, sender = fields_of(raw), Account.recover_transaction(raw)
        except Exception:  # what malformed bytes raise depends on where they are malformed
            raise self._refused("gave no signed EIP-1559 transaction") from None
        if sender != self.address:
            raise self._refused(f"signed as {sender}")
        for name in sorted({*signed, *fields} - {"type", "accessList"}):
            if _hex(signed.get(name, b"")) != _hex(fields.get(name, b"")):
                raise self._refused(f"signed another {name}: {_hex(signed.get(name, b''))[:80]}")
        if signed.get("accessList"):
            raise self._refused("added an access list")
        return SignedElsewhere(raw)

    def _refused(self, what: str) -> AnchorRefused:
        return AnchorRefused(
            f"asked to sign a transaction of {self.address}, the signer {what}; nothing was sent. Check that "
            f"{_SETTING} names your own signer and that it holds this account",
            signer=self._provider.host,
            address=self.address,
        )


class KnownAccount:
    """An account whose key is not this process's: it can be named and looked at, and sends nothing.

    ``address`` is asked for when it is needed, and may raise.
    """

    def __init__(self, address: Callable[[], ChecksumAddress], refused: Callable[[], SlaLedgerError]) -> None:
        self._address = address
        self._refused = refused

    @property
    def address(self) -> ChecksumAddress:
        return self._address()

    def sign_transaction(self, fields: dict[str, Any], /) -> Signed:
        """Raises what ``refused`` gives."""
        raise self._refused()


def _hex(value: Any) -> str:
    """A field as JSON-RPC writes it: numbers without leading zeros, bytes and addresses in lower case."""
    if isinstance(value, int):
        return hex(value)
    return value.lower() if isinstance(value, str) else "0x" + bytes(value).hex()
