"""The main job's own bundles, by the command line: they verify, and nobody else's pass for them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ledger.attest.checks import verification
from ledger.attest.checks.verification import Exit, Outcome, Report
from ledger.attest.crypto.signing import load_key
from ledger.cli.main import main
from ledger.domain.attested import EMBEDDED_CHAIN_ID
from ledger.domain.record.canonical import canonical_bytes
from ledger.errors import BadInput
from ledger.resources import resource_dir
from tests.support.examples import failed, remember_pairings
from tests.support.forging import Forger
from tests.support.secrets import Secrets

pytestmark = pytest.mark.slow

EXAMPLES = resource_dir("examples")


@dataclass(frozen=True)
class Data:
    """What one run of the main job wrote."""

    folder: Path

    def verify(self, *, trust: Data | None = None, opening: bool = False) -> int:
        """The exit code of ``sla-ledger verify`` on the bundle."""
        pins = (trust or self).folder / "trust.json"
        opened = ["--opening", str(self.folder / "opening.json")] if opening else []
        return main(["verify", str(self.folder / "bundle.json"), "--trust", str(pins), "--accept-dev", *opened])

    def report(self) -> Report:
        return verification.verify_bundle(self.bundle, self.trust)

    @property
    def bundle(self) -> Any:
        return verification.read_bundle((self.folder / "bundle.json").read_bytes())

    @property
    def trust(self) -> Any:
        return verification.read_trust((self.folder / "trust.json").read_bytes())


@pytest.fixture(scope="session")
def main_job(tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> Callable[..., Data]:
    """Runs the main job in a data directory of its own."""

    def run(name: str, *options: str) -> Data:
        folder = tmp_path_factory.mktemp("main-job") / name
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
            requests = str(EXAMPLES / "requests.ndjson")
            assert main(["demo", "--requests", requests, "--out", str(folder), "--json", *options]) == 0
        return Data(folder)

    return run


def test_the_files_that_are_exported_later_verify_as_those_of_the_demo(
    proved: Data, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = proved.bundle["statement"]["payload"]["statement_id"]
    files = {kind: tmp_path / f"{kind}.json" for kind in ("bundle", "opening", "trust")}
    data = ["--data", str(proved.folder)]
    for kind, named in (("bundle", [name]), ("opening", [name]), ("trust", [])):
        assert main([kind, "export", *named, *data, "--out", str(files[kind])]) == 0
    assert "prove nothing about the provider" in capsys.readouterr().err
    assert json.loads(files["trust"].read_bytes()) == json.loads((proved.folder / "trust.json").read_bytes())
    assert files["opening"].read_bytes() == (proved.folder / "opening.json").read_bytes()
    pins = ["--trust", str(files["trust"]), "--opening", str(files["opening"]), "--accept-dev"]
    assert main(["verify", str(files["bundle"]), *pins]) == 0


@pytest.fixture(scope="session")
def proved(main_job: Callable[..., Data]) -> Data:
    return main_job("proved")


@pytest.fixture(scope="session")
def of_another_issuer(main_job: Callable[..., Data], tmp_path_factory: pytest.TempPathFactory) -> Data:
    """The same log, settled and proved whole by someone with keys of his own, who does not show the credit on chain."""
    terms = tmp_path_factory.mktemp("terms") / "agreement.yaml"
    public = (EXAMPLES / "agreement.yaml").read_text()
    terms.write_text(public.replace("credit_visibility: public", "credit_visibility: committed"))
    return main_job("another", "--agreement", str(terms))


@pytest.fixture(scope="session")
def withheld(main_job: Callable[..., Data]) -> Data:
    """A log that is complete for three hours of a day."""
    return main_job("withheld", "--span", "2023-06-14T00:00:00Z/2023-06-14T03:00:00Z")


@pytest.fixture(scope="session")
def unproved(main_job: Callable[..., Data], tmp_path_factory: pytest.TempPathFactory) -> Data:
    """Terms that no circuit attests: their cap is a share of the base."""
    terms = tmp_path_factory.mktemp("terms") / "agreement.yaml"
    impact = (EXAMPLES / "agreement-impact.yaml").read_text()
    terms.write_text(impact.replace('contract: "2900.00"', 'contract: "50 %"'))
    return main_job("unproved", "--agreement", str(terms))


@pytest.fixture(scope="session")
def of_incidents(main_job: Callable[..., Data], tmp_path_factory: pytest.TempPathFactory) -> Data:
    """Terms that pay for incidents beside the tiers and do not show amounts: two proofs, and three salts."""
    terms = tmp_path_factory.mktemp("terms") / "agreement.yaml"
    public = (EXAMPLES / "agreement-impact.yaml").read_text()
    terms.write_text(public.replace("credit_visibility: public", "credit_visibility: committed"))
    return main_job("incidents", "--agreement", str(terms))


def test_a_credit_of_incidents_is_proved_twice_recorded_once_and_verifies(of_incidents: Data) -> None:
    bundle = of_incidents.bundle
    assert of_incidents.verify(opening=True) == 0
    circuits = {bundle[name]["manifest"]["circuit_id"] for name in ("proof", "incident_proof")}
    assert {each["circuit_id"] for each in of_incidents.trust["circuits"]} == circuits
    assert [bundle[name]["circuit"] for name in ("proof", "incident_proof")] == ["compliance_25x4", "incidents_64"]
    assert bundle["statement"]["payload"]["credit"] == {"currency": "CNY", "minor_units": "19600"}
    assert {bundle["proof"]["signals"][1], bundle["incident_proof"]["signals"][1]}.isdisjoint({"19600", "145000000"})
    forged = Forger(bundle, Secrets.of_data(of_incidents.folder))
    forged.bundle["incident_proof"]["credit_salt"] = bundle["credit_salt"]
    report = verification.verify_bundle(verification.read_bundle(forged.sign()), of_incidents.trust)
    assert failed(report) == {"incident credit"}


def test_the_bundle_verifies_down_to_every_window(proved: Data) -> None:
    assert proved.verify(opening=True) == 0
    assert main(["verify", str(proved.folder / "bundle.json")]) == 3


def test_a_bundle_made_whole_by_another_issuer_fails_in_the_pins(
    proved: Data, of_another_issuer: Data, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_another_issuer.verify() == 0
    assert of_another_issuer.verify(trust=proved) == 1
    (verdict,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("does not hold: ")]
    of_home = f"pin: root on chain {EMBEDDED_CHAIN_ID}"
    assert verdict.startswith(f"does not hold: {of_home}, pin: log, pin: issuer, pin: customer, pin: registry;")


def test_a_committed_credit_is_opened_by_its_salt(of_another_issuer: Data) -> None:
    bundle, secrets = of_another_issuer.bundle, Secrets.of_data(of_another_issuer.folder)
    credit = bundle["statement"]["payload"]["credit"]["minor_units"]
    assert bundle["proof"]["signals"][1] != credit
    assert bundle["credit_salt"] is not None
    for salt in ("7", None):
        forged = Forger(bundle, secrets)
        forged.bundle["credit_salt"] = salt
        report = verification.verify_bundle(verification.read_bundle(forged.sign()), of_another_issuer.trust)
        assert failed(report) == {"credit"}


def test_altered_bundles_are_refused_with_the_signature_redone(proved: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of the values, on a bundle with keys and salts of this run (all of them: unit/attest)."""
    remember_pairings(monkeypatch)
    rng, bundle, secrets = random.Random(7), proved.bundle, Secrets.of_data(proved.folder)
    for path in rng.sample(_texts(bundle), 40):
        forged = Forger(bundle, secrets)
        node: Any = forged.bundle
        for key in path[:-1]:
            node = node[key]
        spot = rng.randrange(len(node[path[-1]]))
        text = node[path[-1]]
        node[path[-1]] = text[:spot] + ("1" if text[spot] != "1" else "2") + text[spot + 1 :]
        try:
            report = verification.verify_bundle(verification.read_bundle(forged.sign()), proved.trust)
        except BadInput:
            continue
        assert failed(report), path


