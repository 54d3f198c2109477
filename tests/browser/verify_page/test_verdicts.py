"""The page gives the verdicts of ``sla-ledger verify``, line by line: on honest bundles, and on every lie."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

import pytest

from ledger.attest.checks import verification
from ledger.attest.checks.verification import Exit
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import BadInput
from tests.browser.verify_page.conftest import Checker, Found, Given
from tests.support import examples
from tests.support.forging import Forger
from tests.support.lies import Lies, bumped
from tests.support.secrets import Secrets
from tests.unit.attest import test_verification, test_verification_lies, test_verification_proof_lies
from tests.unit.attest import test_verification_binding as binding

pytestmark = pytest.mark.slow

TRUST = (examples.VECTORS / "trust.json").read_bytes()
BUNDLES = {"bundle": "opening", "bundle_next_day": None, "bundle_withheld": "opening_withheld"}
BAD_INPUT = 2


@pytest.fixture(autouse=True, scope="module")
def _pairings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        examples.remember_pairings(patch)
        yield


def vector(name: str) -> bytes:
    return (examples.VECTORS / f"{name}.json").read_bytes()


def ours(given: Given) -> Found:
    """The report of ``sla-ledger verify``."""
    try:
        bundle = verification.read_bundle(given.bundle)
        trust = None if given.trust is None else verification.read_trust(given.trust)
        opening = None if given.opening is None else verification.read_opening(given.opening)
    except BadInput as error:
        return Found(BAD_INPUT, [], [], error.message)
    report = verification.verify_bundle(bundle, trust, opening)
    lines = [(line.check, str(line.outcome), line.detail) for line in report.lines]
    return Found(int(report.exit_code(accept_dev=given.accept_dev)), lines, list(report.not_established), None)


@pytest.mark.parametrize("name", BUNDLES)
@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("accept_dev", [True, False])
def test_an_honest_bundle_has_the_same_report_to_the_letter(
    name: str, trusted: bool, accept_dev: bool, checker: Checker
) -> None:
    opening = BUNDLES[name]
    given = Given(
        vector(name),
        TRUST if trusted else None,
        vector(opening) if opening is not None and trusted else None,
        accept_dev,
    )
    found = checker.report(given)
    assert found == ours(given)
    dev = name != "bundle_withheld" and not accept_dev
    assert found.exit_code == (Exit.HOLDS if trusted and not dev else Exit.NOT_PINNED)


LIES: Lies = {
    **test_verification_lies.LIES,
    **{name: lie for name, lie in test_verification_proof_lies.LIES.items() if not name.startswith("proof: ")},
}
PROOF_LIES: Lies = {name: lie for name, lie in test_verification_proof_lies.LIES.items() if name.startswith("proof: ")}


def forged(lies: Lies, bundle: str) -> list[Given]:
    given = []
    for lie, _ in lies.values():
        forger = examples.forger(bundle)
        lie(forger)
        given.append(Given(forger.sign(), TRUST))
    return given


@pytest.mark.parametrize(
    ("lies", "bundle"),
    [(LIES, "bundle"), (test_verification_lies.WITHHELD, "bundle_withheld")],
    ids=["proved", "withheld"],
)
def test_every_lie_has_the_verdict_of_the_command(lies: Lies, bundle: str, checker: Checker) -> None:
    given = forged(lies, bundle)
    for name, case, found in zip(lies, given, checker.reports(given), strict=True):
        expected = ours(case)
        assert (found.exit_code, found.outcomes) == (expected.exit_code, expected.outcomes), name
        assert found.exit_code == Exit.FAILED, name


def test_every_lie_about_the_proof_fails_in_its_check(checker: Checker) -> None:
    """The command's own verdict on these takes a pairing each; that it fails in these checks is tested beside it."""
    found = checker.reports(forged(PROOF_LIES, "bundle"))
    for (name, (_, named)), report in zip(PROOF_LIES.items(), found, strict=True):
        assert named <= report.failed, name
        assert "issuer signature" not in report.failed, name
        assert report.exit_code == Exit.FAILED, name


