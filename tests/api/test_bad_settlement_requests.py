"""The routes of the settlement engine asked for nonsense: a problem with a stable code comes back, and never a fault.

Bodies are good ones with something in them replaced, whatever JSON, and bytes that are none; agreements, statements and
names are ones that exist, ones that do not, and texts that nobody would send.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from litestar.testing import TestClient

from api.app import create_app
from api.auth.callers import Authentication, Caller
from api.desks import Desks
from api.edge import Edge
from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.reading.queries import Queries
from ledger.app.reading.readiness import Health
from ledger.app.webhooks.desk import WebhookDesk
from ledger.app.work.outbox import OutboxRunner
from ledger.errors import SlaLedgerError
from ledger.settings import WorkerSettings
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import Services, create_data
from ledger.wiring.stages import stage_work
from tests.support.deployment import example_terms
from tests.unit.domain.samples import document

DAY = datetime.now(UTC).date() - timedelta(days=20)
PERIOD = f"{DAY}/P1D"
LINE = {"service": "example-chat", "region": "eu", "model": "m7b", "kind": "recurring", "amount": "15000"}
PARTIES = ("issuer", "customer")
CARVE_OUT = {"id": "dispute", "kind": "dispute", "reason": "both agree"}


@dataclass
class World:
    """A server, an agreement with a closed day on it, and the ids that exist."""

    clients: Mapping[str, TestClient[Any]]
    sla_id: str
    statement_id: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, key_cache: Any) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("nonsense") / "data"
    # With a broker: nothing is worked here, and no chain is opened.
    workers = WorkerSettings(broker_url="redis://127.0.0.1:1/0")
    services = create_data(folder, key_cache=key_cache, notify=lambda _: None, workers=workers)
    clients = {tenant: _client(services, tenant) for tenant in ("default", "other")}
    parties, terms = DemoParties(services.keyring), example_terms()
    compensation = {key: value for key, value in terms["compensation"].items() if key != "base"}
    terms |= {
        "compensation": {**compensation, "charges": {"of": "period"}},
        "effective": {"from": str(DAY - timedelta(days=5)), "until": str(DAY + timedelta(days=40))},
        "settlement": {"mode": "claim", "deadline": {"kind": "days_after_period", "count": 30}},
        "carve_outs": [CARVE_OUT],
    }
    signed = parties.signed(parties.with_keys(terms))
    sla_id = clients["default"].post("/v1/agreements", json={"document": signed}).json()["sla_id"]
    assert clients["default"].post(f"/v1/agreements/{sla_id}/periods/{DAY}/close").status_code == 202
    lines = {"period": PERIOD, "lines": [{**LINE, "currency": "USD"}]}
    assert clients["default"].post(f"/v1/agreements/{sla_id}/charges", json=lines).status_code == 202
    runner = OutboxRunner(services.database, stage_work(services), services.clock, holder="this test")
    while runner.run_once():
        pass
    statement_id = f"{sla_id[2:14]}.{DAY}.v1"
    assert clients["default"].get(f"/v1/statements/{statement_id}/explanation").status_code == 200
    yield World(clients, sla_id, statement_id)
    services.close()


def _client(services: Services, tenant: str) -> TestClient[Any]:
    queries = Queries(services.database, bundles=services.bundles, chain_status=services.chain_status)
    desks = Desks(
        queries=queries,
        public_log=services.public_log,
        credit_desk=CreditDesk(services.database, services.clock),
        webhooks=WebhookDesk(services.database, services.clock, services.randomness),
        commands=services.commands,
    )
    health = Health(services.database, schema_state=services.schema_state, chain_status=services.chain_status)
    everything = frozenset(scope for role in Role for scope in ROLE_SCOPES[role])
    caller = Caller(Principal("who tries", tenant, everything, None))
    app = create_app(desks, health=health)
    edge = Edge(app.app, app.served, authentication=Authentication(caller, {}, lambda _text: ""))
    return TestClient(edge, base_url="http://127.0.0.1", raise_server_exceptions=True)


GOOD: dict[str, Any] = {
    "/v1/agreements/{sla}/exclusions": {
        "id": "d-1",
        "clause": "dispute",
        "from": f"{DAY}T03:00:00Z",
        "to": f"{DAY}T04:00:00Z",
        "reason": "both agree",
        "ticket": "T-1",
        "announced_at": f"{DAY}T00:00:00Z",
        "approved_by": "board",
    },
    "/v1/agreements/{sla}/exclusions/{name}/withdraw": {"reason": "a mistake"},
    "/v1/agreements/{sla}/charges": {
        "period": PERIOD,
        "lines": [{**LINE, "currency": "JPY", "rate": {"rate": "0.0069", "source": "a bank", "date": str(DAY)}}],
    },
    "/v1/agreements/{sla}/amendments": {
        "document": {**document(), "carve_outs": [CARVE_OUT], "signatures": dict.fromkeys(PARTIES, "00" * 64)},
        "registration_signature": "0x" + "00" * 65,
    },
    "/v1/agreements/{sla}/termination-message": {"effective": str(DAY + timedelta(days=30)), "reason": "moved"},
    "/v1/agreements/{sla}/terminate": {
        "effective": str(DAY + timedelta(days=30)),
        "reason": "moved",
        "issuer_signature": "00" * 64,
        "customer_signature": "00" * 64,
    },
    "/v1/agreements/{sla}/periods/{name}/close": {},
    "/v1/statements/{statement}/claims": {"violation_id": "x", "evidence": "ab" * 32},
    "/v1/credit-lines/{statement}.l0001/reverse": {"reason": "paid"},
    "/v1/credit-lines/{statement}.l0001/apply": {"reference": "INV-1"},
}
"""Routes that write, each with a body of the right shape."""

READ = (
    "/v1/agreements/{sla}/exclusions",
    "/v1/agreements/{sla}/charges?period={name}",
    "/v1/agreements/{sla}/budgets?period={name}&over={name}",
    "/v1/statements/{statement}/claims",
    "/v1/statements/{statement}/explanation?objective={name}&windows={name}",
)

NASTY: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**63, -(2**64), 10**400, 1e308, 0.1, "", " ", "0", "-1", "1e400", "NaN", "Infinity"),
    *("\x00", "\u202e", "a\u0000b", "\ud800", "\u2028", "\U0010ffff" * 3, "é", "'; DROP TABLE event; --", "../../x"),
    *("9999-12-31T23:59:60Z", "0000-01-01T00:00:00Z", "2023-02-30", "10000-01-01", "2023-06-14T00:00:00+99:99"),
    *("x" * 5000, "0x" + "f" * 64, "１２", [], {}, [[]], [None], {"": None}, {"$ref": "#"}, [{}] * 300),
)
nasty = st.sampled_from(NASTY).map(copy.deepcopy)  # what was drawn is changed in its turn
names = st.one_of(
    st.sampled_from(["d-1", str(DAY), PERIOD, "2023-06-14/P1D", "0001-01-01", "9999-12-31", "9999-12-31/P1D", "1h"]),
    nasty.filter(lambda value: isinstance(value, str)),
    st.text(max_size=30),
)


@st.composite
def changed(draw: st.DrawFn, good: Any) -> Any:
    """A good body of which up to three members, at any depth, are something else, gone, or have a stranger beside."""
    body = copy.deepcopy(good)
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
        node = body
        while isinstance(node, dict | list) and node:
            key = draw(st.sampled_from(list(node) if isinstance(node, dict) else list(range(len(node)))))
            if isinstance(node[key], dict | list) and node[key] and draw(st.booleans()):
                node = node[key]
                continue
            if isinstance(node, dict) and draw(st.integers(0, 4)) == 0:
                del node[key]
            elif isinstance(node, dict) and draw(st.integers(0, 5)) == 0:
                node[draw(names)] = draw(nasty)
            else:
                node[key] = draw(nasty)
            break
    return body


def bodies(good: Any) -> st.SearchStrategy[bytes]:
    """Bytes of a request: of a changed body, of whatever JSON, and of none."""
    written = st.one_of(changed(good), nasty).map(lambda value: json.dumps(value).encode())
    raw = st.sampled_from(
        [
            b"",
            b"{",
            b"\xff\xfe",
            b"\xef\xbb\xbf{}",
            b"{}{}",
            b'{"reason": NaN}',
            b'{"lines": [{"amount": Infinity}], "period": 1e999}',
            b'{"reason": "\xed\xa0\x80"}',
            b'{"reason": "a", "reason": "b"}',
            b"[" * 5000 + b"]" * 5000,
            b'{"a":' * 2000 + b"1" + b"}" * 2000,
            b'{"lines": ' + b"[" * 900 + b"]" * 900 + b"}",
            b'{"amount": 1' + b"0" * 6000 + b"}",
            b'{"reason": "' + b"x" * 3_000_000 + b'"}',
        ]
    )
    return st.one_of(*[written] * 6, raw, st.binary(max_size=40))


Asked = tuple[str, str, bytes, dict[str, str], bool]
"""Tenant, path, body, headers, and whether it is a write."""


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    writes = draw(st.integers(0, 3)) > 0
    route = draw(st.sampled_from(list(GOOD) if writes else list(READ)))
    headers = {"content-type": draw(st.sampled_from(["application/json"] * 20 + ["text/plain", "a/b;c"]))}
    if route.startswith(("/v1/statements", "/v1/credit-lines")):
        headers["idempotency-key"] = draw(st.sampled_from([*("k1", "k2", "k3") * 3, "", "x" * 300, "a b", "\x7f"]))
    body = draw(bodies(GOOD[route])) if writes else b""
    known = draw(st.integers(0, 5)) > 0
    texts = {
        "sla": "{sla}" if known else quote(draw(names), safe="", errors="surrogatepass"),
        "statement": "{statement}" if known else quote(draw(names), safe="", errors="surrogatepass"),
        "name": quote(draw(names), safe="", errors="surrogatepass"),
    }
    tenant = draw(st.sampled_from(["default", "default", "default", "other"]))
    return tenant, route.format(**texts), body, headers, writes


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(asked())
def test_nonsense_is_a_problem_and_not_a_fault(world: World, said: Asked) -> None:
    tenant, path, body, headers, writes = said
    path = path.replace("{sla}", world.sla_id).replace("{statement}", world.statement_id)
    client = world.clients[tenant]
    response = client.request("POST" if writes else "GET", path, content=body, headers=headers)
    assert response.status_code < 500, (path, response.text)
    if response.status_code >= 400:
        assert response.headers["content-type"].startswith("application/problem+json"), response.text
        problem = response.json()
        assert problem["code"] in CODES, problem
        assert problem["status"] == response.status_code
        assert "Traceback" not in response.text
        assert len(response.content) < 20_000
    elif tenant == "other":
        assert world.sla_id not in response.text


def _codes(of: type[SlaLedgerError]) -> set[str]:
    return {of.code}.union(*map(_codes, of.__subclasses__()))


CODES = _codes(SlaLedgerError)
"""What the documentation tells users to look for."""
