"""The notice that ends an agreement: what it says, what is signed of it, and what is none."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from ledger.domain.terms.termination import NOTICE, Notice, notice_message, unsigned_notice
from ledger.errors import DocumentInvalid

SLA_ID, DOC, SIGNATURE = "0x" + "5a" * 32, "cd" * 32, "ab" * 64
UNSIGNED = unsigned_notice(SLA_ID, DOC, "2023-03-15", "moved to another provider")


def notice(**changes: Any) -> Notice:
    return Notice.from_document({**UNSIGNED, "signatures": {"customer": SIGNATURE}, **changes})


def test_it_says_what_ends_when_and_why() -> None:
    found = notice()
    assert (found.sla_id, found.doc_sha256, found.effective) == (SLA_ID, DOC, date(2023, 3, 15))
    assert found.reason == "moved to another provider"


def test_all_of_it_but_the_signatures_is_signed() -> None:
    signed = (
        b"sla-ledger/termination/v1\n"
        b'{"apiVersion":"sla-ledger/v1","doc_sha256":"' + DOC.encode() + b'","effective":"2023-03-15",'
        b'"kind":"Termination","reason":"moved to another provider","sla_id":"' + SLA_ID.encode() + b'"}'
    )
    assert notice().signing_message == notice_message(UNSIGNED) == signed


@pytest.mark.parametrize("parties", [("issuer",), ("customer",), ("issuer", "customer")])
def test_one_party_signs_or_both(parties: tuple[str, ...]) -> None:
    assert notice(signatures=dict.fromkeys(reversed(parties), SIGNATURE)).signed_by == parties


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"signatures": {}}, "signatures"),
        ({"signatures": {"auditor": SIGNATURE}}, "signatures.auditor"),
        ({"signatures": {"issuer": SIGNATURE[1:]}}, "signatures.issuer"),
        ({"apiVersion": "sla-ledger/v2"}, "apiVersion"),
        ({"kind": "Agreement"}, "kind"),
        ({"sla_id": "5a" * 32}, "sla_id"),
        ({"doc_sha256": "CD" * 32}, "doc_sha256"),
        ({"doc_sha256": "cd" * 32 + "~"}, "doc_sha256"),
        ({"effective": "2023-02-30"}, "effective"),
        ({"effective": "15 March"}, "effective"),
        ({"reason": ""}, "reason"),
        ({"reason": "r" * 501}, "reason"),
        ({"reason": "moved\u202e"}, "reason"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_no_notice_is_refused_by_its_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(DocumentInvalid) as refused:
        notice(**changes)
    assert refused.value.data["field"] == field


def test_a_reason_may_be_long() -> None:
    assert notice(reason="r" * 500).reason == "r" * 500


def test_its_published_shape_says_what_it_is() -> None:
    assert NOTICE.json_schema()["title"] == "sla-ledger Termination v1"
