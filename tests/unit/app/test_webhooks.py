"""Webhooks: who is told of what, signed how, and how often it is tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from ledger.app.access import ROLE_SCOPES, Principal, Role, Scope
from ledger.app.webhooks.delivery import BUDGET_S, GO_ON_S, PAUSES_S, Answer, Courier, queue_deliveries
from ledger.app.webhooks.desk import WebhookDesk
from ledger.app.webhooks.endpoints import (
    MAX_ENDPOINTS,
    Endpoint,
    load_endpoint,
    register_endpoint,
    rotate_secret,
    set_state,
)
from ledger.app.webhooks.messages import MESSAGE_TYPES, message
from ledger.app.work.outbox import Stage
from ledger.domain.record.events import NewEvent
from ledger.errors import (
    AccessDenied,
    IdempotencyConflict,
    NotFound,
    NotYet,
    WebhookInvalid,
    WebhookUnreachable,
)
from ledger.store.memory import MemoryDatabase
from tests.conformance.samples import SLA_ID, START_NS, SeededRandomness, StepClock, statement, violation
from tests.support.interleaved import Interleaved

URL = "https://billing.example/hooks"
FINANCE = Principal("finance key", "alice", ROLE_SCOPES[Role.FINANCE])
ADMIN = Principal("admin key", "alice", ROLE_SCOPES[Role.CUSTOMER_ADMIN])


@dataclass
class Desk:
    """A tenant's ledger with a receiver that answers what the test says."""

    clock: StepClock = field(default_factory=StepClock)
    answers: list[Answer | WebhookUnreachable] = field(default_factory=list)
    sent: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)
    takes_s: float = 0

    def __post_init__(self) -> None:
        self.randomness = SeededRandomness(1)
        self.all = MemoryDatabase(self.clock, self.randomness)
        self.database = self.all.of_tenant("alice")

    def register(self, principal: Principal = FINANCE, *types: str, request: str = "r1", url: str = URL) -> Endpoint:
        with self.database.begin() as tx:
            endpoint, _ = register_endpoint(
                tx,
                principal,
                url=url,
                types=types or ("statement.issued",),
                request=request,
                randomness=self.randomness,
                now_ns=self.clock.now_ns(),
            )
        return endpoint

    def issue(self, tenant: str = "alice") -> str:
        with self.all.of_tenant(tenant).begin() as tx:
            (receipt,) = tx.events.append(f"statement/{tenant}", [statement()], expected_version=None)
        return receipt.event_id

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.sent.append((url, headers, body))
        self.wait(self.takes_s)
        answer = self.answers.pop(0) if self.answers else Answer(204)
        if isinstance(answer, WebhookUnreachable):
            raise answer
        return answer

    def deliver(self, event_id: str) -> None:
        Courier(self.post, _sign, self.clock).deliver(self.database, event_id)

    def wait(self, seconds: float) -> None:
        self.clock.now += int(seconds * 10**9)

    def queued(self) -> list[tuple[str, str]]:
        found = []
        with self.all.begin() as tx:
            while (lease := tx.outbox.lease(2**62, 1, holder="test")) is not None:
                found.append((lease.event_id, lease.stage))
                tx.outbox.done(lease)
        return found

    def attempts(self, endpoint: Endpoint) -> list[tuple[int, int | None, str | None]]:
        with self.database.read() as tx:
            rows = tx.deliveries.of_endpoint(endpoint.id, after=None, limit=100)
        return [(each.attempt, each.status, each.error) for _, each in reversed(rows)]


def _sign(secrets: Any, message_id: str, timestamp_s: int, body: bytes) -> str:
    return " ".join(secret.hex() for secret in secrets)


@pytest.fixture
def desk() -> Desk:
    return Desk()


