"""The accounts of a deployment on its chain: keys of files, of the environment, or of a signer elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from eth_account import Account
from eth_utils import to_checksum_address

from ledger.anchor.signers import KnownAccount, RemoteAccount, Signer
from ledger.errors import KeyFileUnusable
from ledger.settings import ChainSettings
from ledger.wiring.account_addresses import known_address, secret_of_text
from ledger.wiring.chain import ChainAccounts
from ledger.wiring.keyring import Keyring
from ledger.wiring.needs import ACCOUNT_KEYS, KeyGroup, refuse


def chain_accounts(
    keyring: Keyring, settings: ChainSettings, environ: Mapping[str, str], told: Callable[[], Mapping[str, str]]
) -> ChainAccounts:
    """Deployer and issuer: each of the signer that the settings name, else of the environment, else of ``keyring``.

    A process that is not given the chain's keys can name both and sign with neither: it is ``told`` the addresses of
    those whose keys are in files. Raises ``SettingInvalid`` for a key of the environment that is none,
    ``KeyFileUnusable`` for a file that is.
    """
    of = partial(_account, keyring=keyring, settings=settings, environ=environ)
    if keyring.opens(KeyGroup.CHAIN):
        return ChainAccounts(of("deployer"), of("issuer"))
    refused = partial(refuse, KeyGroup.CHAIN)
    address = partial(known_address, keyring=keyring, settings=settings, environ=environ, told=told)
    return ChainAccounts(*(KnownAccount(partial(address, role), refused) for role in ACCOUNT_KEYS))


def addresses_at_hand(keyring: Keyring, settings: ChainSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """The addresses of those accounts whose keys, or signers, this process is given. Raises ``SettingInvalid``."""
    found: dict[str, str] = {}
    for role in ACCOUNT_KEYS:
        with suppress(KeyFileUnusable):
            found[role] = _account(role, keyring, settings, environ).address
    return found


def _account(role: str, keyring: Keyring, settings: ChainSettings, environ: Mapping[str, str]) -> Signer:
    return _from_settings(role, settings, environ) or _local(keyring.secret(f"{role}-evm"))


def _from_settings(role: str, settings: ChainSettings, environ: Mapping[str, str]) -> Signer | None:
    elsewhere = settings.signed_elsewhere.get(role)
    if elsewhere is not None and settings.signer_url is not None:
        return RemoteAccount(settings.signer_url, to_checksum_address(elsewhere))
    text = environ.get(ACCOUNT_KEYS[role])
    return account_of_text(text, ACCOUNT_KEYS[role]) if text else None


def account_of_text(text: str, name: str) -> Signer:
    """The account of a key in 64 hex digits that ``name`` holds; raises ``SettingInvalid`` and never repeats it."""
    return _local(secret_of_text(text, name))


def _local(secret: bytes) -> Signer:
    account: Signer = Account.from_key(secret)
    return account
