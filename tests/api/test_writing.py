"""Agreements are registered and periods closed over HTTP; asking again gives the first receipt."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from eth_account import Account
from litestar.testing import TestClient

from api.app import create_app
from api.desks import Desks
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.reading.queries import Queries
from ledger.app.reading.readiness import Health
from ledger.app.webhooks.desk import WebhookDesk
from ledger.domain.record.naming import closing_stream
from ledger.settings import WorkerSettings
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import Services, create_data
from tests.support.deployment import example_terms

Client = TestClient[Any]
DAY = date(2023, 6, 14)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> Iterator[Services]:
    folder = tmp_path_factory.mktemp("writing") / "data"
    # With a broker: nothing is worked here, and no chain is opened.
    made = create_data(
        folder, key_cache=key_cache, notify=lambda _: None, workers=WorkerSettings(broker_url="redis://127.0.0.1:1/0")
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def client(services: Services) -> Iterator[Client]:
    queries = Queries(services.database, bundles=services.bundles, chain_status=services.chain_status)
    health = Health(services.database, schema_state=services.schema_state, chain_status=services.chain_status)
    desks = Desks(
        queries=queries,
        public_log=services.public_log,
        credit_desk=CreditDesk(services.database, services.clock),
        webhooks=WebhookDesk(services.database, services.clock, services.randomness),
        commands=services.commands,
    )
    app = create_app(desks, health=health)
    with TestClient(app, base_url="http://127.0.0.1") as found:
        yield found


@pytest.fixture
def parties(services: Services) -> DemoParties:
    return DemoParties(services.keyring)


@pytest.fixture
def document(services: Services, parties: DemoParties) -> dict[str, Any]:
    """A signed agreement that nobody has registered."""
    terms = {**parties.with_keys(example_terms()), "nonce": "0x" + services.randomness.bytes(32).hex()}
    return parties.signed(terms)


def register(client: Client, document: dict[str, Any], **more: Any) -> Any:
    return client.post("/v1/agreements", json={"document": document, **more})


def problem(response: Any, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = response.json()
    assert found["code"] == code, found
    return found


class TestRegistering:
    def test_answers_with_a_receipt_and_shows_the_agreement(self, client: Client, document: dict[str, Any]) -> None:
        answer = register(client, document)
        assert answer.status_code == 202
        body = answer.json()
        assert (body["on_chain"], body["receipt"]["version"]) == (False, 0)
        assert client.get(f"/v1/agreements/{body['sla_id']}").json()["document"] == document
        assert answer.headers["cache-control"] == "no-store"
        assert register(client, document).json() == body

    def test_on_chain_with_the_customers_signature_over_the_digest(
        self, client: Client, services: Services, parties: DemoParties, document: dict[str, Any]
    ) -> None:
        asked = {"document": document, "first_period": f"{DAY}/P1D"}
        digest = client.post("/v1/agreements/registration-digest", json=asked).json()
        signature = "0x" + parties.sign_registration(bytes.fromhex(digest["digest"][2:])).hex()
        body = register(client, document, first_period=f"{DAY}/P1D", registration_signature=signature).json()
        assert (body["on_chain"], body["sla_id"]) == (True, digest["sla_id"])
        with services.database.read() as tx:
            stages = [
                entry.stage
                for entry in tx.outbox.entries(states=["pending"], limit=999)
                if entry.event_id == body["receipt"]["event_id"]
            ]
        assert stages == ["register"]

    @pytest.mark.parametrize("lie", ["another period", "another signer", "no signature at all"])
    def test_a_signature_for_something_else_is_refused(
        self, client: Client, parties: DemoParties, document: dict[str, Any], lie: str
    ) -> None:
        first = f"{DAY + timedelta(days=1)}/P1D" if lie == "another period" else f"{DAY}/P1D"
        asked = {"document": document, "first_period": first}
        digest = bytes.fromhex(client.post("/v1/agreements/registration-digest", json=asked).json()["digest"][2:])
        signature = parties.sign_registration(digest)
        if lie == "another signer":
            signature = bytes(Account.unsafe_sign_hash(digest, b"\x05" * 32).signature)
        elif lie == "no signature at all":
            signature = bytes(65)
        found = register(client, document, first_period=f"{DAY}/P1D", registration_signature="0x" + signature.hex())
        problem(found, 400, "agreement_not_signed")
        assert client.get("/v1/agreements", params={"limit": 100}).text.count(document["nonce"]) == 0

    @pytest.mark.parametrize("party", ["issuer", "customer"])
    def test_a_party_that_did_not_sign_is_named(self, client: Client, document: dict[str, Any], party: str) -> None:
        document["signatures"] = {**document["signatures"], party: "00" * 64}
        assert problem(register(client, document), 400, "agreement_not_signed")["data"]["party"] == party

    def test_a_draft_is_refused(self, client: Client, document: dict[str, Any]) -> None:
        del document["signatures"]
        problem(register(client, document), 400, "agreement_not_signed")

    def test_a_collector_whose_key_is_not_held_is_refused(
        self, client: Client, parties: DemoParties, document: dict[str, Any]
    ) -> None:
        document["collector"] = example_terms()["collector"]
        found = problem(register(client, parties.signed(document)), 409, "collector_unknown")
        assert "agreements keys" in found["detail"]

    def test_other_terms_of_the_same_parties_and_nonce_are_refused(
        self, client: Client, parties: DemoParties, document: dict[str, Any]
    ) -> None:
        first = register(client, document).json()
        problem(register(client, parties.signed({**document, "tier": "silver"})), 409, "version_conflict")
        assert register(client, document).json() == first

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            (b"", "query_invalid"),
            (b"{", "bad_input"),
            (b"[]", "query_invalid"),
            (b'{"document": {}, "more": 1}', "query_invalid"),
            (b'{"document": "x"}', "query_invalid"),
            (b'{"document": {}}', "document_invalid"),
            (b'{"document": {}, "registration_signature": "0x12"}', "query_invalid"),
        ],
    )
    def test_a_body_that_is_no_agreement_is_refused(self, client: Client, body: bytes, code: str) -> None:
        answer = client.post("/v1/agreements", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400, answer.text
        assert answer.json()["code"] == code, answer.text

    def test_a_body_that_is_too_large_is_refused(self, client: Client) -> None:
        answer = register(client, {"filler": "x" * 300_000})
        assert answer.status_code == 413


class TestClosing:
    def test_closes_a_period_once(self, client: Client, services: Services, document: dict[str, Any]) -> None:
        sla_id = register(client, document).json()["sla_id"]
        path = f"/v1/agreements/{sla_id}/periods/{DAY}/close"
        answer = client.post(path)
        assert answer.status_code == 202
        assert (answer.json()["sla_id"], answer.json()["period"]) == (sla_id, f"{DAY}/P1D")
        assert client.post(path).json()["receipt"]["event_id"] == answer.json()["receipt"]["event_id"]
        with services.database.read() as tx:
            (event,) = tx.events.stream(closing_stream(sla_id, DAY))
        assert event.payload["cause"] == "request"

    def test_a_period_that_is_not_over_is_refused(
        self, client: Client, parties: DemoParties, document: dict[str, Any]
    ) -> None:
        today = datetime.now(UTC).date()
        effective = {"from": str(today - timedelta(days=2)), "until": str(today + timedelta(days=9))}
        sla_id = register(client, parties.signed({**document, "effective": effective})).json()["sla_id"]
        found = problem(
            client.post(f"/v1/agreements/{sla_id}/periods/{today + timedelta(days=3)}/close"), 409, "period_not_over"
        )
        assert int(found["data"]["from_ns"]) > 0

    @pytest.mark.parametrize(
        ("first", "code"),
        [("2022-06-14", "document_invalid"), ("2023-6-14", "calendar_invalid"), ("x", "calendar_invalid")],
    )
    def test_a_period_outside_the_terms_is_refused(
        self, client: Client, document: dict[str, Any], first: str, code: str
    ) -> None:
        sla_id = register(client, document).json()["sla_id"]
        problem(client.post(f"/v1/agreements/{sla_id}/periods/{first}/close"), 400, code)

    def test_an_unknown_agreement_is_not_found(self, client: Client) -> None:
        problem(client.post(f"/v1/agreements/0x{'0' * 64}/periods/{DAY}/close"), 404, "not_found")


class TestExcluding:
    @pytest.fixture
    def sla_id(self, client: Client, parties: DemoParties, document: dict[str, Any]) -> str:
        terms = {
            "maintenance": {
                "classes": [{"id": "gray-release", "reason": "a new version", "longest": "PT15M", "notice": "PT1H"}]
            }
        }
        del document["signatures"]
        return str(register(client, parties.signed({**document, **terms})).json()["sla_id"])

    RELEASE: ClassVar[dict[str, Any]] = {
        "id": "release-7",
        "clause": "gray-release",
        "from": "2023-06-14T12:00:00+02:00",
        "to": "2023-06-14T12:20:00+02:00",
        "reason": "version 7",
        "ticket": "CHG-7",
        "announced_at": "2023-06-14T08:00:00Z",
        "approved_by": "change board",
    }

    def test_records_and_lists_with_what_becomes_of_it(self, client: Client, sla_id: str) -> None:
        path = f"/v1/agreements/{sla_id}/exclusions"
        answer = client.post(path, json=self.RELEASE)
        assert answer.status_code == 200, answer.text
        made = answer.json()["exclusion"]
        assert (made["from"]["rfc3339"], made["to"]["rfc3339"]) == ("2023-06-14T10:00:00Z", "2023-06-14T10:20:00Z")
        assert (made["ruling"], made["honoured"]["to"]["rfc3339"]) == ("shortened", "2023-06-14T10:15:00Z")
        assert made["why"].startswith("lasts 1200 s")
        assert (
            client.post(path, json=self.RELEASE).json()["receipt"]["event_id"] == answer.json()["receipt"]["event_id"]
        )
        late = {**self.RELEASE, "id": "release-8", "announced_at": None, "from": "2023-06-14T12:01:00+02:00"}
        assert client.post(path, json=late).json()["exclusion"]["ruling"] == "announced_late"
        first = client.get(path, params={"limit": 1}).json()
        second = client.get(path, params={"limit": 1, "cursor": first["next_cursor"]}).json()
        (one,), (other,) = first["items"], second["items"]
        assert ({name: one[name] for name in made}, other["id"], other["honoured"]) == (made, "release-8", None)
        assert second["next_cursor"] is None
        problem(client.get(path, params={"cursor": "eA"}), 400, "cursor_invalid")

    def test_withdraws_for_good(self, client: Client, sla_id: str) -> None:
        path = f"/v1/agreements/{sla_id}/exclusions"
        client.post(path, json=self.RELEASE)
        gone = client.post(f"{path}/release-7/withdraw", json={"reason": "called off"})
        made = gone.json()["exclusion"]
        assert (made["state"], made["withdrawn_reason"], made["ruling"]) == ("withdrawn", "called off", None)
        assert client.get(path).json()["items"][0]["state"] == "withdrawn"
        problem(client.post(path, json=self.RELEASE), 409, "exclusion_refused")
        problem(client.post(f"{path}/nothing/withdraw", json={"reason": "x"}), 404, "not_found")

    @pytest.mark.parametrize(
        ("changes", "code", "field"),
        [
            ({"clause": "picnic"}, "exclusion_invalid", "clause"),
            ({"from": "2023-06-14T12:00:00"}, "exclusion_invalid", "from"),
            ({"to": "2023-06-14T10:00:00Z"}, "exclusion_invalid", "to"),
            ({"ticket": None}, "exclusion_invalid", "ticket"),
            ({"id": "Release 7"}, "exclusion_invalid", "exclusion_id"),
        ],
    )
    def test_what_cannot_be_is_named(self, client: Client, sla_id: str, changes: Any, code: str, field: str) -> None:
        answer = client.post(f"/v1/agreements/{sla_id}/exclusions", json={**self.RELEASE, **changes})
        assert problem(answer, 400, code)["data"]["field"] == field

    def test_another_one_under_the_same_id_is_refused(self, client: Client, sla_id: str) -> None:
        path = f"/v1/agreements/{sla_id}/exclusions"
        client.post(path, json=self.RELEASE)
        problem(client.post(path, json={**self.RELEASE, "reason": "version 8"}), 409, "idempotency_conflict")

    def test_of_an_unknown_agreement_there_are_none(self, client: Client) -> None:
        path = f"/v1/agreements/0x{'0' * 64}/exclusions"
        problem(client.get(path), 404, "not_found")
        problem(client.post(path, json=self.RELEASE), 404, "not_found")


def test_what_only_reads_takes_no_post(client: Client) -> None:
    answer = client.post("/v1/statements")
    problem(answer, 405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]


def test_the_description_names_the_bodies(client: Client) -> None:
    document = client.get("/schema/openapi.json").json()
    described = document["paths"]["/v1/agreements"]["post"]
    assert described["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("AgreementWrite")
    assert {"202", "400", "409"} <= set(described["responses"])