class TestEndpoints:
    def test_the_same_request_gives_the_same_endpoint_and_secret(self, desk: Desk) -> None:
        def register(url: str = URL) -> tuple[Endpoint, str]:
            with desk.database.begin() as tx:
                return register_endpoint(
                    tx,
                    FINANCE,
                    url=url,
                    types=["credit.issued"],
                    request="r1",
                    randomness=desk.randomness,
                    now_ns=START_NS,
                )

        assert register() == register()
        with pytest.raises(IdempotencyConflict):
            register("https://elsewhere.example/")

    @pytest.mark.parametrize(
        "url",
        [
            "ftp://billing.example/",
            "http://billing.example/",
            "https://",
            "billing.example/hooks",
            "https://user:password@billing.example/",
            "https://billing.example/#part",
            "https://billing.example:99999/",
            "https://billing.example/a b",
            "https://billing.example/" + "a" * 2000,
        ],
    )
    def test_an_address_that_cannot_be_used_is_refused(self, desk: Desk, url: str) -> None:
        with pytest.raises(WebhookInvalid) as caught:
            desk.register(url=url)
        assert caught.value.data == {"field": "url"}

    def test_plain_http_is_for_closed_networks(self, desk: Desk) -> None:
        def register(*, plain: bool) -> Endpoint:
            of_tenant = WebhookDesk(desk.database, StepClock(START_NS), desk.randomness, "alice", plain=plain)
            return of_tenant.register(FINANCE, url="http://billing.internal/", types=["credit.issued"], request="r")[0]

        with pytest.raises(WebhookInvalid, match="not an https address"):
            register(plain=False)
        assert register(plain=True).url == "http://billing.internal/"

    @pytest.mark.parametrize("types", [(), ("credit.issued", "credit.issued"), ("no.such",)])
    def test_types_are_known_and_named_once(self, desk: Desk, types: tuple[str, ...]) -> None:
        with pytest.raises(WebhookInvalid), desk.database.begin() as tx:
            register_endpoint(
                tx, FINANCE, url=URL, types=types, request="r", randomness=desk.randomness, now_ns=START_NS
            )

    def test_a_tenant_has_a_few_endpoints(self, desk: Desk) -> None:
        made = [desk.register(request=str(number)) for number in range(MAX_ENDPOINTS)]
        with pytest.raises(WebhookInvalid, match="remove one first"):
            desk.register(request="one more")
        with desk.database.begin() as tx:
            set_state(tx, made[0].id, "removed", reason=None, by="finance key", now_ns=START_NS)
        desk.register(request="one more")
        # The last one that fitted is no other one when it is asked for again.
        assert desk.register(request="one more").id == desk.register(request="one more").id

    def test_nobody_registers_for_what_they_may_not_see(self, desk: Desk) -> None:
        with pytest.raises(AccessDenied, match="sla:read:violations"):
            desk.register(FINANCE, "violation.opened")
        viewer = Principal("viewer", "alice", ROLE_SCOPES[Role.OPERATIONS_VIEWER])
        with pytest.raises(AccessDenied, match="sla:admin:webhooks"):
            desk.register(viewer, "violation.opened")

    def test_a_removed_endpoint_is_gone(self, desk: Desk) -> None:
        endpoint = desk.register()
        with desk.database.begin() as tx:
            set_state(tx, endpoint.id, "removed", reason=None, by="finance key", now_ns=START_NS)
        with pytest.raises(NotFound), desk.database.read() as tx:
            load_endpoint(tx, endpoint.id)

    def test_another_tenants_endpoint_does_not_exist(self, desk: Desk) -> None:
        endpoint = desk.register()
        with pytest.raises(NotFound), desk.all.of_tenant("bob").read() as tx:
            load_endpoint(tx, endpoint.id)


class TestQueueing:
    def test_an_event_that_somebody_wants_to_know_of_is_queued_once(self, desk: Desk) -> None:
        desk.register(request="1"), desk.register(request="2")
        desk.register(FINANCE, "credit.issued", request="3")
        event_id = desk.issue()
        while queue_deliveries(desk.all):
            pass
        assert desk.queued() == [(event_id, Stage.DELIVER)]
        assert queue_deliveries(desk.all) == 0

    def test_what_happened_before_anybody_listened_is_not_told(self, desk: Desk) -> None:
        desk.issue()
        assert queue_deliveries(desk.all) == 1
        desk.register()
        assert queue_deliveries(desk.all) == 1
        assert desk.queued() == []

    def test_another_tenants_events_tell_nobody_here(self, desk: Desk) -> None:
        desk.register()
        desk.issue("bob")
        queue_deliveries(desk.all)
        assert desk.queued() == []


