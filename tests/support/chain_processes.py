"""Workers of a chain as processes of their own, which die by SIGKILL at a step of their way."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ledger.anchor.rpc import RpcProvider
from ledger.app.ports.store import Database, Transaction
from ledger.errors import NotYet
from ledger.wiring.chain import RpcChain
from tests.support.settled import Settled

OpenChain = Callable[[Database], RpcChain]


class Mortal:
    """Counts steps, before and after every request to the node and every commit, and dies at one of them."""

    def __init__(self, dies_at: int | None) -> None:
        self._dies_at = dies_at
        self._steps = 0

    def step(self) -> None:
        self._steps += 1
        if self._steps == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self, database: Any) -> None:
        """Count this process's requests and the database's commits from now on."""
        make_request, begin = RpcProvider.make_request, database.begin

        def counted_request(provider: RpcProvider, method: Any, params: Any) -> Any:
            self.step()
            answer = make_request(provider, method, params)
            self.step()
            return answer

        @contextmanager
        def counted_begin() -> Iterator[Transaction]:
            with begin() as tx:
                yield tx
                self.step()
            self.step()

        RpcProvider.make_request = counted_request  # type: ignore[method-assign]
        database.begin = counted_begin


def work_in_child(
    open_database: Callable[[], Database],
    open_chain: OpenChain,
    proofs: Sequence[str],
    *,
    confirmations: int,
    dies_at: int | None,
) -> int:
    """Fork a worker that anchors and confirms these statements in order, as often as it takes; its process id."""

    def work(database: Database) -> None:
        settled, chain = Settled(database), open_chain(database)
        for proof in proofs:
            _work(settled, chain, proof, confirmations)

    return in_child(open_database, work, dies_at=dies_at)


def in_child(open_database: Callable[[], Database], work: Callable[[Database], None], *, dies_at: int | None) -> int:
    """Fork a process that does some work on a database and dies at a step of it; its process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        database = open_database()
        Mortal(dies_at).arm(database)
        work(database)
        status = 0
    except BaseException:
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(status)


def ended(child: int) -> int:
    """Wait for a child: 0 where it did all its work, the signal that killed it otherwise."""
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    if os.WEXITSTATUS(status) != 0:
        raise AssertionError("a worker failed; its error is on stderr")
    return 0


def _work(settled: Settled, chain: RpcChain, proof: str, confirmations: int) -> None:
    for _ in range(100):
        try:
            settled.anchor(proof, chain.anchor)
            settled.confirm(proof, chain.anchor, confirmations)
        except NotYet:
            continue
        return
    raise AssertionError(f"{proof} never came to an end")
