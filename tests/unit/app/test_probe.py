"""What a customer's probe signed is taken in, and stands in the bundle from then on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.bundles.building import build_opening
from ledger.app.settlement.probe import ProbeDesk, probe_signature
from ledger.app.settlement.sealing import collector_signature
from ledger.attest.checks.probe_checks import telemetry_signature_holds
from ledger.attest.crypto import babyjub
from ledger.domain.record.naming import telemetry_stream
from ledger.errors import DocumentInvalid, NotFound, ProbeSignatureRefused
from tests.unit.app.conftest import COLLECTOR, Desk, make_desk, row
from tests.unit.app.test_restating import at_the_end, close, failed, hand_in, late, statements

PROBE, OTHER = b"\x21" * 32, b"\x22" * 32


def named(secret: bytes = PROBE) -> dict[str, Any]:
    point = dict(zip("xy", map(str, babyjub.public_key(secret)), strict=True))
    return {"probe": {"name": "customer-probe", "babyjubjub_public_key": point, "signature": "required"}}


def settled(**terms: Any) -> tuple[Desk, ProbeDesk]:
    desk = at_the_end(make_desk(**terms))
    hand_in(desk, row("a"))
    close(desk)
    return desk, ProbeDesk(desk.database, telemetry_signature_holds, desk.clock)


def signed(desk: Desk, secret: bytes = PROBE, version: int = 1, **changes: Any) -> dict[str, Any]:
    said = statements(desk)[version - 1]
    made = babyjub.sign(secret, int(said["telemetry_root"]))
    return {
        "format": "sla-ledger/probe-signature/v1",
        "statement_id": said["statement_id"],
        "telemetry_root": said["telemetry_root"],
        "signature": {"r8": {"x": str(made.r8[0]), "y": str(made.r8[1])}, "s": str(made.s)},
        **changes,
    }


def test_it_is_recorded_once_beside_the_collector_s() -> None:
    desk, probes = settled(**named())
    first = probes.record(signed(desk))
    assert probes.record(signed(desk)) == first
    said = statements(desk)[0]
    with desk.database.read() as tx:
        events = list(tx.events.stream(telemetry_stream(int(said["seal_key"]))))
    assert [event.type for event in events] == ["telemetry_signed", "telemetry_countersigned"]
    assert collector_signature(events, said["telemetry_root"]) == events[0]
    assert probe_signature(events, said["telemetry_root"]) == events[1]


def test_a_version_with_another_root_wants_another_signature() -> None:
    desk, probes = settled(**named())
    probes.record(signed(desk))
    late(desk, failed("b", 10))
    with desk.database.read() as tx:
        events = list(tx.events.stream(telemetry_stream(int(statements(desk)[1]["seal_key"]))))
    assert probe_signature(events, statements(desk)[1]["telemetry_root"]) is None
    second = probes.record(signed(desk, version=2))
    assert second.version == 3


@pytest.mark.parametrize(
    ("secret", "changes", "why"),
    [
        (OTHER, {}, "did not sign this root"),
        (COLLECTOR, {}, "did not sign this root"),
        (PROBE, {"telemetry_root": "7"}, "and 7 was signed"),
    ],
)
def test_what_it_did_not_sign_is_refused(secret: bytes, changes: dict[str, Any], why: str) -> None:
    desk, probes = settled(**named())
    with pytest.raises(ProbeSignatureRefused, match=why):
        probes.record(signed(desk, secret, **changes))


def test_where_the_terms_name_none_nobody_signs() -> None:
    desk, probes = settled()
    with pytest.raises(ProbeSignatureRefused, match="name no probe"):
        probes.record(signed(desk))


def test_a_statement_that_is_unknown_another_or_not_one_s_own_is_refused() -> None:
    desk, probes = settled(**named())
    with pytest.raises(NotFound):
        probes.record(signed(desk, statement_id="ffffffffffff.2023-06-14.v1"))
    with pytest.raises(DocumentInvalid, match="is asked for"):
        probes.record(signed(desk), statement_id="ffffffffffff.2023-06-14.v1")
    stranger = Principal("s", "default", ROLE_SCOPES[Role.CUSTOMER_ADMIN], frozenset({"0x" + "00" * 32}))
    with pytest.raises(NotFound):
        probes.record(signed(desk), principal=stranger)
    assert probes.record(signed(desk), principal=replace(stranger, sla_ids=None)).version == 1


def test_the_opening_is_as_before() -> None:
    desk, probes = settled(**named())
    name = statements(desk)[0]["statement_id"]
    with desk.database.read() as tx:
        before = build_opening(tx, name)
    probes.record(signed(desk))
    with desk.database.read() as tx:
        assert build_opening(tx, name) == before
