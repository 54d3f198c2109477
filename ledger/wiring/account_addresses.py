"""The addresses of a deployment's accounts, for processes that send nothing, without the libraries of the chain."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from eth_typing import ChecksumAddress
from eth_utils import to_checksum_address

from ledger.anchor.addresses import account_address, registry_address
from ledger.domain.attested import EMBEDDED_CHAIN_ID
from ledger.errors import SettingInvalid
from ledger.settings import ChainSettings
from ledger.wiring.chain_identity import SECP256K1_ORDER, ChainIdentity
from ledger.wiring.keyring import Keyring
from ledger.wiring.needs import ACCOUNT_KEYS, KeyGroup

_KEY: Final = re.compile(r"(0x)?[0-9a-fA-F]{64}")


def known_address(
    role: str,
    keyring: Keyring,
    settings: ChainSettings,
    environ: Mapping[str, str],
    told: Callable[[], Mapping[str, str]],
) -> ChecksumAddress:
    """Of the signer that the settings name, else of the environment's key, else of ``keyring``'s.

    A process that is not given the chain's keys is ``told`` the addresses of those whose keys are in files. Raises
    ``SettingInvalid`` and ``KeyFileUnusable``.
    """
    elsewhere = settings.signed_elsewhere.get(role)
    if elsewhere is not None and settings.signer_url is not None:
        return to_checksum_address(elsewhere)
    if text := environ.get(ACCOUNT_KEYS[role]):
        return account_address(secret_of_text(text, ACCOUNT_KEYS[role]))
    if keyring.opens(KeyGroup.CHAIN):
        return account_address(keyring.secret(f"{role}-evm"))
    addresses = told()
    if role not in addresses:
        raise SettingInvalid(
            f"nothing tells this process the address of the {role}: run `sla-ledger init --data DIR` with the settings "
            f"of the process that has its key ({ACCOUNT_KEYS[role]}, or a signer)",
            setting=ACCOUNT_KEYS[role],
        )
    return to_checksum_address(addresses[role])


def embedded_identity(
    keyring: Keyring, settings: ChainSettings, environ: Mapping[str, str], told: Callable[[], Mapping[str, str]]
) -> ChainIdentity:
    """The embedded chain and the registry of its deployer; raises as ``known_address`` does."""
    return ChainIdentity(
        EMBEDDED_CHAIN_ID, registry_address(known_address("deployer", keyring, settings, environ, told))
    )


def secret_of_text(text: str, name: str) -> bytes:
    """The key in 64 hex digits that ``name`` holds; raises ``SettingInvalid`` and never repeats it."""
    if _KEY.fullmatch(text) is None:
        # It may be a key with one digit missing.
        raise SettingInvalid(f"{name} is no key; write 64 hex digits, or leave it out", setting=name)
    secret = bytes.fromhex(text.removeprefix("0x"))
    if not 0 < int.from_bytes(secret, "big") < SECP256K1_ORDER:
        raise SettingInvalid(f"{name} is no key of secp256k1; make another one", setting=name)
    return secret
