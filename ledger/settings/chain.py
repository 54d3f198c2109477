"""Where statements are anchored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ledger.domain.attested import TEST_CHAIN_IDS
from ledger.errors import SettingInvalid
from ledger.settings.reading import is_http_url

DEFAULT_CONFIRMATIONS = 12
DEFAULT_MAX_FEE_GWEI = 500
DEFAULT_REPLACE_AFTER_BLOCKS = 12
DEFAULT_WATCH_S = 15
MAX_CONFIRMATIONS = 10_000
LONGEST_WATCH_S = 3600
HIGHEST_MAX_FEE_GWEI = 1_000_000
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_DIGITS = re.compile(r"[0-9]{1,7}")


@dataclass(frozen=True, slots=True)
class ChainSettings:
    """Where statements are anchored: the embedded chain without ``rpc_url``, else the chain of that node.

    ``rpc_url`` may hold a key, so it is never shown. ``registry`` is the address of a deployed registry; None: that
    of the deployer's key. ``confirmations`` None takes ``confirmations_on`` the chain. No transaction offers more than
    ``max_fee_gwei`` for a unit of gas; one that missed ``replace_after_blocks`` blocks is replaced by a dearer one.
    ``watch_s`` is how many seconds lie between two looks at the chain while something is on its way.
    ``signed_elsewhere`` has the addresses of ``deployer`` and ``issuer`` whose keys the signer at ``signer_url`` holds.
    """

    rpc_url: str | None = field(default=None, repr=False)
    registry: str | None = None
    confirmations: int | None = None
    max_fee_gwei: int = DEFAULT_MAX_FEE_GWEI
    replace_after_blocks: int = DEFAULT_REPLACE_AFTER_BLOCKS
    signer_url: str | None = field(default=None, repr=False)
    signed_elsewhere: Mapping[str, str] = field(default_factory=dict)
    watch_s: int = DEFAULT_WATCH_S

    def confirmations_on(self, chain_id: int) -> int:
        """Blocks that must stand, the transaction's own included, before an anchor counts as confirmed.

        A local node makes a block when something is sent and not before, so there the own block is enough.
        """
        if self.confirmations is not None:
            return self.confirmations
        return 1 if chain_id in TEST_CHAIN_IDS else DEFAULT_CONFIRMATIONS


def read_chain_settings(environ: Mapping[str, str]) -> ChainSettings:
    """Settings of the chain from the environment; raises ``SettingInvalid`` naming the setting that is wrong."""
    url = environ.get("SLA_LEDGER_CHAIN_RPC") or None
    if url is not None and not is_http_url(url):
        # The URL is not repeated: it may hold a key.
        raise SettingInvalid(
            "SLA_LEDGER_CHAIN_RPC is no URL of a node; write http://HOST:PORT or https://HOST/PATH, or leave it out "
            "for the embedded chain",
            setting="SLA_LEDGER_CHAIN_RPC",
        )
    registry = environ.get("SLA_LEDGER_REGISTRY") or None
    if registry is not None and _ADDRESS.fullmatch(registry) is None:
        raise SettingInvalid(
            f"SLA_LEDGER_REGISTRY={registry[:50]!r} is no address; write 0x and 40 hex digits",
            setting="SLA_LEDGER_REGISTRY",
        )
    signer, addresses = _read_signer(environ, url)
    confirmations = _count(environ, "SLA_LEDGER_CONFIRMATIONS", MAX_CONFIRMATIONS)
    max_fee = _count(environ, "SLA_LEDGER_MAX_FEE_GWEI", HIGHEST_MAX_FEE_GWEI)
    replace_after = _count(environ, "SLA_LEDGER_REPLACE_AFTER_BLOCKS", MAX_CONFIRMATIONS)
    watch = _count(environ, "SLA_LEDGER_CHAIN_WATCH_S", LONGEST_WATCH_S)
    if url is None and (registry or confirmations or max_fee or replace_after or watch):
        raise SettingInvalid(
            "SLA_LEDGER_REGISTRY, SLA_LEDGER_CONFIRMATIONS, SLA_LEDGER_MAX_FEE_GWEI, "
            "SLA_LEDGER_REPLACE_AFTER_BLOCKS and SLA_LEDGER_CHAIN_WATCH_S are about the chain of a node: name it by "
            "SLA_LEDGER_CHAIN_RPC as well, or leave them out",
            setting="SLA_LEDGER_CHAIN_RPC",
        )
    return ChainSettings(
        url,
        registry,
        confirmations,
        max_fee or DEFAULT_MAX_FEE_GWEI,
        replace_after or DEFAULT_REPLACE_AFTER_BLOCKS,
        signer,
        addresses,
        watch or DEFAULT_WATCH_S,
    )


def _read_signer(environ: Mapping[str, str], node: str | None) -> tuple[str | None, Mapping[str, str]]:
    url = environ.get("SLA_LEDGER_SIGNER_RPC") or None
    names = {"deployer": "SLA_LEDGER_SIGNER_DEPLOYER", "issuer": "SLA_LEDGER_SIGNER_ISSUER"}
    addresses = {role: environ[name] for role, name in names.items() if environ.get(name)}
    for role, address in addresses.items():
        if _ADDRESS.fullmatch(address) is None:
            raise SettingInvalid(
                f"{names[role]}={address[:50]!r} is no address; write 0x and 40 hex digits", setting=names[role]
            )
    if (url is None and addresses) or (url is not None and not (is_http_url(url) and addresses and node)):
        raise SettingInvalid(
            "a signer needs SLA_LEDGER_SIGNER_RPC, the http:// or https:// URL it is asked at, at least one of "
            f"{' and '.join(names.values())}, whose key it holds, and SLA_LEDGER_CHAIN_RPC: set all of them, or none",
            setting="SLA_LEDGER_SIGNER_RPC",
        )
    return url, addresses


def _count(environ: Mapping[str, str], name: str, highest: int) -> int | None:
    """A whole number from 1 to ``highest``; None where the setting is left out."""
    text = environ.get(name) or None
    if text is None:
        return None
    if not (_DIGITS.fullmatch(text) and 1 <= int(text) <= highest):
        raise SettingInvalid(f"{name}={text[:20]!r} is no number from 1 to {highest}", setting=name)
    return int(text)
