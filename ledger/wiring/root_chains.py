"""Further chains that batch roots are published on: opened, and what forms the batches of all chains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ledger.app.chain.roots import Batches, RootPolicy
from ledger.app.ports.evidence import Attestor
from ledger.app.ports.store import Database
from ledger.domain.events.batch_events import HOME
from ledger.domain.time.instant import Clock
from ledger.settings import RootSettings
from ledger.wiring.named_chains import SETTING, read_root_chains

if TYPE_CHECKING:
    from ledger.wiring.chain import ChainAccounts
    from ledger.wiring.further_chain import FurtherChain

ROOT_CHAINS_FILE: Final = "root-chains.json"


def open_root_chains(
    folder: Path, database: Database, clock: Clock, accounts: Callable[[], ChainAccounts], environ: Mapping[str, str]
) -> Mapping[str, FurtherChain]:
    """The further chains of a data directory by their ids. Raises ``SettingInvalid``."""
    chosen = environ.get(SETTING)
    path = Path(chosen) if chosen else folder / ROOT_CHAINS_FILE
    if not chosen and not path.exists():
        return {}
    # With it come the libraries of a chain, which take a second to load.
    from ledger.wiring.further_chain import FurtherChain

    named = read_root_chains(path)
    return {str(each.chain_id): FurtherChain(each, database, clock, accounts, environ) for each in named}


def open_batches(
    database: Database, attestor: Attestor, clock: Clock, further: Iterable[str], environ: Mapping[str, str]
) -> Batches:
    """What forms the batches of the home chain and of ``further`` ones. Raises ``SettingInvalid``."""
    settings = RootSettings.read(environ)
    return Batches(database, attestor, clock, (HOME, *further), RootPolicy(settings.after_s, settings.most))
