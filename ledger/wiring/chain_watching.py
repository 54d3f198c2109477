"""The watchers of a deployment's chains: those of nodes are looked at, the embedded one undoes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from ledger.app.chain.watch import ChainWatch
from ledger.app.ports.chain import WatchedChain
from ledger.app.ports.store import Database
from ledger.app.work.repeating import Notify, Repeating
from ledger.domain.time.instant import Clock
from ledger.settings import ChainSettings

if TYPE_CHECKING:
    from ledger.wiring.chain import OpenChain, RpcChain
    from ledger.wiring.further_chain import FurtherChain

POLL_S = 1.0
"""How often it is asked, of the database alone, whether a look is due."""


class Parts(Protocol):
    """What the watchers take of an opened data directory."""

    @property
    def database(self) -> Database: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def holder(self) -> str: ...
    @property
    def chain_settings(self) -> ChainSettings: ...
    @property
    def chain(self) -> OpenChain: ...
    @property
    def root_chains(self) -> Mapping[str, FurtherChain]: ...


def watchers(services: Parts, notify: Notify) -> tuple[Repeating, ...]:
    """A thread for the home chain, where that is a node's, and one for each further chain: none holds up another."""
    every_s = services.chain_settings.watch_s
    return tuple(
        Repeating(
            ChainWatch(services.database, opened, services.clock, services.holder, every_s, notify).look,
            name=f"the watcher of {name}",
            rest_s=POLL_S,
            notify=notify,
        )
        for name, opened in _chains(services)
    )


def _chains(services: Parts) -> Iterator[tuple[str, Callable[[], WatchedChain]]]:
    """Each is opened when its first look is due."""
    if services.chain_settings.rpc_url is not None:
        yield "the home chain", partial(_home, services)
    for chain_id, chain in services.root_chains.items():
        yield f"chain {chain_id}", partial(_further, chain)


def _home(services: Parts) -> WatchedChain:
    return cast("RpcChain", services.chain).watched()


def _further(chain: FurtherChain) -> WatchedChain:
    return chain.registrar.watched()
