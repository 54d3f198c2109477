"""A thread that repeats a step, whatever the step does."""

from __future__ import annotations

import threading

from ledger.app.work.repeating import Repeating


def test_it_goes_on_after_a_fault_and_says_so_once() -> None:
    said: list[str] = []
    steps = iter([True, ValueError("broken"), True])
    again = threading.Event()

    def step() -> bool:
        found = next(steps, False)
        if isinstance(found, ValueError):
            raise found
        if not found:
            again.set()
        return found

    thread = Repeating(step, name="the courier", rest_s=0.01, notify=said.append)
    thread.start()
    assert again.wait(10)
    thread.stop()
    assert said == ["the courier goes on after an error: ValueError('broken')", "the courier is at work again"]


def test_one_that_never_started_stops() -> None:
    Repeating(lambda: False, name="the courier", rest_s=1, notify=print).stop()
