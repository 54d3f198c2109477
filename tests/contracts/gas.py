"""What each call of the contracts costs: ``python -m tests.contracts.gas`` writes contracts/gas.json.

On the embedded chain, whose schedule is prague's, with keys, proofs and times that are always the same: a number that
changes has changed for a reason, and ``test_gas`` wants it to be seen.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from eth_utils import keccak
from web3.types import TxReceipt

from ledger.attest.crypto.batch import Batch
from ledger.merkle.checkpoint import Checkpoint
from tests.contracts.ground import DAY, DEPLOYER, ISSUER, SECOND, TERMS_HASH, Ground
from tests.contracts.pairs import Pairs
from tests.contracts.trapdoor import curve_order

PATH = Path(__file__).resolve().parents[2] / "contracts" / "gas.json"
BATCH = 1000
NOTICE = "Written by `python -m tests.contracts.gas`; compared by a test. Gas used by whole transactions."


def measure() -> dict[str, int]:
    """Gas used, by what was done, on a chain of its own."""
    ground = Ground()
    return {
        **_deployments(ground),
        **_terms(ground),
        **_statements(ground),
        **_pairs(ground),
        **_batches(ground),
        **_roles(ground),
    }


def render(gas: dict[str, int]) -> str:
    headlines = {
        "gas_per_statement_1000": max(v for k, v in gas.items() if k.startswith("anchorBatch")) / BATCH,
        "gas_verify_and_record": max(v for k, v in gas.items() if k.startswith("verifyAndRecord,")),
        "gas_two_proofs": max(v for k, v in gas.items() if k.startswith("verifyAndRecordWithIncidents")),
    }
    return json.dumps({"notice": NOTICE, "headlines": headlines, "gas": gas}, indent=1) + "\n"


def _deployments(ground: Ground) -> dict[str, int]:
    with ground.sender._database.read() as tx:
        stored = tx.chain.of_chain(ground.anchor.chain_id)
    names = ("deploy SlaAnchor", "deploy Groth16Verifier", "addVerifier")
    return {name: _used(ground, one.tx_hash) for name, one in zip(names, stored, strict=True)}


def _terms(ground: Ground) -> dict[str, int]:
    one = ground.terms()
    three = ground.terms(circuit_ids=tuple(bytes([n]) * 32 for n in (1, 2, 3)))
    tomorrow = ground.clock_s * SECOND + DAY
    amended = replace(one, terms_version=2, terms_hash=TERMS_HASH + 1, effective_from_ns=tomorrow)
    found = {}
    for name, terms in (("", one), (", three circuits", three), (", amendment", amended)):
        ground.register(terms)
        found["register" + name] = _last(ground)
    return found


def _statements(ground: Ground) -> dict[str, int]:
    def full_width(signals: list[int]) -> None:
        signals[1] = curve_order - 11

    sla = ground.agreement()
    first = ground.statement(sla, alter_signals=full_width)
    second = ground.statement(sla, replaces=first, alter_signals=full_width)
    third = ground.statement(sla, replaces=second, alter_signals=full_width)
    following = ground.statement(sla, start=first.end_ns, alter_signals=full_width)
    statements = {
        "verifyAndRecord, first period": first,
        "verifyAndRecord, first restatement": second,
        "verifyAndRecord, second restatement": third,
        "verifyAndRecord, next period": following,
        "verifyAndRecord, the same again": following,
    }
    return {name: ground.record(s).gas_used for name, s in statements.items()}


def _pairs(ground: Ground) -> dict[str, int]:
    pairs = Pairs(ground)
    first = pairs.statement()
    second = pairs.statement(replaces=first)
    statements = {"first period": first, "first restatement": second, "the same again": second}
    return {f"verifyAndRecordWithIncidents, {name}": ground.record(s).gas_used for name, s in statements.items()}


def _batches(ground: Ground) -> dict[str, int]:
    def anchor(size: int, number: int = 0) -> int:
        batch = Batch.of(keccak(text=f"{size} {number} {n}") for n in range(BATCH))
        state = Checkpoint("ledger.example/gas", size, keccak(text=f"{size}"))
        return _gas(ground.batches.anchor(ISSUER, state, batch.root, now_s=ground.tick()))

    return {
        "anchorBatch, first of a log": anchor(10**6),
        "anchorBatch, next checkpoint": anchor(2 * 10**6),
        "anchorBatch, same checkpoint": anchor(2 * 10**6, 1),
        "anchorBatch, the same again": anchor(2 * 10**6, 1),
    }


def _roles(ground: Ground) -> dict[str, int]:
    return {
        "pause": _gas(ground.send(DEPLOYER, "pause")),
        "unpause": _gas(ground.send(DEPLOYER, "unpause")),
        "retireVerifier": _gas(ground.send(DEPLOYER, "retireVerifier", ground.verifier.circuit_id)),
    }


def _last(ground: Ground) -> int:
    with ground.sender._database.read() as tx:
        return _used(ground, tx.chain.of_chain(ground.anchor.chain_id)[-1].tx_hash)


def _used(ground: Ground, tx_hash: str) -> int:
    receipt = ground.sender.receipt(tx_hash)
    assert receipt is not None
    return _gas(receipt)


def _gas(receipt: TxReceipt) -> int:
    return int(receipt["gasUsed"])


if __name__ == "__main__":
    PATH.write_text(render(measure()), encoding="utf-8")
