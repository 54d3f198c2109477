"""The dispatcher signs when idle, and does not press witnesses that refuse."""

from __future__ import annotations

import threading
import time

from ledger.errors import WitnessesUnavailable
from ledger.wiring.dispatchers import Dispatcher


def test_it_signs_when_the_work_is_done_and_backs_off_when_that_fails() -> None:
    done: list[str] = []
    said: list[str] = []
    work = iter([True, True])
    failed = threading.Event()

    def run_once() -> bool:
        done.append("work")
        return next(work, False)

    def sign() -> None:
        done.append("sign")
        failed.set()
        raise WitnessesUnavailable("0 of 1 required witnesses cosigned")

    dispatcher = Dispatcher(run_once, sign, said.append)
    dispatcher.start()
    assert failed.wait(10)
    give_up = time.monotonic() + 30
    while done.count("work") <= 4 and time.monotonic() < give_up:
        time.sleep(0.01)
    dispatcher.stop()
    assert done[:4] == ["work", "work", "work", "sign"]
    assert done.count("sign") == 1
    assert done.count("work") > 4
    assert said == ["the dispatcher goes on after an error: 0 of 1 required witnesses cosigned"]
