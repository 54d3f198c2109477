"""Which chain and registry a data directory's proofs are made for, known without working the chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ledger.app.chain.status import ChainStatus
from ledger.app.ports.evidence import Registration
from ledger.app.ports.store import Database

SECP256K1_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


class ChainIdentity(NamedTuple):
    """``registry`` is where the deployer's first transaction puts it, whether or not it was sent yet."""

    chain_id: int
    registry: str

    def digest(self, registration: Registration) -> bytes:
        """``ledger.app.commands.RegistrationSigning``."""
        from ledger.anchor.registration import registration_digest

        return registration_digest(registration, self.chain_id, self.registry)

    def typed_data(self, registration: Registration) -> dict[str, Any]:
        from ledger.anchor.registration import registration_typed_data

        return registration_typed_data(registration, self.chain_id, self.registry)

    def signer(self, digest: bytes, signature: bytes) -> str | None:
        return recovered_signer(digest, signature)


class LazySigning:
    """``ledger.app.commands.RegistrationSigning`` that asks which chain is meant when there is something to sign.

    So every write that has nothing to do with the chain works while its node is away.
    """

    def __init__(self, identity: Callable[[], ChainIdentity]) -> None:
        self._identity = identity

    def digest(self, registration: Registration) -> bytes:
        """Raises what ``identity`` raises, such as ``ChainUnavailable``."""
        return self._identity().digest(registration)

    def typed_data(self, registration: Registration) -> dict[str, Any]:
        """Raises as ``digest`` does."""
        return self._identity().typed_data(registration)

    def signer(self, digest: bytes, signature: bytes) -> str | None:
        return recovered_signer(digest, signature)


def recovered_signer(digest: bytes, signature: bytes) -> str | None:
    """The EIP-55 address that made a signature of 65 bytes; None where nobody can have, or the registry refuses it.

    The registry takes a v of 27 or 28 and the lower s (EIP-2) alone, where eth-account takes more.
    """
    from eth_account import Account

    if len(signature) != 65 or signature[64] not in (27, 28):
        return None
    if int.from_bytes(signature[32:64], "big") > SECP256K1_ORDER // 2:
        return None
    try:
        return str(Account._recover_hash(digest, signature=signature))
    except Exception:  # what a malformed signature raises depends on where it is malformed
        return None


def stored_status(database: Database, identity: ChainIdentity) -> ChainStatus:
    """The transactions as they are stored, by a process that does not work the chain and so replays nothing."""
    from ledger.wiring.chain import SHOWN_TRANSACTIONS, shown_transaction

    with database.read() as tx:
        total = tx.chain.count(identity.chain_id)
        newest = tx.chain.of_chain(identity.chain_id, newest=SHOWN_TRANSACTIONS)
    return {
        "kind": "embedded",
        "chain_id": identity.chain_id,
        "registry": identity.registry,
        "error": None,
        "total": total,
        "transactions": [shown_transaction(row, None) for row in newest],
    }