def test_what_is_no_bundle_is_bad_input(checker: Checker) -> None:
    cases = {
        **{name: change(test_verification.DATA) for name, change in test_verification.NOT_EXACT.items()},
        **{
            f"{value!r}": canonical_bytes(value)
            for value in ([], "bundle", 7, {}, {"format": "sla-ledger/bundle/v2"}, {"__proto__": {"format": "x"}})
        },
        "a member that nobody knows": canonical_bytes(dict(examples.bundle()) | {"approved": True}),
        "a member called __proto__": canonical_bytes(dict(examples.bundle()) | {"__proto__": {"format": "x"}}),
        "a member called constructor": canonical_bytes(dict(examples.bundle()) | {"constructor": {}}),
    }
    given = [Given(data, TRUST) for data in cases.values()]
    for name, case, found in zip(cases, given, checker.reports(given), strict=True):
        assert ours(case).exit_code == found.exit_code == BAD_INPUT, name
        assert found.problem, name
        assert not found.lines, name


def test_without_the_issuers_key_no_value_can_be_changed(checker: Checker) -> None:
    given = []
    for name in binding.BUNDLES:
        bundle = examples.bundle(name)
        for path, value in binding.leaves(bundle):
            changed = binding.with_value(bundle, path, next(binding.variants(value)))
            given.append(canonical_bytes(changed))
    refused = checker.run(
        """({ bytes, verify, parties }, given) => given.map((text) => {
          let bundle;
          try { bundle = verify.readBundle(bytes.fromBase64(text)); } catch { return true; }
          try { parties.issuerSignature({ bundle }); return false; } catch { return true; }
        })""",
        [b64encode(each).decode() for each in given],
    )
    assert len(refused) > 250
    assert all(refused)


def test_with_the_issuers_key_only_the_block_can_be_changed(checker: Checker) -> None:
    bundle = examples.bundle()
    paths = [path for path, _ in binding.leaves(bundle) if path != ("issuer_signature",)]
    values = dict(binding.leaves(bundle))
    given = [
        Given(Forger(binding.with_value(bundle, path, next(binding.variants(values[path]))), SECRETS).sign(), TRUST)
        for path in paths
    ]
    accepted = {
        ".".join(map(str, path))
        for path, found in zip(paths, checker.reports(given), strict=True)
        if found.exit_code not in (Exit.FAILED, BAD_INPUT)
    }
    assert accepted == binding.FOR_THE_CHAIN_TO_SAY


SECRETS = Secrets.of_vectors()


def test_pins_that_do_not_fit_fail_alone(checker: Checker) -> None:
    cases = {name: canonical_bytes(trust) for name, (trust, _) in test_verification.OTHER_PINS.items()}
    given = [Given(vector("bundle"), trust) for trust in cases.values()]
    for name, case, found in zip(cases, given, checker.reports(given), strict=True):
        assert found == ours(case), name
        assert found.exit_code == Exit.FAILED, name


def test_an_opening_of_other_counts_fails(checker: Checker) -> None:
    opened = dict(examples.opening())
    cases = [
        {**opened, "salts": [bumped(opened["salts"][0])]},
        {**opened, "statement_id": "another"},
        {**opened, "windows": opened["windows"][:-1]},
        {**opened, "windows": [{**opened["windows"][0], "state": "no_data"}, *opened["windows"][1:]]},
    ]
    given = [Given(vector("bundle"), TRUST, canonical_bytes(case)) for case in cases]
    for case, found in zip(given, checker.reports(given), strict=True):
        assert found == ours(case)
        assert found.failed == {"opening"}
    lied = test_verification_lies.withheld_by_a_lie().sign()
    shown = Given(lied, TRUST, vector("opening"))
    assert checker.report(shown).outcomes == ours(shown).outcomes
    assert checker.report(shown).failed == {"opening"}