class TestDelivery:
    def test_a_message_says_what_happened_under_one_id(self, desk: Desk) -> None:
        endpoint, event_id = desk.register(ADMIN), desk.issue()
        desk.answers = [Answer(500)]
        with pytest.raises(NotYet):
            desk.deliver(event_id)
        desk.wait(PAUSES_S[0])
        desk.deliver(event_id)
        (_, first, body), (url, second, again) = desk.sent
        assert url == URL
        assert body == again
        assert first["webhook-id"] == second["webhook-id"] == f"msg_{event_id}"
        assert first["webhook-timestamp"] != second["webhook-timestamp"]
        message = msgspec.json.decode(body)
        assert message["type"] == "statement.issued"
        assert message["data"]["sla_id"] == SLA_ID
        assert message["data"]["credit"] is not None
        assert message["data"]["withheld"] == []
        assert desk.attempts(endpoint) == [(1, 500, "it answered 500"), (2, 204, None)]

    def test_members_beyond_the_endpoints_scopes_are_withheld(self, desk: Desk) -> None:
        scopes = frozenset({Scope.ADMIN_WEBHOOKS, Scope.READ_AGREEMENTS})
        desk.register(Principal("narrow", "alice", scopes))
        desk.deliver(desk.issue())
        data = msgspec.json.decode(desk.sent[0][2])["data"]
        assert data["credit"] is None
        assert data["withheld"] == ["credit"]

    def test_a_violation_shows_the_figures_that_rest_shows(self, desk: Desk) -> None:
        told = {}
        for name, scopes in (
            ("all", ROLE_SCOPES[Role.OPERATOR]),
            ("bare", frozenset({Scope.ADMIN_WEBHOOKS, Scope.READ_VIOLATIONS})),
        ):
            with desk.database.begin() as tx:
                (receipt,) = tx.events.append(f"violations/{name}", [violation("opened")], expected_version=0)
            with desk.database.read() as tx:
                told[name] = message(tx.events.by_id(receipt.event_id), Principal(name, "alice", scopes))
        shown, bare = told["all"]["data"], told["bare"]["data"]
        assert shown["withheld"] == []
        assert shown["bad"] > 0
        assert shown["target"] is not None
        assert bare["withheld"] == ["bad", "clause", "good", "target", "valid"]
        assert {bare[member] for member in bare["withheld"]} == {None}

    def test_an_endpoint_is_not_told_what_it_may_not_see_at_all(self, desk: Desk) -> None:
        for name, kind in MESSAGE_TYPES.items():
            assert kind.scopes, name

    @pytest.mark.parametrize("state", ["disabled", "removed"])
    def test_an_endpoint_that_is_not_active_gets_nothing(self, desk: Desk, state: str) -> None:
        endpoint, event_id = desk.register(), desk.issue()
        with desk.database.begin() as tx:
            set_state(tx, endpoint.id, state, reason=None, by="x", now_ns=START_NS)
        desk.deliver(event_id)
        assert desk.sent == []

    @pytest.mark.parametrize("state", ["removed", "disabled"])
    def test_one_that_goes_while_others_are_told_holds_nobody_up(self, desk: Desk, state: str) -> None:
        going, other = desk.register(request="r1", url=f"{URL}/1"), desk.register(request="r2", url=f"{URL}/2")

        def go() -> None:
            with desk.database.begin() as tx:
                set_state(tx, going.id, state, reason=None, by="finance key", now_ns=START_NS)

        # After the look at who wants to know.
        database: Any = Interleaved(desk.database, go, 2)
        Courier(desk.post, _sign, desk.clock).deliver(database, desk.issue())
        assert [url for url, _, _ in desk.sent] == [other.url]

    def test_attempts_go_on_with_growing_pauses_and_end(self, desk: Desk) -> None:
        endpoint, event_id = desk.register(), desk.issue()
        desk.answers = [Answer(503) if number % 2 else WebhookUnreachable("no answer") for number in range(10)]
        for pause in PAUSES_S:
            with pytest.raises(NotYet) as caught:
                desk.deliver(event_id)
            assert caught.value.data["retry_after_s"] == pause
            desk.wait(pause)
        desk.deliver(event_id)
        assert len(desk.attempts(endpoint)) == len(PAUSES_S) + 1
        desk.deliver(event_id)
        assert len(desk.sent) == len(PAUSES_S) + 1

    def test_an_endpoint_is_left_alone_until_its_pause_is_over(self, desk: Desk) -> None:
        desk.register()
        event_id = desk.issue()
        desk.answers = [Answer(503)]
        for _ in range(2):
            with pytest.raises(NotYet) as caught:
                desk.deliver(event_id)
        assert 0 < caught.value.data["retry_after_s"] < PAUSES_S[0]
        assert len(desk.sent) == 1

    def test_who_was_told_is_not_told_again_because_another_was_not(self, desk: Desk) -> None:
        first, second = sorted((desk.register(request="1"), desk.register(request="2")), key=lambda each: each.id)
        event_id = desk.issue()
        desk.answers = [Answer(204), Answer(500)]
        with pytest.raises(NotYet):
            desk.deliver(event_id)
        desk.wait(PAUSES_S[0])
        desk.deliver(event_id)
        assert [status for _, status, _ in desk.attempts(first)] == [204]
        assert [status for _, status, _ in desk.attempts(second)] == [500, 204]

    @pytest.mark.parametrize(("wish", "pause"), [(120, 120), (1, 5), (10**6, 86_400)])
    def test_the_receivers_wish_to_wait_is_followed_within_a_day(self, desk: Desk, wish: int, pause: int) -> None:
        desk.register()
        event_id = desk.issue()
        desk.answers = [Answer(429, wish)]
        with pytest.raises(NotYet) as caught:
            desk.deliver(event_id)
        assert caught.value.data["retry_after_s"] == pause

    def test_slow_endpoints_leave_the_rest_to_the_next_run(self, desk: Desk) -> None:
        for number in range(3):
            desk.register(request=str(number))
        event_id = desk.issue()
        slow = BUDGET_S + 1
        desk.answers, desk.takes_s = [Answer(204)] * 3, slow
        for told in (1, 2):
            with pytest.raises(NotYet) as caught:
                desk.deliver(event_id)
            assert (len(desk.sent), caught.value.data["retry_after_s"]) == (told, GO_ON_S)
        desk.deliver(event_id)
        assert len({headers["webhook-signature"] for _, headers, _ in desk.sent}) == 3

    def test_an_endpoint_that_is_gone_is_disabled(self, desk: Desk) -> None:
        endpoint, event_id = desk.register(), desk.issue()
        desk.answers = [Answer(410)]
        desk.deliver(event_id)
        assert desk.attempts(endpoint) == [(1, 410, "it answered 410")]
        with desk.database.read() as tx:
            assert load_endpoint(tx, endpoint.id).state == "disabled"

    @pytest.mark.parametrize("status", [301, 302, 307])
    def test_a_redirect_is_a_failure(self, desk: Desk, status: int) -> None:
        desk.register()
        event_id = desk.issue()
        desk.answers = [Answer(status)]
        with pytest.raises(NotYet):
            desk.deliver(event_id)


