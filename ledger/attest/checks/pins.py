"""What a verifier's trust file pins of a bundle: whose log, keys, circuits, chain and registry it must be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ledger.attest.checks.report import Line, Outcome


def proofs_of(bundle: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The proof, and behind it the second one where there is one."""
    return [proof for proof in (bundle["proof"], bundle.get("incident_proof")) if proof is not None]


def pin_lines(bundle: Mapping[str, Any], trust: Mapping[str, Any] | None) -> Iterator[Line]:
    """One line for each value that only a pin can give meaning."""
    parties, proof, context = bundle["agreement"]["parties"], bundle["proof"], bundle["context"]
    # The first line of a checkpoint is its origin; the check "log checkpoint" has parsed it with the rest.
    origin = bundle["log"]["checkpoint"].partition("\n")[0]
    found: dict[str, Any] = {
        "log": {"origin": origin, "vkey": bundle["log"]["vkey"]},
        "issuer": parties["issuer"]["ed25519_public_key"],
        "customer": parties["customer"]["ed25519_public_key"],
    }
    if proof is not None and context is not None:
        for name, each in zip(("circuit", "incident circuit"), proofs_of(bundle), strict=False):
            manifest = each["manifest"]
            found[name] = {"circuit_id": manifest["circuit_id"], "dev_unsafe": manifest["dev_unsafe"]}
        found |= {
            "chain": context["chain_id"],
            "registry": context["registry"],
        }
    if trust is not None and "tenant" in trust:
        found["tenant"] = bundle["statement"]["header"]["tenant"]
    for name, value in found.items():
        if trust is None:
            yield Line(f"pin: {name}", Outcome.ASSUMED, "nothing is pinned; anyone could have made this")
            continue
        pinned = _pinned(trust, _size(bundle))[name]
        held = value in pinned
        known = ", ".join(_shown(pin) for pin in pinned) or "none"
        detail = "as pinned" if held else f"{_shown(value)} is not pinned; the trust file has {known}"
        yield Line(f"pin: {name}", Outcome.PASS if held else Outcome.FAIL, detail)


def _pinned(trust: Mapping[str, Any], size: int) -> dict[str, list[Any]]:
    return {
        "log": pinned_logs(trust, size),
        "issuer": [trust["issuer_ed25519_public_key"]],
        "customer": [trust["customer_ed25519_public_key"]],
        **{name: [dict(circuit) for circuit in trust["circuits"]] for name in ("circuit", "incident circuit")},
        "chain": [trust["chain_id"]],
        "registry": [trust["registry"]],
        "tenant": [trust.get("tenant")],
    }


def pinned_logs(trust: Mapping[str, Any], size: int) -> list[dict[str, str]]:
    """The log with each key that counts for a checkpoint of ``size``; one in ``log_keys`` counts for its sizes only."""
    origin, present = trust["log"]["origin"], trust["log"]["vkey"]
    ranges = trust.get("log_keys", ())
    vkeys = [
        each["vkey"]
        for each in ranges
        if each["from_size"] <= size and (each["until_size"] is None or size < each["until_size"])
    ]
    if present not in {each["vkey"] for each in ranges}:
        vkeys.insert(0, present)
    return [{"origin": origin, "vkey": vkey} for vkey in vkeys]


def _size(bundle: Mapping[str, Any]) -> int:
    """The size that the bundle's checkpoint states; -1, which no key covers, where it states none."""
    line = bundle["log"]["checkpoint"].split("\n", 2)[1:2]
    return int(line[0]) if line and re.fullmatch(r"0|[1-9][0-9]{0,18}", line[0], re.ASCII) else -1


def _shown(value: Any) -> str:
    if isinstance(value, dict) and "circuit_id" in value:
        return f"{value['circuit_id'][:16]}... (dev_unsafe {str(value['dev_unsafe']).lower()})"
    text = f"{value['origin']} with {value['vkey']}" if isinstance(value, dict) else str(value)
    return text if len(text) <= 96 else text[:93] + "..."
