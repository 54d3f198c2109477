"""Agreements are amended and ended over HTTP, and show where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from api.app import create_app
from api.desks import Desks
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.reading.queries import Queries
from ledger.app.reading.readiness import Health
from ledger.app.webhooks.desk import WebhookDesk
from ledger.settings import WorkerSettings
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import Services, create_data
from tests.support.deployment import example_terms

Client = TestClient[Any]


TODAY = datetime.now(UTC).date()
"""Also where midnight comes while the tests run."""


def day(offset: int) -> str:
    return str(TODAY + timedelta(days=offset))


EFFECTIVE = {"from": day(-40), "until": day(400)}


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> Iterator[Services]:
    folder = tmp_path_factory.mktemp("lifecycle") / "data"
    # With a broker: nothing is worked here, and no chain is opened.
    made = create_data(
        folder, key_cache=key_cache, notify=lambda _: None, workers=WorkerSettings(broker_url="redis://127.0.0.1:1/0")
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def client(services: Services) -> Iterator[Client]:
    queries = Queries(services.database, bundles=services.bundles, chain_status=services.chain_status)
    desks = Desks(
        queries=queries,
        public_log=services.public_log,
        credit_desk=CreditDesk(services.database, services.clock),
        webhooks=WebhookDesk(services.database, services.clock, services.randomness),
        commands=services.commands,
    )
    health = Health(services.database, schema_state=services.schema_state, chain_status=services.chain_status)
    with TestClient(create_app(desks, health=health), base_url="http://127.0.0.1") as found:
        yield found


@pytest.fixture
def parties(services: Services) -> DemoParties:
    return DemoParties(services.keyring)


@pytest.fixture
def document(services: Services, parties: DemoParties) -> dict[str, Any]:
    """A signed agreement of weeks that runs since 40 days."""
    terms = {**parties.with_keys(example_terms()), "nonce": "0x" + services.randomness.bytes(32).hex()}
    return parties.signed({**terms, "effective": EFFECTIVE, "period": "P1W", "window": "PT24H"})


@pytest.fixture
def sla_id(client: Client, document: dict[str, Any]) -> str:
    answer = client.post("/v1/agreements", json={"document": document})
    assert answer.status_code == 202, answer.text
    found: str = answer.json()["sla_id"]
    return found


def later(document: dict[str, Any], parties: DemoParties, offset: int = 4, **changes: Any) -> dict[str, Any]:
    """The same terms from some days after now on, with a higher base, signed again."""
    own = {
        "effective": {**document["effective"], "from": day(offset)},
        "anchor": document["effective"]["from"],
        "partial_periods": "prorate",
        "compensation": {**document["compensation"], "base": "9000.00"},
        **changes,
    }
    return parties.signed({**{key: value for key, value in document.items() if key != "signatures"}, **own})


def amend(client: Client, sla_id: str, document: dict[str, Any], **more: Any) -> Any:
    return client.post(f"/v1/agreements/{sla_id}/amendments", json={"document": document, **more})


def life(client: Client, sla_id: str) -> Any:
    return client.get(f"/v1/agreements/{sla_id}").json()["lifecycle"]


def problem(response: Any, status: int, code: str, *words: str) -> None:
    assert response.status_code == status, response.text
    body = response.json()
    assert body["code"] == code, body
    for word in words:
        assert word in response.text


class TestAmending:
    def test_is_a_version_of_its_own_that_comes_into_force_later(
        self, client: Client, document: dict[str, Any], sla_id: str, parties: DemoParties
    ) -> None:
        assert life(client, sla_id)["state"] == "active"
        answer = amend(client, sla_id, later(document, parties))
        assert answer.status_code == 202, answer.text
        assert answer.json()["receipt"]["version"] == 1
        found = life(client, sla_id)
        assert [(each["terms_version"], each["state"]) for each in found["versions"]] == [(1, "active"), (2, "signed")]
        first, second = found["versions"]
        assert first["in_force_until"] == second["in_force_from"]
        assert second["in_force_from"]["rfc3339"] == f"{day(4)}T00:00:00Z"
        assert {"at": second["in_force_from"], "what": "amended", "terms_version": 2} in found["timeline"]
        assert client.get(f"/v1/agreements/{sla_id}").json()["summary"]["terms_version"] == 2

    def test_again_gives_the_first_receipt(
        self, client: Client, document: dict[str, Any], sla_id: str, parties: DemoParties
    ) -> None:
        amended = later(document, parties)
        first = amend(client, sla_id, amended).json()
        assert amend(client, sla_id, amended).json() == first
        assert len(life(client, sla_id)["versions"]) == 2

    def test_is_refused_with_clause_and_value(
        self, client: Client, document: dict[str, Any], sla_id: str, parties: DemoParties
    ) -> None:
        for changes, words in (
            ({"offset": 0}, ("effective.from", day(0), "not later than now")),
            ({"partial_periods": "drop"}, ("partial_periods", day(4))),
            ({"timezone": "Asia/Tokyo"}, ("timezone", "Asia/Tokyo")),
        ):
            problem(amend(client, sla_id, later(document, parties, **changes)), 400, "document_invalid", *words)
        unsigned = later(document, parties)
        unsigned["signatures"] = {**unsigned["signatures"], "customer": "ab" * 64}
        problem(amend(client, sla_id, unsigned), 400, "agreement_not_signed", "customer")
        del unsigned["signatures"]["customer"]
        problem(amend(client, sla_id, unsigned), 400, "agreement_not_signed", "signatures.customer is missing")
        assert len(life(client, sla_id)["versions"]) == 1

    def test_belongs_to_the_agreement_that_it_names(
        self, client: Client, services: Services, document: dict[str, Any], sla_id: str, parties: DemoParties
    ) -> None:
        other = later(document, parties, nonce="0x" + services.randomness.bytes(32).hex())
        problem(amend(client, sla_id, other), 400, "document_invalid", "nonce")
        problem(amend(client, "0x" + "00" * 32, other), 400, "document_invalid", "nonce")

    def test_other_terms_are_no_first_registration(
        self, client: Client, document: dict[str, Any], sla_id: str, parties: DemoParties
    ) -> None:
        found = client.post("/v1/agreements", json={"document": later(document, parties)})
        problem(found, 409, "version_conflict", sla_id, "amendment")

    def test_goes_on_chain_where_the_terms_before_it_are(
        self, client: Client, services: Services, document: dict[str, Any], parties: DemoParties
    ) -> None:
        digest = client.post("/v1/agreements/registration-digest", json={"document": document}).json()["digest"]
        signature = "0x" + parties.sign_registration(bytes.fromhex(digest[2:])).hex()
        body = {"document": document, "registration_signature": signature}
        sla_id = client.post("/v1/agreements", json=body).json()["sla_id"]
        amended = later(document, parties)
        asked = client.post("/v1/agreements/registration-digest", json={"document": amended}).json()
        assert asked["first_period"].startswith(day(4))
        consent = "0x" + parties.sign_registration(bytes.fromhex(asked["digest"][2:])).hex()
        problem(amend(client, sla_id, amended, registration_signature=signature), 400, "agreement_not_signed")
        answer = amend(client, sla_id, amended, registration_signature=consent)
        assert answer.json()["on_chain"] is True
        with services.database.read() as tx:
            entries = tx.outbox.entries(states=["pending"], limit=999)
        event_id = answer.json()["receipt"]["event_id"]
        assert [entry.stage for entry in entries if entry.event_id == event_id] == ["register"]

    def test_not_where_they_are_not(
        self, client: Client, document: dict[str, Any], sla_id: str, parties: DemoParties
    ) -> None:
        amended = later(document, parties)
        found = client.post("/v1/agreements/registration-digest", json={"document": amended})
        problem(found, 400, "agreement_not_signed", "version 1", "not registered on chain")
        found = amend(client, sla_id, amended, registration_signature="0x" + "ab" * 65)
        problem(found, 400, "agreement_not_signed", "version 1")


class TestTerminating:
    def ask(self, client: Client, sla_id: str, effective: str, **more: Any) -> Any:
        body = {"effective": effective, "reason": "moved to another provider", **more}
        return client.post(f"/v1/agreements/{sla_id}/terminate", json=body)

    def signed(self, client: Client, services: Services, sla_id: str, effective: str, *names: str) -> dict[str, str]:
        body = {"effective": effective, "reason": "moved to another provider"}
        found = client.post(f"/v1/agreements/{sla_id}/termination-message", json=body).json()
        message = bytes.fromhex(found["message"])
        return {f"{name}_signature": services.keyring.signing_key(name).sign(message).hex() for name in names}

    @pytest.mark.parametrize("names", [("customer",), ("issuer",), ("issuer", "customer")], ids="-".join)
    def test_by_one_party_or_both(
        self, client: Client, services: Services, sla_id: str, names: tuple[str, ...]
    ) -> None:
        signatures = self.signed(client, services, sla_id, day(10), *names)
        answer = self.ask(client, sla_id, day(10), **signatures)
        assert answer.status_code == 202, answer.text
        assert answer.json()["signed_by"] == list(names)
        assert self.ask(client, sla_id, day(10), **signatures).json() == answer.json()
        found = life(client, sla_id)
        assert found["state"] == "active"
        assert found["versions"][0]["in_force_until"] == found["termination"]["at"]
        assert found["termination"]["at"]["rfc3339"] == f"{day(10)}T00:00:00Z"
        assert found["timeline"][-1]["what"] == "terminated"

    def test_is_refused_with_clause_and_value(self, client: Client, services: Services, sla_id: str) -> None:
        problem(self.ask(client, sla_id, day(10)), 400, "document_invalid", "signatures", "nobody signed")
        for effective in (day(0), day(-3), day(400)):
            signatures = self.signed(client, services, sla_id, effective, "customer")
            problem(self.ask(client, sla_id, effective, **signatures), 400, "document_invalid", "effective", effective)
        signatures = self.signed(client, services, sla_id, day(11), "customer")
        problem(self.ask(client, sla_id, day(10), **signatures), 400, "agreement_not_signed", "customer")
        swapped = {"issuer_signature": signatures["customer_signature"]}
        problem(self.ask(client, sla_id, day(11), **swapped), 400, "agreement_not_signed", "issuer")
        problem(self.ask(client, "0x" + "00" * 32, day(10), **signatures), 404, "not_found")
        assert life(client, sla_id)["termination"] is None

    def test_ends_once_and_is_not_amended_after(
        self, client: Client, services: Services, document: dict[str, Any], sla_id: str, parties: DemoParties
    ) -> None:
        self.ask(client, sla_id, day(10), **self.signed(client, services, sla_id, day(10), "customer"))
        again = self.ask(client, sla_id, day(12), **self.signed(client, services, sla_id, day(12), "customer"))
        problem(again, 400, "document_invalid", day(10), "already")
        problem(amend(client, sla_id, later(document, parties)), 400, "document_invalid", day(10))