def test_the_issuers_key_is_where_the_bundle_says(proved: Data) -> None:
    """The forger of these tests signs with the true key: without a change its bundle is the same, byte for byte."""
    assert load_key(proved.folder / "keys" / "issuer.key").public_key.hex() == proved.trust["issuer_ed25519_public_key"]
    written = (proved.folder / "bundle.json").read_bytes()
    assert Forger(proved.bundle, Secrets.of_data(proved.folder)).sign() == written


def test_a_withheld_period_gives_an_unproved_bundle_that_verifies(withheld: Data) -> None:
    bundle = withheld.bundle
    assert bundle["statement"]["payload"]["state"] == "withheld"
    assert bundle["proof"] is None
    assert bundle["anchor"] is None
    assert withheld.verify(opening=True) == 0
    (line,) = [line for line in withheld.report().lines if line.check == "proof"]
    assert line.outcome is Outcome.NOT_CHECKED
    assert "3 of 24 windows were observed" in line.detail


def test_terms_that_no_circuit_attests_give_an_unproved_bundle_that_says_why(unproved: Data) -> None:
    report = unproved.report()
    assert not failed(report)
    assert report.exit_code(accept_dev=False) is Exit.HOLDS
    (line,) = [line for line in report.lines if line.check == "proof"]
    assert line.outcome is Outcome.NOT_CHECKED
    assert "a cap is a percentage" in line.detail
    (verdict,) = [line for line in report.lines if line.check == "verdict"]
    assert "the incidents stand as stated" in verdict.detail
    assert not (unproved.folder / "opening.json").exists()


