"""Reads that are shared, and what nobody may notice of it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from api.shared_reads import SharedReads


class Counter:
    """Gives 1, 2, 3 ...; a read ends when the test lets it."""

    def __init__(self) -> None:
        self.reads = 0
        self.go_on = threading.Semaphore(0)

    def read(self) -> int:
        self.reads += 1
        number = self.reads
        self.go_on.acquire()
        return number


async def started(counter: Counter, reads: int) -> None:
    while counter.reads < reads:  # noqa: ASYNC110 - a thread counts them
        await asyncio.sleep(0.001)


def test_those_who_ask_together_share_a_read_that_begins_after_they_asked() -> None:
    async def scenario() -> list[int]:
        counter = Counter()
        shared = SharedReads(counter.read)
        early = asyncio.create_task(shared.get())
        await started(counter, 1)
        # The read that runs began before these asked: it may miss what they wrote.
        late = [asyncio.create_task(shared.get()) for _ in range(50)]
        await asyncio.sleep(0)
        counter.go_on.release(2)
        return [await early, *(await asyncio.gather(*late))]

    assert asyncio.run(scenario()) == [1, *[2] * 50]


def test_who_goes_away_does_not_take_the_read_from_the_others() -> None:
    async def scenario() -> int:
        counter = Counter()
        shared = SharedReads(counter.read)
        gone, stays = asyncio.create_task(shared.get()), asyncio.create_task(shared.get())
        await started(counter, 1)
        gone.cancel()
        counter.go_on.release()
        return await stays

    assert asyncio.run(scenario()) == 1


def test_a_failure_is_everybodys_and_the_next_read_is_a_new_one() -> None:
    answers = iter([OSError("away"), 7])

    def read() -> int:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    async def scenario() -> int:
        shared = SharedReads(read)
        both = await asyncio.gather(shared.get(), shared.get(), return_exceptions=True)
        assert [str(each) for each in both] == ["away", "away"]
        return await shared.get()

    assert asyncio.run(scenario()) == 7


@pytest.mark.parametrize("asked", [1, 3])
def test_one_after_the_other_reads_each_time(asked: int) -> None:
    async def scenario() -> list[int]:
        counter = Counter()
        counter.go_on.release(asked)
        shared = SharedReads(counter.read)
        return [await shared.get() for _ in range(asked)]

    assert asyncio.run(scenario()) == list(range(1, asked + 1))
