"""What each route answers about a real ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from litestar.testing import TestClient

from ledger.app.log.erasure import erase_payload
from ledger.attest.crypto.signing import NoteKey, verify
from ledger.domain.record.canonical import canonical_bytes, parse_json
from ledger.domain.record.events import PAYLOAD_PREFIX
from ledger.merkle.checkpoint import open_checkpoint
from ledger.merkle.verify import verify_inclusion
from tests.api.filled import TRACE
from tests.conformance.samples import erasable, window

Client = TestClient[Any]


def test_agreement_as_it_was_signed(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    (summary,) = client.get("/v1/agreements").json()["items"]
    assert summary["sla_id"] == sla_id
    assert summary["objectives"] == ["availability", "ttft", "response"]
    assert (summary["effective_from"], summary["effective_until"]) == ("2023-01-01", "2024-01-01")
    detail = client.get(f"/v1/agreements/{sla_id}").json()
    assert detail["summary"] == summary
    assert detail["document"]["compensation"]["base"] == "8000.00"
    assert set(detail["document"]["signatures"]) == {"issuer", "customer"}


def test_statement_with_its_credit_proof_and_anchor(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    name = ledger.statement(sla_id, day=18)
    bare = client.get(f"/v1/statements/{name}").json()
    assert (bare["statement"]["attestation"], bare["statement"]["anchor"]) == (None, None)
    ledger.attest(name, sla_id)
    ledger.anchor(name, sla_id)

    detail = client.get(f"/v1/statements/{name}").json()
    statement = detail["statement"]
    assert client.get("/v1/statements").json()["items"] == [statement]
    assert statement["start"] == {"rfc3339": "2023-12-19T00:00:00Z", "ns": "1702944000000000000"}
    assert statement["end"]["rfc3339"] == "2023-12-20T00:00:00Z"
    assert statement["windows"] == {"total": 24, "observed": 23, "excluded": 1, "idle": 2}
    assert statement["credit"] == {"currency": "USD", "minor_units": "80000", "amount": "800.00"}
    assert statement["attestation"]["signals"][5] == str(2**200 + 5)
    assert statement["attestation"]["dev_key"] is True
    assert statement["anchor"]["chain_id"] == "131277322940537"
    assert statement["seq"] == 3
    assert (detail["issued_seq"], detail["trace"]) == (1, TRACE)
    # The log's clock has nanoseconds, and they survive.
    assert detail["recorded"]["rfc3339"].endswith(".123456789Z")


@pytest.mark.parametrize(
    ("good", "valid", "shown"),
    [
        (999_949, 1_000_000, "99.9949"),
        (9_999_999, 10_000_000, "99.9999"),
        (2**53 - 2, 2**53 - 1, "99.9999"),
        (5, 5, "100.0000"),
        (0, 7, "0.0000"),
        (1, 3_000_000, "0.0000"),
        (0, 0, None),
    ],
)
def test_attainment_is_never_rounded_up(
    ledger: Any, client: Client, make_objective: Callable[..., Any], good: int, valid: int, shown: str | None
) -> None:
    state = "no_data" if valid == 0 else "breached"
    ledger.statement(ledger.agreement(1), objectives=[make_objective("availability", good, valid, "99.95", state)])
    ((result,),) = [item["objectives"] for item in client.get("/v1/statements").json()["items"]]
    assert (result["good"], result["valid"]) == (good, valid)
    assert (result["target_percent"], result["attainment_percent"]) == ("99.95", shown)


def test_withheld_statement_has_no_credit(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    name = ledger.statement(
        sla_id, state="withheld", credit=None, unattested_reasons=["coverage_below_floor"], telemetry_root=None
    )
    statement = client.get(f"/v1/statements/{name}").json()["statement"]
    assert (statement["state"], statement["credit"]) == ("withheld", None)
    assert statement["unattested_reasons"] == ["coverage_below_floor"]
    assert client.get("/v1/credits").json() == {"items": [], "next_cursor": None}


def test_credit_beyond_what_a_json_number_carries(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    name = ledger.statement(sla_id, credit={"currency": "KWD", "minor_units": str(2**64 - 1)})
    (credit,) = client.get("/v1/credits", params={"sla_id": sla_id}).json()["items"]
    assert credit["credit"] == {
        "currency": "KWD",
        "minor_units": "18446744073709551615",
        "amount": "18446744073709551.615",
    }
    assert (credit["statement_id"], credit["status"], credit["proof_hash"]) == (name, "issued", None)
    ledger.attest(name, sla_id)
    (credit,) = client.get("/v1/credits").json()["items"]
    assert credit["proof_hash"] == "0x" + "ef" * 32


def test_no_number_in_any_answer_exceeds_2_to_the_53(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    name = ledger.statement(sla_id, credit={"currency": "JPY", "minor_units": str(2**64 - 1)})
    ledger.attest(name, sla_id)
    ledger.anchor(name, sla_id)
    paths = ["agreements", f"agreements/{sla_id}", "statements", f"statements/{name}", "credits", "events", "chain"]
    for path in [*paths, f"statements/{name}/inclusion"]:
        response = client.get(f"/v1/{path}")
        assert response.status_code == 200, path
        # It refuses floats, duplicate keys and integers beyond 2^53.
        parse_json(response.content, max_bytes=2**20)


def test_bundle_is_the_exact_bytes(ledger: Any, client: Client) -> None:
    name = ledger.statement(ledger.agreement(1))
    missing = client.get(f"/v1/bundles/{name}")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    data = canonical_bytes({"format": "sla-ledger/bundle/v1", "text": "ü \u2028"})
    ledger.bundles[name] = data
    response = client.get(f"/v1/bundles/{name}")
    assert response.content == data
    assert response.headers["content-type"] == "application/json"
    assert client.get(f"/v1/bundles/{name}", headers={"if-none-match": response.headers["etag"]}).status_code == 304
    assert response.headers["cache-control"] == "private, no-cache"
    assert response.headers["vary"] == "Authorization, Sla-Tenant"


def test_bundle_of_no_statement_is_not_looked_for(ledger: Any, client: Client) -> None:
    ledger.bundles["../../etc/passwd"] = ledger.bundles["ghost"] = b"{}"
    for name in ("ghost", "..%2F..%2Fetc%2Fpasswd"):
        assert client.get(f"/v1/bundles/{name}").status_code == 404


def test_a_reader_recomputes_the_tree_from_the_events(ledger: Any, client: Client, log_key: NoteKey) -> None:
    sla_id = ledger.agreement(1)
    name = ledger.statement(sla_id)
    note = ledger.sign_checkpoint()
    page = client.get("/v1/events").json()
    assert (page["next_since"], page["log_size"]) == (2, 2)
    for event in page["items"]:
        header, salt = canonical_bytes(event["header"]), bytes.fromhex(event["salt"])
        assert event["leaf_hash"] == hashlib.sha256(b"\x00" + header).hexdigest()
        opened = hashlib.sha256(PAYLOAD_PREFIX + salt + canonical_bytes(event["payload"])).hexdigest()
        assert event["header"]["payload_commitment"] == opened
    left, right = (bytes.fromhex(event["leaf_hash"]) for event in page["items"])
    root = hashlib.sha256(b"\x01" + left + right).digest()
    latest = client.get("/v1/checkpoints/latest")
    assert latest.headers["content-type"].startswith("text/plain")
    assert latest.text == note == client.get("/v1/checkpoints/2").text
    stated = open_checkpoint(latest.content, log_key.key.name, [log_key.key], verify).checkpoint
    assert (stated.size, stated.root) == (2, root)

    proof = client.get(f"/v1/statements/{name}/inclusion").json()
    assert (proof["seq"], proof["size"], proof["root"], proof["checkpoint"]) == (1, 2, root.hex(), note)
    assert proof["entry"] == page["items"][1]["header"]


def test_events_in_slices_and_past_the_end(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    for day in range(4):
        ledger.statement(sla_id, day)
    seen, since = [], 0
    while (page := client.get("/v1/events", params={"since": since, "limit": 2}).json())["items"]:
        seen += [event["seq"] for event in page["items"]]
        since = page["next_since"]
    assert seen == [0, 1, 2, 3, 4]
    assert client.get("/v1/events?since=900").json() == {"items": [], "next_since": 900, "log_size": 5}


def test_inclusion_under_any_size_that_covers_the_statement(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    names = [ledger.statement(sla_id, day) for day in range(6)]
    for size in range(4, 8):
        proof = client.get(f"/v1/statements/{names[2]}/inclusion", params={"size": size}).json()
        path = [bytes.fromhex(node) for node in proof["path"]]
        leaf, root = bytes.fromhex(proof["leaf_hash"]), bytes.fromhex(proof["root"])
        verify_inclusion(3, size, leaf, path, root)
        assert proof["checkpoint"] is None
    for size in (3, 8):
        refused = client.get(f"/v1/statements/{names[2]}/inclusion", params={"size": size})
        assert (refused.status_code, refused.json()["code"]) == (400, "outside_tree")
        assert "from 4 to 7" in refused.json()["detail"]


def test_inclusion_of_a_statement_younger_than_the_checkpoint(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    ledger.sign_checkpoint()
    name = ledger.statement(sla_id)
    proof = client.get(f"/v1/statements/{name}/inclusion").json()
    assert (proof["size"], proof["checkpoint"]) == (2, None)


def test_no_checkpoint_yet(ledger: Any, client: Client) -> None:
    ledger.agreement(1)
    for path in ("latest", "1", "0"):
        response = client.get(f"/v1/checkpoints/{path}")
        assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_chain_says_what_was_not_replayed(ledger: Any, client: Client) -> None:
    common = {"block_number": 1, "block_hash": "0x" + "bb" * 32, "state": "finalized"}
    ledger.chain["transactions"] = [
        {"ordinal": 0, "purpose": "deploy registry", "tx_hash": "0x" + "aa" * 32, "reason": None, **common},
        {"ordinal": 1, "purpose": "record", "tx_hash": "0x" + "ab" * 32, "reason": "no block time", **common},
    ]
    ledger.chain["total"] = 2
    chain = client.get("/v1/chain").json()
    assert (chain["chain_id"], chain["replayed"], chain["not_replayed"]) == ("131277322940537", 1, 1)
    assert [(item["replayed"], item["reason"]) for item in chain["transactions"]] == [
        (True, None),
        (False, "no block time"),
    ]
    ready = client.get("/health/ready").json()
    assert (ready["status"], ready["chain_transactions"], ready["chain_not_replayed"]) == ("ready", 2, 1)


def test_chain_of_a_node_that_was_never_reached(ledger: Any, client: Client) -> None:
    ledger.chain |= {"kind": "rpc", "chain_id": None, "registry": None, "error": "the node does not answer"}
    chain = client.get("/v1/chain").json()
    assert (chain["kind"], chain["chain_id"], chain["error"]) == ("rpc", None, "the node does not answer")
    assert client.get("/health/ready").json()["status"] == "ready", "what is stored is served without the node"


def test_chain_says_how_far_transactions_are_and_what_the_watcher_saw(ledger: Any, client: Client) -> None:
    empty = client.get("/v1/chain").json()
    assert (empty["states"]["submitted"], empty["unfinalized_seconds"], empty["looks"]) == (0, 0, [])
    ledger.transactions("submitted", "finalized")
    ledger.watched(error="the node refuses")
    chain = client.get("/v1/chain").json()
    assert chain["states"] == {"submitted": 1, "included": 0, "safe": 0, "finalized": 1, "failed": 0}
    assert chain["unfinalized_seconds"] > 10**6
    (look,) = chain["looks"]
    assert (look["chain_id"], look["latest"], look["finalized"], look["error"]) == ("1", 90, 20, "the node refuses")
    assert (look["next_block"], look["unread_from"], look["unread_to"]) == (21, 3, 9)


def test_what_others_did_at_the_registry_is_listed_the_newest_first(ledger: Any, client: Client) -> None:
    assert client.get("/v1/chain/events").json() == {"items": []}
    ledger.watched()
    ledger.of_others("VerifierRetired", concerns="registry")
    ledger.of_others("StatementRecorded", concerns="statement", sla_id="0x" + "1f" * 32)
    second, first = client.get("/v1/chain/events").json()["items"]
    assert (first["name"], first["concerns"], first["sla_id"], first["seq"]) == ("VerifierRetired", "registry", None, 0)
    assert (second["name"], second["sla_id"]) == ("StatementRecorded", "0x" + "1f" * 32)
    assert second["arguments"] == {"ctx": "7"}
    assert client.get("/v1/chain/events?limit=1").json()["items"] == [second]


def test_an_anchor_says_how_far_its_transaction_is(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    name = ledger.statement(sla_id)
    ledger.anchor(name, sla_id)

    def state() -> str:
        (row,) = client.get("/v1/statements").json()["items"]
        one = client.get(f"/v1/statements/{name}").json()["statement"]
        assert one["anchor"]["state"] == row["anchor"]["state"]
        return str(one["anchor"]["state"])

    assert state() == "included", "another party's: as the log has it"
    ledger.transactions("safe")
    ledger.watched()
    assert state() == "safe", "a look at the chain changes answers that were kept"


def test_anchor_that_the_rebuilt_chain_does_not_hold(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    name = ledger.statement(sla_id)
    ledger.anchor(name, sla_id)
    assert client.get(f"/v1/statements/{name}").json()["statement"]["anchor"]["not_replayed"] is None
    anchored = {"ordinal": 0, "purpose": "record", "tx_hash": "0x" + "aa" * 32, "block_number": 5, "block_hash": None}
    ledger.chain["transactions"] = [{**anchored, "reason": "reverted in block 5"}]
    (statement,) = client.get("/v1/statements").json()["items"]
    assert statement["anchor"]["not_replayed"] == "reverted in block 5"


def test_ready_counts_the_outbox(ledger: Any, client: Client) -> None:
    sla_id = ledger.agreement(1)
    ledger.statement(sla_id)
    with ledger.database.begin() as tx:
        first, second = tx.events.at(0).id, tx.events.at(1).id
        tx.outbox.add(first, "register")
        tx.outbox.add(second, "prove")
        lease = tx.outbox.lease(1, 1, holder="worker", stages=["prove"])
        tx.outbox.fail(lease, error="prover_unavailable: it died", retry_at_ns=None)
    ready = client.get("/health/ready").json()
    assert (ready["outbox_pending"], ready["outbox_parked"], ready["log_size"]) == (1, 1, 2)


def test_not_ready_while_a_migration_is_missing(ledger: Any, client: Client) -> None:
    ledger.schema = type(ledger.schema)(current="0001", head="0002")
    response = client.get("/health/ready")
    assert (response.status_code, response.json()["code"]) == (503, "not_ready")
    assert response.json()["data"] == {"schema": "0001", "schema_needed": "0002"}
    assert client.get("/health/live").json() == {"status": "alive"}


def test_unreadable_database_is_unavailable_not_a_crash(ledger: Any, client: Client, tmp_path: Any) -> None:
    ledger.agreement(1)
    ledger.database.close()
    for file in tmp_path.iterdir():
        file.unlink()
    (tmp_path / "ledger.db").mkdir()
    assert client.get("/health/live").status_code == 200
    for path in ("/health/ready", "/v1/agreements"):
        response = client.get(path)
        assert response.status_code == 503, response.text
        assert response.headers["content-type"] == "application/problem+json"
        assert json.loads(response.content)["detail"]


def test_an_erased_payload_is_null_and_its_leaf_stays(ledger: Any, client: Client) -> None:
    with ledger.database.begin() as tx:
        (receipt,) = tx.events.append("s", [erasable(window(0))], expected_version=0)
    (before,) = client.get("/v1/events").json()["items"]
    with ledger.database.begin() as tx:
        erase_payload(tx, receipt.event_id, reason="asked", requested_by=None, now_ns=1)
    after, record = client.get("/v1/events").json()["items"]
    assert after == {**before, "payload": None, "salt": None}
    assert (before["payload"]["index"], record["payload"]["event_id"]) == (0, receipt.event_id)


class TestVersions:
    """A statement that another version replaced is shown where all versions are asked for, or it by its id."""

    def restate(self, ledger: Any) -> tuple[str, str, str]:
        """An agreement, the first and the second version of its statement."""
        sla_id = ledger.agreement(1)
        first = ledger.statement(sla_id, credit={"currency": "USD", "minor_units": "50000"})
        second = first.removesuffix("v1") + "v2"
        ledger.statement(
            sla_id,
            statement_id=second,
            statement_version=2,
            accepts_until_ns="1704067200000000000",
            restates={"statement_id": first, "event_id": "0" * 8 + "-0000-0000-0000-" + "0" * 12, "facts": []},
            reason="a batch came late",
            objective_deltas=[
                {
                    "id": "availability",
                    "good": {"old": 999_950, "new": 999_949, "difference": -1},
                    "valid": {"old": 1_000_000, "new": 1_000_000, "difference": 0},
                    "state": {"old": "breached", "new": "breached"},
                }
            ],
            credit_delta={"currency": "USD", "old": "50000", "new": "80000", "difference": "30000"},
        )
        return sla_id, first, second

    def test_lists_have_the_newest_unless_all_are_asked_for(self, ledger: Any, client: Client) -> None:
        _, first, second = self.restate(ledger)

        def ids(path: str, member: str, **asked: str) -> list[str]:
            return [item[member] for item in client.get(path, params=asked).json()["items"]]

        assert ids("/v1/statements", "id") == [second]
        assert ids("/v1/statements", "id", versions="all") == [first, second]
        assert ids("/v1/credits", "statement_id") == [second]
        assert ids("/v1/credits", "statement_id", versions="all") == [first, second]
        assert client.get("/v1/statements", params={"versions": "oldest"}).status_code == 400

    def test_each_says_how_it_stands_and_the_newer_one_what_it_replaces(self, ledger: Any, client: Client) -> None:
        _, first, second = self.restate(ledger)
        old, new = (client.get(f"/v1/statements/{name}").json()["statement"] for name in (first, second))
        assert (old["standing"], old["restated_by"], old["restates"], old["reason"]) == ("restated", second, None, None)
        assert (new["standing"], new["restated_by"], new["reason"]) == ("draft", None, "a batch came late")
        assert new["restates"]["statement_id"] == first
        assert new["accepts_until"]["rfc3339"] == "2024-01-01T00:00:00Z"
        assert new["credit_delta"]["old"]["amount"] == "500.00"
        assert new["credit_delta"]["difference"] == {"currency": "USD", "minor_units": "30000", "amount": "300.00"}
        assert new["objective_deltas"][0]["good"] == {"old": 999_950, "new": 999_949, "difference": -1}