IMPACT_LIES: dict[str, Callable[[Any], object]] = {
    "no credit": lambda issued: issued.update(credit=None),
    "another money": lambda issued: issued["credit"].update(currency="USD"),
    "a credit that is not its last step": lambda issued: issued["credit"].update(minor_units="1"),
    "other tiers": lambda issued: issued["trace"].update(combined_bps=9),
    "another price": lambda issued: issued["trace"].update(price_per_request=None),
    "no steps": lambda issued: issued.update(trace={}),
    "steps of another kind": lambda issued: issued["trace"].update(discount="1"),
    "a breach called met": lambda issued: [result.update(state="met") for result in issued["objectives"]],
    "nothing to prove": lambda issued: issued.update(unattested_reasons=[], attestable=True),
}


@pytest.mark.parametrize("name", IMPACT_LIES)
def test_a_lie_about_an_unproved_credit_fails(name: str, unproved: Data) -> None:
    forged = Forger(unproved.bundle, Secrets.of_data(unproved.folder))
    IMPACT_LIES[name](forged.issued)
    forged.log()
    # Where the true statement was published, the changed one is not what the root is over.
    forged.bundle.pop("roots", None)
    report = verification.verify_bundle(verification.read_bundle(forged.sign()), unproved.trust)
    assert failed(report) == {"verdict"}


def test_a_proof_cannot_be_lent_to_terms_that_no_circuit_attests(unproved: Data, proved: Data) -> None:
    forged = Forger(unproved.bundle, Secrets.of_data(unproved.folder))
    for member in ("proof", "context", "base", "anchor", "telemetry"):
        forged.bundle[member] = proved.bundle[member]
    report = verification.verify_bundle(verification.read_bundle(forged.sign()), unproved.trust)
    assert {"verdict", "telemetry", "context", "terms"} <= failed(report)


def test_trust_and_opening_are_canonical_documents(proved: Data) -> None:
    for name in ("trust.json", "opening.json"):
        data = (proved.folder / name).read_bytes()
        assert canonical_bytes(json.loads(data)) == data


def _texts(node: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Paths of the texts that a check other than the issuer's signature answers for."""
    if isinstance(node, dict):
        items: Any = node.items()
    elif isinstance(node, list):
        items = enumerate(node)
    else:
        name = ".".join(map(str, at))
        return [at] if isinstance(node, str) and name not in ("issuer_signature", "anchor.block_hash") else []
    return [path for key, value in items for path in _texts(value, (*at, key))]