class TestRotation:
    def rotate(self, desk: Desk, endpoint: Endpoint, request: str, principal: Principal = FINANCE) -> str:
        with desk.database.begin() as tx:
            return rotate_secret(
                tx, principal, endpoint.id, request=request, randomness=desk.randomness, now_ns=desk.clock.now_ns()
            )

    def signatures(self, desk: Desk, endpoint: Endpoint) -> int:
        desk.deliver(desk.issue())
        return len(desk.sent[-1][1]["webhook-signature"].split())

    def test_the_old_secret_goes_on_signing_for_a_day(self, desk: Desk) -> None:
        endpoint = desk.register()
        assert self.signatures(desk, endpoint) == 1
        self.rotate(desk, endpoint, "1")
        assert self.signatures(desk, endpoint) == 2
        desk.clock.now += 86_400 * 10**9
        assert self.signatures(desk, endpoint) == 1

    def test_the_same_request_gives_the_same_secret(self, desk: Desk) -> None:
        endpoint = desk.register()
        first = self.rotate(desk, endpoint, "1")
        second = self.rotate(desk, endpoint, "2")
        assert self.rotate(desk, endpoint, "1") == first != second

    def test_who_sees_less_than_the_endpoint_gets_no_secret_of_it(self, desk: Desk) -> None:
        endpoint = desk.register(ADMIN)
        narrow = Principal("narrow", "alice", frozenset({Scope.ADMIN_WEBHOOKS}))
        with pytest.raises(AccessDenied):
            self.rotate(desk, endpoint, "1", narrow)


def test_an_event_of_an_erased_payload_tells_nothing() -> None:
    desk = Desk()
    desk.register()
    with desk.database.begin() as tx:
        erasable = NewEvent("statement_issued", statement().payload, START_NS, payload_class="erasable")
        (receipt,) = tx.events.append("statement/x", [erasable], expected_version=0)
        tx.events.forget_payload(receipt.event_id)
    desk.deliver(receipt.event_id)
    assert desk.sent == []
