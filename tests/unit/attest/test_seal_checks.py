"""When blocks were sealed, as a bundle shows it: by the log's clock, held against the grace of the terms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ledger.attest.verification import Line, Outcome, read_bundle, read_trust, verify_bundle
from ledger.domain.instant import SECOND_NS, parse_instant_ns
from tests.support import examples
from tests.support.forging import Forger
from tests.support.office import trust
from tests.vectors.kinds import evidence

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
