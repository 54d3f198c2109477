"""The watchers of a deployment's chains: those of nodes are looked at, the embedded one undoes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ledger.app.chain_watch import ChainWatch
from ledger.app.ports import Database
from ledger.domain.instant import Clock
from ledger.errors import ChainUnavailable
from ledger.settings import ChainSettings

if TYPE_CHECKING:
    from ledger.anchor.watched import WatchedRegistry
    from ledger.wiring.chain import OpenChain

POLL_S = 1.0
"""How often it is asked, of the database alone, whether a look is due."""


class ChainWatches:
    """Makes the looks that are due, one chain after the other."""

    def __init__(self, watches: Sequence[ChainWatch]) -> None:
        self._watches = tuple(watches)

    def __bool__(self) -> bool:
        return bool(self._watches)

    def look(self) -> bool:
        """False: there is nothing to hurry for."""
        for watch in self._watches:
            watch.look()
        return False


def chain_watches(
    database: Database,
    chain: Callable[[], OpenChain],
    settings: ChainSettings,
    clock: Clock,
    *,
    holder: str,
    notify: Callable[[str], None],
) -> ChainWatches:
    """The watcher of the home chain where that is a node's. ``chain`` opens it when its first look is due."""
    if settings.rpc_url is None:
        return ChainWatches(())

    def watched() -> WatchedRegistry:
        from ledger.wiring.chain import RpcChain

        opened = chain()
        if not isinstance(opened, RpcChain):
            raise ChainUnavailable("the chain that is open is not a node's", retry_after_s=POLL_S)
        return opened.watched()

    return ChainWatches([ChainWatch(database, watched, clock, holder, settings.watch_s, notify)])
