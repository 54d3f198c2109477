"""Further chains that batch roots are published on, as a file names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledger.domain.record.canonical import parse_json
from ledger.domain.record.event_values import CHAIN_ID
from ledger.domain.schema import Integer, ListOf, Object, OneOf, Text
from ledger.domain.terms.agreement_schema import EVM_ADDRESS
from ledger.errors import SettingInvalid, SlaLedgerError
from ledger.settings import HIGHEST_MAX_FEE_GWEI, MAX_CONFIRMATIONS, ChainSettings
from ledger.settings.reading import is_http_url

SETTING: Final = "SLA_LEDGER_ROOT_CHAINS"
ROOT_CHAINS_FORMAT: Final = "sla-ledger/root-chains/v1"

_MAX_FILE_BYTES: Final = 64 * 1024
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")

ROOT_CHAINS = Object(
    {
        "format": OneOf((ROOT_CHAINS_FORMAT,)),
        "chains": ListOf(
            Object(
                {"chain_id": CHAIN_ID, "rpc": Text(max_length=1000)},
                {
                    "registry": EVM_ADDRESS,
                    "confirmations": Integer(1, MAX_CONFIRMATIONS),
                    "max_fee_gwei": Integer(1, HIGHEST_MAX_FEE_GWEI),
                    "replace_after_blocks": Integer(1, MAX_CONFIRMATIONS),
                    # Who publishes, where it is not the issuer of the home chain.
                    "key_file": Text(max_length=1000),
                    "key_variable": Text(max_length=100),
                    "signer": Object({"rpc": Text(max_length=1000), "address": EVM_ADDRESS}),
                },
            ),
            1,
            50,
        ),
    },
    title="sla-ledger root chains v1",
)

_ACCOUNTS: Final = ("key_file", "key_variable", "signer")


@dataclass(frozen=True, slots=True)
class NamedChain:
    """A further chain as the file names it. ``account`` says who publishes there: empty, the home chain's issuer."""

    chain_id: int
    settings: ChainSettings
    account: Mapping[str, Any]
    folder: Path


def read_root_chains(path: Path) -> tuple[NamedChain, ...]:
    """The chains of a file. Raises ``SettingInvalid`` naming the file, and never a URL: it may hold a key."""
    try:
        document = parse_json(path.read_bytes(), max_bytes=_MAX_FILE_BYTES)
        ROOT_CHAINS.check(document, "")
        found = tuple(_named(each, f"chains[{place}]", path.parent) for place, each in enumerate(document["chains"]))
    except OSError as error:
        raise _refused(path, f"it cannot be read ({error.strerror})") from error
    except (ValueError, SlaLedgerError) as error:
        raise _refused(path, error.message if isinstance(error, SlaLedgerError) else str(error)) from None
    ids = [chain.chain_id for chain in found]
    twice = next((chain_id for chain_id in ids if ids.count(chain_id) > 1), None)
    if twice is not None:
        raise _refused(path, f"it names chain {twice} twice; a chain has one registry here")
    return found


def _named(each: Mapping[str, Any], at: str, folder: Path) -> NamedChain:
    account = {name: each[name] for name in _ACCOUNTS if name in each}
    if len(account) > 1:
        raise ValueError(f"{at} names {' and '.join(account)}; one account publishes, so name one of them")
    if not is_http_url(each["rpc"]):
        raise ValueError(f"{at}.rpc is no URL of a node; write http://HOST:PORT or https://HOST/PATH")
    if "signer" in account and not is_http_url(account["signer"]["rpc"]):
        raise ValueError(f"{at}.signer.rpc is no http:// or https:// URL")
    if "key_variable" in account and _VARIABLE.fullmatch(account["key_variable"]) is None:
        # Not repeated: it may be the key itself.
        raise ValueError(f"{at}.key_variable is no name of an environment variable")
    optional = ("registry", "confirmations", "max_fee_gwei", "replace_after_blocks")
    settings = ChainSettings(each["rpc"], **{name: each[name] for name in optional if name in each})
    return NamedChain(int(each["chain_id"]), settings, account, folder)


def _refused(path: Path, reason: str) -> SettingInvalid:
    return SettingInvalid(f"{path} does not name further chains: {reason}", setting=SETTING)
