"""The parties of a demonstration: one machine holds the keys that issuer, customer and collector would hold apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ledger.attest.crypto import babyjub
from ledger.domain.terms.agreement import Agreement
from ledger.wiring.collectors import COLLECTOR
from ledger.wiring.keyring import Keyring

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount


class DemoParties:
    """Issuer, customer and collector, with keys from a data directory's keyring."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        for name in ("customer", "customer-evm", COLLECTOR):
            keyring.make(name)

    def with_keys(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """An agreement document with these parties' keys in place of its own, unsigned."""
        x, y = babyjub.public_key(self._keyring.secret(COLLECTOR))
        parties = {name: {**document["parties"][name], **self._keys(name)} for name in ("issuer", "customer")}
        collector = {**document["collector"], "babyjubjub_public_key": {"x": str(x), "y": str(y)}}
        unsigned = {key: value for key, value in document.items() if key != "signatures"}
        return {**unsigned, "parties": parties, "collector": collector}

    def signed(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The document with both parties' signatures; raises ``DocumentInvalid`` where it is no agreement."""
        message = Agreement.from_document(document).signing_message
        keys = {name: self._keyring.signing_key(name) for name in ("issuer", "customer")}
        return {**document, "signatures": {name: key.sign(message).hex() for name, key in keys.items()}}

    def sign_registration(self, digest: bytes) -> bytes:
        """The customer's signature over a registration's EIP-712 digest: 65 bytes r, s, v."""
        from eth_typing import Hash32

        return bytes(self._account("customer").unsafe_sign_hash(Hash32(digest)).signature)

    def _keys(self, name: str) -> dict[str, str]:
        return {
            "ed25519_public_key": self._keyring.signing_key(name).public_key.hex(),
            "evm_address": str(self._account(name).address),
        }

    def _account(self, name: str) -> LocalAccount:
        # Loaded here, because it takes most of a second and few commands sign.
        from eth_account import Account

        account: LocalAccount = Account.from_key(self._keyring.secret(f"{name}-evm"))
        return account
