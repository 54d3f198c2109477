"""The collectors whose keys a data directory holds."""

from __future__ import annotations

from ledger.app.evidence import Collector, TelemetrySignature
from ledger.attest import babyjub
from ledger.domain.agreement import Agreement
from ledger.domain.settlement import attestability
from ledger.errors import CollectorUnknown
from ledger.wiring.keyring import Keyring

COLLECTOR = "collector"
"""Keys of collectors have this name, or one that begins with it and a hyphen."""


class SigningCollector:
    """``ledger.app.evidence.Collector`` with the secret at hand."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, telemetry_root: int) -> TelemetrySignature:
        signature = babyjub.sign(self._secret, telemetry_root)
        return TelemetrySignature(signature.r8, signature.s)


class KeyringCollectors:
    """``ledger.app.stages.Collectors`` over a keyring, which is looked at again when a key is asked for."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    def of(self, agreement: Agreement) -> Collector:
        for name in self._keyring.names(COLLECTOR):
            secret = self._keyring.secret(name)
            if babyjub.public_key(secret) == agreement.collector_key:
                return SigningCollector(secret)
        raise CollectorUnknown(
            "this ledger seals what the collector reported, so it must hold the collector's key; it holds none with "
            f"x = {agreement.collector_key[0]}. Name a key that `sla-ledger agreements keys` shows, and sign again",
            x=str(agreement.collector_key[0]),
        )

    def require(self, agreement: Agreement) -> None:
        """Refuse an agreement whose statements could not be sealed. Raises ``CollectorUnknown``.

        Where no circuit attests its statements nothing is sealed, and any key will do.
        """
        if not attestability(agreement):
            self.of(agreement)

    def public_keys(self) -> dict[str, tuple[int, int]]:
        """The public keys that an agreement may name, by the names of their files."""
        return {name: babyjub.public_key(self._keyring.secret(name)) for name in self._keyring.names(COLLECTOR)}
