"""When blocks were sealed, as a bundle shows it: by the log's clock, held against the grace of the terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from ledger.attest.checks.verification import Line, Outcome, read_bundle, read_trust, verify_bundle
from ledger.domain.time.instant import SECOND_NS, parse_instant_ns
from tests.support import examples
from tests.support.forging import Forger
from tests.support.office import SECRETS, trust
from tests.vectors.kinds import evidence
from tests.vectors.verdicts import ours, theirs

EARLIER = "01a22878-3ec8-7a03-907e-8e061aae31bc"
GRACE_NS = 72 * 3600 * SECOND_NS


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        examples.remember_pairings(patch)
        yield


def line_of(forged: Forger) -> Line:
    forged.log()
    (found,) = (line for line in examples.verified(forged).lines if line.check == "seal times")
    return found


def sealed(after_ns: int) -> Forger:
    """The bundle with its block sealed so long after the end of the period."""
    forged = examples.forger()
    forged.seal["header"]["recorded_at_ns"] = str(int(forged.issued["end_ns"]) + after_ns)
    return forged


@pytest.mark.long
@pytest.mark.parametrize(
    ("after_ns", "outcome", "detail"),
    [
        (-1, Outcome.FAIL, "block 0 was sealed before its last window was over"),
        (0, Outcome.PASS, "within 0 s after its grace"),
        (GRACE_NS + 7 * SECOND_NS, Outcome.PASS, "within 7 s after its grace"),
        (GRACE_NS + 3600 * SECOND_NS, Outcome.PASS, "within 3600 s"),
        (GRACE_NS + 3600 * SECOND_NS + 1, Outcome.NOT_CHECKED, "sealed 3600 s after its grace"),
        (GRACE_NS + 3601 * SECOND_NS, Outcome.NOT_CHECKED, "sealed 3601 s after its grace"),
        (GRACE_NS + 400 * 86_400 * SECOND_NS, Outcome.NOT_CHECKED, "sealed 400 days after its grace"),
    ],
)
def test_a_seal_is_on_time_with_its_grace(after_ns: int, outcome: Outcome, detail: str) -> None:
    found = line_of(sealed(after_ns))
    assert found.outcome is outcome
    assert detail in found.detail


def test_a_block_that_was_sealed_anew_is_said_to_be_with_its_reason() -> None:
    forged = sealed(GRACE_NS)
    forged.seal["header"] |= {"type": "block_resealed", "version": 1}
    forged.seal["payload"] |= {"statement_version": 1, "replaces": EARLIER, "reason": "a batch came late"}
    found = line_of(forged)
    assert found.outcome is Outcome.NOT_CHECKED
    assert found.detail == "block 0 was sealed anew (a batch came late)"
    lines = {line.check: line for line in examples.verified(forged).lines}
    assert lines["log inclusion"].outcome is Outcome.PASS


# --- the order of the log, which bounds single blocks without a clock ------------------------------


Events = list[dict[str, Any]]


def parts(forged: Forger) -> Events:
    """The three versions of a statement, and the seal of its one block, which was replaced for the third."""
    return [*forged.bundle["previous"], forged.bundle["statement"], forged.seal]


def behind_the_second(forged: Forger, version: int = 3) -> Events:
    first, second, third, seal = parts(forged)
    seal["payload"]["statement_version"] = version
    return [first, second, seal, third]


def behind_the_first(forged: Forger) -> Events:
    first, second, third, seal = parts(forged)
    return [first, seal, second, third]


def before_all(forged: Forger, version: int = 3) -> Events:
    first, second, third, seal = parts(forged)
    seal["payload"]["statement_version"] = version
    return [seal, first, second, third]


def never_replaced(forged: Forger) -> None:
    forged.seal["header"] |= {"type": "block_sealed", "version": 0, "schema": 1}
    for name in ("statement_version", "replaces", "reason"):
        del forged.seal["payload"][name]


def first_behind_the_first(forged: Forger, *, rooted: bool = True) -> Events:
    never_replaced(forged)
    if not rooted:
        forged.bundle["previous"][0]["payload"] |= {"telemetry_root": None, "seal_key": None}
    return behind_the_first(forged)


def first_before_all(forged: Forger) -> Events:
    never_replaced(forged)
    first, second, third, seal = parts(forged)
    return [seal, first, second, third]


TOO_EARLY = "block 0 was sealed anew for version 3 before version 2 was issued"
TOO_LATE = "block 0 was sealed after version {}, which is said to count by it"
ORDERS: Mapping[str, tuple[Callable[[Forger], Events], str | None]] = {
    "replaced for the third": (behind_the_second, None),
    "replaced for the third before the second": (behind_the_first, TOO_EARLY),
    "replaced for the third before the first": (before_all, TOO_EARLY),
    # Those versions would have been issued from other counts than they were said to be issued from.
    "called one of the second": (lambda f: behind_the_second(f, 2), TOO_LATE.format(2)),
    "called one of the first": (lambda f: behind_the_second(f, 1), TOO_LATE.format(1)),
    "replaced for the first": (lambda f: before_all(f, 1), None),
    "first sealed behind the first": (first_behind_the_first, TOO_LATE.format(1)),
    "first sealed before all": (first_before_all, None),
    # A version whose counts no circuit attests names no root, and what it left unsealed is sealed behind it.
    "first sealed behind one without a root": (lambda f: first_behind_the_first(f, rooted=False), None),
}


def ordered(name: str) -> bytes:
    forged = Forger(read_bundle(evidence("the third of three versions").bundle), SECRETS)
    return forged.log(ORDERS[name][0](forged)).sign()


@pytest.mark.parametrize("name", ORDERS)
def test_a_block_stands_before_the_first_version_that_counts_by_it(name: str) -> None:
    data, detail = ordered(name), ORDERS[name][1]
    report = verify_bundle(read_bundle(data), read_trust(trust()))
    (found,) = (line for line in report.lines if line.check == "log inclusion")
    assert found.outcome is (Outcome.PASS if detail is None else Outcome.FAIL)
    assert detail in (None, found.detail)
    mine, outside = ours(data, trust()), theirs(data, trust())
    assert mine.exits == outside.exits
    assert (5 in mine.failed) == (5 in outside.failed) == (detail is not None)


def test_the_log_s_own_clock_is_not_evidence_to_others() -> None:
    assert any("the log's own clock" in each for each in examples.verified(sealed(0)).not_established)


@pytest.mark.long
def test_a_root_bounds_when_the_blocks_were_sealed_by_the_clock_of_its_chain() -> None:
    """The statement that a batch covers names the telemetry root, so its blocks are no younger than the batch."""
    made = evidence("published on two chains")
    bundle = read_bundle(made.bundle)
    at_s = parse_instant_ns("2023-06-20T07:00:00Z") // SECOND_NS

    def knows_roots(method: str, *params: Any) -> Any:
        """A node of chain 10 that answers for the registry alone."""
        if method == "eth_chainId":
            return "0xa"
        if method == "eth_getCode":
            return "0x60"
        return "0x" + at_s.to_bytes(32, "big").hex() if method == "eth_call" else None

    report = verify_bundle(bundle, read_trust(trust()), asks=[knows_roots])
    (found,) = (line for line in report.lines if line.check == "chain 10: seals")
    assert found.outcome is Outcome.PASS
    assert found.detail.startswith("every block was sealed no later than 2023-06-20T07:00:00")
    assert any(
        each.startswith("how long before the batch root the blocks were sealed") for each in report.not_established
    )
    unasked = verify_bundle(bundle, read_trust(trust()))
    assert any(each.startswith("when the blocks were sealed") for each in unasked.not_established)

    def knows_nothing(method: str, *params: Any) -> Any:
        return "0xa" if method == "eth_chainId" else "0x" + bytes(32).hex()

    report = verify_bundle(bundle, read_trust(trust()), asks=[knows_nothing])
    assert [line.outcome for line in report.lines if line.check == "chain 10: seals"] == [Outcome.FAIL]
