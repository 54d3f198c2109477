"""Revert data turned into the contract's own error: its name and arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

from eth_abi import decode
from eth_abi.exceptions import DecodingError
from eth_utils import keccak

from ledger.anchor.abi import contract_build
from ledger.errors import AnchorRefused

_BYTES_LITERAL = re.compile(r"""b(['"]).*\1""", re.DOTALL)


def revert_data(error: Exception) -> bytes | None:
    """The bytes a contract reverted with, if the error of web3 or eth-tester carries them."""
    data = getattr(error, "data", None)
    if isinstance(data, str) and data.startswith("0x"):
        return bytes.fromhex(data[2:])
    # eth-tester passes the bytes on only inside its message, as their repr.
    literal = _BYTES_LITERAL.search(str(error))
    if literal is None:
        return None
    try:
        value = ast.literal_eval(literal.group())
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, bytes) else None


def refusal(error: Exception, purpose: str) -> AnchorRefused:
    """What a contract refused, as an error a person can read."""
    data = revert_data(error)
    if data is None or len(data) < 4:
        return AnchorRefused(f"the chain refuses to {purpose}: {error}", purpose=purpose, error=None)
    for name, inputs in _custom_errors():
        signature = f"{name}({','.join(kind for _, kind in inputs)})"
        if keccak(text=signature)[:4] != data[:4]:
            continue
        try:
            values = decode([kind for _, kind in inputs], data[4:])
        except DecodingError:
            break
        arguments = {key: _plain(value) for (key, _), value in zip(inputs, values, strict=True)}
        shown = ", ".join(f"{key} {value}" for key, value in arguments.items())
        return AnchorRefused(
            f"the contract refuses to {purpose}: {name}" + (f" ({shown})" if shown else ""),
            purpose=purpose,
            error=name,
            arguments=arguments,
        )
    return AnchorRefused(
        f"the contract refuses to {purpose} with unknown error data 0x{data.hex()}",
        purpose=purpose,
        error=None,
    )


def _custom_errors() -> Iterable[tuple[str, list[tuple[str, str]]]]:
    entries: list[dict[str, Any]] = contract_build("SlaAnchor").abi + contract_build("Groth16Verifier").abi
    for entry in entries:
        if entry["type"] == "error":
            yield entry["name"], [(field["name"], field["type"]) for field in entry["inputs"]]


def _plain(value: object) -> object:
    return "0x" + value.hex() if isinstance(value, bytes) else value
