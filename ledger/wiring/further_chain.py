"""A further chain that batch roots are published on, opened.

Nothing is asked of a chain before a root is to be published on it, and one that is away holds up no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from eth_typing import ChecksumAddress
from eth_utils import to_checksum_address

from ledger.anchor.addresses import registry_address
from ledger.anchor.fees import GWEI, FeePolicy
from ledger.anchor.roots import RegistryRoots
from ledger.anchor.rpc import rpc_web3
from ledger.anchor.sender import Sender
from ledger.anchor.signers import RemoteAccount, Signer
from ledger.app.ports.evidence import RootPublisher
from ledger.app.ports.store import Database
from ledger.domain.time.instant import Clock
from ledger.errors import SettingInvalid
from ledger.wiring.chain import ChainAccounts, RpcChain
from ledger.wiring.chain_accounts import account_of_text
from ledger.wiring.named_chains import SETTING, NamedChain

RECEIPT_TIMEOUT_S: Final = 10.0
"""How long one attempt waits for a block: what is not included by then is looked for again later."""


class FurtherChain:
    """One of them. Its deployer and, unless it names another account, its issuer are those of the home chain."""

    def __init__(
        self,
        named: NamedChain,
        database: Database,
        clock: Clock,
        accounts: Callable[[], ChainAccounts],
        environ: Mapping[str, str],
    ) -> None:
        self._named = named
        self._database = database
        self._clock = clock
        self._accounts = accounts
        self._environ = environ

    @property
    def confirmations(self) -> int:
        return self._named.settings.confirmations_on(self._named.chain_id)

    @cached_property
    def roots(self) -> RootPublisher:
        """The batch side of its registry, found anew until it is there.

        Raises ``ChainUnavailable``, ``KeyFileUnusable``, and ``SettingInvalid`` where the node is on another chain, no
        registry stands there, or no key can be had.
        """
        chain_id, settings = self._named.chain_id, self._named.settings
        w3 = rpc_web3(settings.rpc_url or "", setting=f"chain {chain_id} in {SETTING}")
        policy = FeePolicy(settings.max_fee_gwei * GWEI, settings.replace_after_blocks)
        sender = Sender(w3, self._database, fees=policy, receipt_timeout_s=RECEIPT_TIMEOUT_S)
        if sender.chain_id != chain_id:
            raise SettingInvalid(
                f"{SETTING} names a node for chain {chain_id} that is on chain {sender.chain_id}; correct the URL",
                setting=SETTING,
            )
        registry = self._registry
        if not w3.eth.get_code(registry):
            raise SettingInvalid(
                f"no contract is at {registry} on chain {chain_id}; name the registry in {SETTING}, or deploy one "
                f"there with: sla-ledger chain deploy --chain {chain_id} --data DIR",
                setting=SETTING,
            )
        sender.resend()
        return RegistryRoots(w3, sender, registry, issuer=self._issuer(), clock=self._clock)

    def pin(self) -> dict[str, str]:
        """``chain_id``, ``registry`` and ``issuer``, without asking the chain. Raises as ``roots`` does of keys."""
        return {
            "chain_id": str(self._named.chain_id),
            "registry": self._registry,
            "issuer": self._issuer().address,
        }

    @property
    def registrar(self) -> RpcChain:
        """This chain as one that a registry is deployed on, by the deployer of the home chain."""
        return RpcChain(self._database, self._accounts(), self._named.settings, self._clock)

    @property
    def _registry(self) -> ChecksumAddress:
        named = self._named.settings.registry
        return registry_address(self._accounts().deployer.address) if named is None else to_checksum_address(named)

    def _issuer(self) -> Signer:
        account, chain_id = self._named.account, self._named.chain_id
        if "signer" in account:
            return RemoteAccount(account["signer"]["rpc"], to_checksum_address(account["signer"]["address"]))
        if "key_variable" in account:
            name = account["key_variable"]
            return account_of_text(self._environ.get(name, ""), name)
        if "key_file" in account:
            path = self._named.folder / account["key_file"]
            try:
                return account_of_text(path.read_text("ascii").strip(), str(path))
            except (OSError, UnicodeDecodeError) as error:
                raise SettingInvalid(
                    f"the key for chain {chain_id} cannot be read from {path} ({type(error).__name__})", setting=SETTING
                ) from None
        return self._accounts().issuer
