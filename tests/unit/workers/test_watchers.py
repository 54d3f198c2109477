"""Who looks at which chain of a deployment."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from ledger.errors import ChainUnavailable
from ledger.settings import ChainSettings
from ledger.wiring.chain_watching import watchers
from tests.conformance.samples import StepClock
from tests.support.stored import memory_database


class Away:
    """A chain whose node does not answer; ``asked`` is set once it was asked for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.asked = threading.Event()

    @property
    def registrar(self) -> Away:
        return self

    def watched(self) -> NoReturn:
        self.asked.set()
        raise ChainUnavailable(f"{self._name} does not answer", retry_after_s=1)


def services(*, rpc_url: str | None = None, **further: Away) -> Any:
    return SimpleNamespace(
        database=memory_database(),
        clock=StepClock(),
        holder="a",
        chain=Away("home"),
        chain_settings=ChainSettings(rpc_url),
        root_chains={name.removeprefix("chain_"): chain for name, chain in further.items()},
    )


@pytest.mark.parametrize(("rpc_url", "further", "count"), [(None, 0, 0), (None, 1, 1), ("http://node", 2, 3)])
def test_every_chain_of_a_node_is_looked_at_and_the_embedded_one_is_not(
    rpc_url: str | None, further: int, count: int
) -> None:
    named = {f"chain_{n}": Away(str(n)) for n in range(further)}
    assert len(watchers(services(rpc_url=rpc_url, **named), print)) == count


def test_a_node_that_does_not_answer_holds_up_no_other_and_is_told_once() -> None:
    said: list[str] = []
    further = Away("chain 10")
    given = services(rpc_url="http://node", chain_10=further)
    threads = watchers(given, said.append)
    for thread in threads:
        thread.start()
    assert given.chain.asked.wait(10)
    assert further.asked.wait(10)
    for thread in threads:
        thread.stop()
    assert sorted(said) == ["watching the chain: chain 10 does not answer", "watching the chain: home does not answer"]
