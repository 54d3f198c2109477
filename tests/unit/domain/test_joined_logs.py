"""Windows of several logs together: what one log lacks is observed by none, and takes no failure with it."""

from __future__ import annotations

import itertools

import pytest

from ledger.domain.facts.evaluation import Evaluator
from ledger.domain.facts.joined_logs import joined
from ledger.domain.facts.samples import SampleBook
from ledger.domain.rows.observation import RequestRow, SampleRow
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.time.interval import Interval
from ledger.domain.windows.exclusions import Excluded
from ledger.domain.windows.window import Cell
from tests.unit.domain.samples import DAY_NS, HOUR_NS, row
from tests.unit.domain.test_outcome import AZURE, failures
from tests.unit.domain.test_samples import DAY, FACTS, UPTIME, sample, terms

WITHOUT_THE_FIRST_HOUR = [Interval(DAY_NS + HOUR_NS, DAY_NS + 24 * HOUR_NS)]
HALF_PAST_ONE = Interval(DAY_NS + HOUR_NS * 3 // 2, DAY_NS + 2 * HOUR_NS)


def counted(
    of: Agreement,
    requests: list[RequestRow],
    samples: list[SampleRow],
    *,
    of_requests: list[Interval] | None = None,
    of_samples: list[Interval] | None = None,
    excluded: tuple[Interval, ...] = (),
) -> list[list[tuple[int, Cell]]]:
    """Of each objective the windows that count something, where the logs are complete in these spans."""
    period = period_named(of, DAY)
    out = Excluded((), tuple((span, 0) for span in excluded))
    evaluator = Evaluator(of, period, spans=of_requests or (), excluded=out)
    evaluator.add_all(requests, within=())
    book = SampleBook(of, period, spans=of_samples, excluded=out)
    book.add_all(samples)
    windows = joined(evaluator, [book])
    return [
        [(at, window.cells[index]) for at, window in enumerate(windows) if window.cells[index].valid]
        for index in range(len(of.objectives))
    ]


BODIES = [row("a", at_s=7200, code=503), row("a", at_s=0), row("a", at_s=10_800)]


@pytest.mark.parametrize("order", [*itertools.permutations(BODIES)])
def test_no_failure_is_sent_away_into_an_hour_without_data(order: tuple[RequestRow, ...]) -> None:
    """By its id with an earlier start: of the bodies in observed hours the earliest counts, as failed."""
    rows = [*order, row("b", at_s=7200)]
    assert counted(terms(UPTIME), rows, [], of_requests=WITHOUT_THE_FIRST_HOUR) == [[(2, Cell(1, 1))]]


def test_nor_into_one_that_only_another_log_lacks() -> None:
    both = terms(UPTIME, FACTS)
    found = counted(both, BODIES, [sample(at_s=3600)], of_samples=WITHOUT_THE_FIRST_HOUR)
    assert found == [[(2, Cell(0, 1))], [(1, Cell(9, 1))]]


def test_nor_a_bad_sample() -> None:
    told = [sample(at_s=7200, counts=(0, 5, 0)), sample(at_s=0, counts=(5, 0, 0))]
    for samples in (told, told[::-1]):
        assert counted(terms(FACTS), [], samples, of_samples=WITHOUT_THE_FIRST_HOUR) == [[(2, Cell(0, 5))]]
        lacking = counted(terms(UPTIME, FACTS), [], samples, of_requests=WITHOUT_THE_FIRST_HOUR)
        assert lacking == [[], [(2, Cell(0, 5))]]


def test_a_body_in_excluded_time_counts_for_none_in_an_hour_without_data() -> None:
    """It is not taken out, since not every body starts in excluded time, and the one that does not is not observed."""
    rows = [row("a", at_s=5400, code=503), row("a", at_s=0, code=503)]
    told = [sample(at_s=5400), sample(at_s=0, counts=(1, 0, 0))]
    terms_of_both = terms(UPTIME, FACTS)
    at_half_past = {"of_requests": WITHOUT_THE_FIRST_HOUR, "excluded": (HALF_PAST_ONE,)}
    assert counted(terms_of_both, rows, told, **at_half_past) == [[], []]  # type: ignore[arg-type]


def test_a_failure_in_an_hour_that_another_log_lacks_hides_none_that_counts() -> None:
    found = counted(terms(AZURE, FACTS), failures(3599, 3601), [], of_samples=WITHOUT_THE_FIRST_HOUR)
    assert found == [[(1, Cell(0, 1))], []]
