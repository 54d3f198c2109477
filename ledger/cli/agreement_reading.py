"""Reading an agreement for a command, with the one rule on it that needs the attestation's curve."""

from __future__ import annotations

from pathlib import Path

from ledger.attest.babyjub import is_public_key
from ledger.domain.agreement import Agreement
from ledger.domain.schema import fail
from ledger.ingest.agreement_yaml import load_agreement


def read_agreement(path: Path) -> Agreement:
    """A valid agreement whose collector has a key; raises ``DocumentInvalid`` with file, line and field."""
    return load_agreement(path, check=_require_collector_key)


def _require_collector_key(agreement: Agreement) -> None:
    if not is_public_key(agreement.collector_key):
        raise fail(
            "collector.babyjubjub_public_key",
            "is no Baby Jubjub public key: x and y must lie on the curve, in its prime-order subgroup, and not be the "
            "identity; copy both again from the collector",
        )
