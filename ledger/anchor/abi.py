"""The committed build of the contracts: ABI and bytecode, read as data files.

``contracts/build.py`` makes these files; nothing here compiles or needs Node.js.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from ledger.resources import resource_dir

ContractName: TypeAlias = Literal["SlaAnchor", "Groth16Verifier"]


@dataclass(frozen=True, slots=True)
class ContractBuild:
    """A compiled contract: ``abi`` is the JSON ABI, ``bytecode`` the creation code."""

    name: str
    compiler: str
    abi: list[dict[str, Any]]
    bytecode: bytes


@cache
def contract_build(name: ContractName) -> ContractBuild:
    """The committed build of a contract of this project."""
    generated = resource_dir("contracts") / "generated"
    abi = json.loads((generated / "abi" / f"{name}.json").read_text("utf-8"))
    code = json.loads((generated / "bytecode" / f"{name}.json").read_text("utf-8"))
    return ContractBuild(
        name=name,
        compiler=str(code["compiler"]),
        abi=abi["abi"],
        bytecode=bytes.fromhex(str(code["bytecode"]).removeprefix("0x")),
    )
