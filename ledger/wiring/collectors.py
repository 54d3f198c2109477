"""The collectors whose keys a data directory holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ledger.app.ports.evidence import Collector, TelemetrySignature
from ledger.attest.crypto import babyjub
from ledger.domain.credits.settlement import attestability
from ledger.domain.terms.agreement import Agreement
from ledger.errors import CollectorUnknown
from ledger.wiring.keyring import Keyring
from ledger.wiring.needs import KeyGroup

COLLECTOR = "collector"
"""Keys of collectors have this name, or one that begins with it and a hyphen."""

Points = Mapping[str, tuple[int, int]]


class SigningCollector:
    """``ledger.app.ports.evidence.Collector`` with the secret at hand."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, telemetry_root: int) -> TelemetrySignature:
        signature = babyjub.sign(self._secret, telemetry_root)
        return TelemetrySignature(signature.r8, signature.s)


class KeyringCollectors:
    """``ledger.app.settlement.stages.Collectors`` over a keyring, which is looked at again when a key is asked for.

    A process that is not given their secrets knows of them by ``told``, and seals nothing.
    """

    def __init__(self, keyring: Keyring, told: Callable[[], Points]) -> None:
        self._keyring = keyring
        self._told = told

    def of(self, agreement: Agreement) -> Collector:
        name = self._name(agreement)
        return SigningCollector(self._keyring.secret(name))

    def require(self, agreement: Agreement) -> None:
        """Refuse an agreement whose statements could not be sealed. Raises ``CollectorUnknown``.

        Where no circuit attests its statements nothing is sealed, and any key will do.
        """
        if not attestability(agreement):
            self._name(agreement)

    def public_keys(self) -> Points:
        """The public keys that an agreement may name, by the names of their files."""
        if not self._keyring.opens(KeyGroup.COLLECTOR):
            return self._told()
        names = self._keyring.names(KeyGroup.COLLECTOR)
        return {name: babyjub.public_key(self._keyring.secret(name)) for name in names}

    def _name(self, agreement: Agreement) -> str:
        for name, key in self.public_keys().items():
            if key == agreement.collector_key:
                return name
        raise CollectorUnknown(
            "this ledger seals what the collector reported, so it must hold the collector's key; it holds none with "
            f"x = {agreement.collector_key[0]}. Name a key that `sla-ledger agreements keys` shows, and sign again",
            x=str(agreement.collector_key[0]),
        )
