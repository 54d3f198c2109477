"""The second signature over the telemetry root: that of the customer's probe, where the terms name one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.app.ports.evidence import TelemetrySignature
from ledger.attest.checks.case import Case, require
from ledger.attest.crypto import babyjub


def telemetry_signature_holds(key: tuple[int, int], telemetry_root: int, signature: TelemetrySignature) -> bool:
    """``ledger.app.settlement.probe.VerifyTelemetry``."""
    return babyjub.verify(key, telemetry_root, babyjub.Signature(signature.r8, signature.s))


def concerns_probe(bundle: Mapping[str, Any]) -> bool:
    """Whether the terms name a probe, or somebody signed as one."""
    sealed = bundle["telemetry"]
    return sealed is not None and ("probe" in bundle["agreement"] or "probe_signature" in sealed)


def not_signed(bundle: Mapping[str, Any]) -> bool:
    """Whether a signature that need not be there is not there."""
    probe = bundle["agreement"].get("probe", {})
    return probe.get("signature") == "shown" and "probe_signature" not in bundle["telemetry"]


def probe_signature(case: Case) -> str:
    """The named probe signed the same root as the collector; it may be missing only where the terms let it."""
    sealed, probe = case.bundle["telemetry"], case.agreement.probe
    signed = sealed.get("probe_signature")
    if probe is None:
        require(signed is None, "somebody signed as a probe, and the terms name none")
        return "the terms name no probe"
    if signed is None:
        require(not probe.required, f"the terms require the signature of the probe {probe.name}, and it is missing")
        return f"the probe {probe.name} did not sign, and the terms do not require it"
    r8 = int(signed["r8"]["x"]), int(signed["r8"]["y"])
    holds = babyjub.verify(probe.key, int(sealed["root"]), babyjub.Signature(r8, int(signed["s"])))
    require(holds, f"the probe {probe.name} did not sign this telemetry root")
    return f"the customer's probe {probe.name} signed the telemetry root, too"
