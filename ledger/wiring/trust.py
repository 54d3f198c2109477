"""The trust file of a ledger: what a bundle is checked against, as this data directory says it.

Taken from the provider such pins prove nothing about the provider. They become worth something when each was compared
with what was learnt another way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.app.agreements.registering import timeline_of
from ledger.app.log.log_keys import log_keys
from ledger.app.ports.store import Transaction
from ledger.app.settlement.attestations import proved_circuits
from ledger.attest.checks.bundle_schema import TRUST_FORMAT
from ledger.domain.terms.agreement import Agreement
from ledger.merkle.cosignature import WitnessKey
from ledger.merkle.key_history import LogKey
from ledger.wiring.chain_identity import ChainIdentity
from ledger.wiring.services import Services


def trust_of(services: Services, tx: Transaction, sla_id: str, tenant: str) -> dict[str, Any]:
    """The pins for bundles of an agreement of ``tenant``, of its newest terms; raises ``NotFound``.

    ``circuits`` are those whose proofs the ledger holds for this tenant. Witnesses are there where so many must cosign
    what this directory publishes. A node is asked which chain it is of, and nothing is sent to it; raises
    ``ChainUnavailable`` where it does not answer.
    """
    keys = log_keys(tx, services.log_signer.identity)
    vkey = services.log_signer.vkey_at(tx, tx.log.checkpoint_size() or 0)
    witnesses, quorum = services.witnesses
    agreement = timeline_of(tx, sla_id).newest
    trust = trust_document(
        agreement,
        tenant=tenant,
        circuits=proved_circuits(tx),
        log={"origin": services.log_signer.origin, "vkey": vkey},
        chain=services.meant_chain(),
        log_keys=keys,
        witnesses=[witness.key for witness in witnesses],
        quorum=quorum,
    )
    if services.root_chains:
        issuer = agreement.issuer.evm_address
        trust["root_chains"] = [_pin(chain.pin(), issuer) for chain in services.root_chains.values()]
    return trust


def trust_document(
    agreement: Agreement,
    *,
    tenant: str,
    circuits: Sequence[dict[str, Any]],
    log: dict[str, str],
    chain: ChainIdentity,
    log_keys: Sequence[LogKey] = (),
    witnesses: Sequence[WitnessKey] = (),
    quorum: int = 0,
) -> dict[str, Any]:
    """The document (docs/attestation-format.md, section 12)."""
    trust: dict[str, Any] = {
        "format": TRUST_FORMAT,
        "log": log,
        "issuer_ed25519_public_key": agreement.issuer.ed25519_public_key.hex(),
        "customer_ed25519_public_key": agreement.customer.ed25519_public_key.hex(),
        "circuits": list(circuits),
        "chain_id": str(chain.chain_id),
        "registry": chain.registry,
        "tenant": tenant,
    }
    if len(log_keys) > 1:
        trust["log_keys"] = [
            {"vkey": each.key.vkey(), "from_size": each.from_size, "until_size": each.until_size} for each in log_keys
        ]
    if quorum:
        trust["witnesses"] = {"quorum": quorum, "vkeys": [key.vkey() for key in witnesses]}
    return trust


def _pin(chain: Mapping[str, str], issuer: str) -> dict[str, str]:
    """A further chain; who publishes there is said where it is not the agreement's issuer."""
    return {name: value for name, value in chain.items() if (name, value) != ("issuer", issuer)}
