"""Where an agreement stands now: its versions of terms, when each is in force, and what ends it."""

from __future__ import annotations

import strawberry

from api.graphql.scalars import Count, InstantNs, instant_or_none
from ledger.app.paging import Row


@strawberry.type(description="One version of the terms, in force between two instants.")
class TermsVersion:
    terms_version: int
    doc_sha256: str
    state: str = strawberry.field(
        description="signed (not in force yet), active, amended (of a version), terminated or expired"
    )
    in_force_from: InstantNs | None = strawberry.field(
        description="null for a version that a notice kept from coming into force"
    )
    in_force_until: InstantNs | None
    registered_at: InstantNs
    on_chain: bool = strawberry.field(description="Whether it was registered on chain, too")
    seq: Count | None


@strawberry.type(description="What becomes of an agreement when; what is to come is among it.")
class Milestone:
    at: InstantNs
    what: str = strawberry.field(description="signed, active, amended, terminated or expired")
    terms_version: int


@strawberry.type(description="The notice that ends an agreement.")
class Termination:
    effective: str = strawberry.field(description="Local date at whose start it ends")
    at: InstantNs
    signed_by: list[str] = strawberry.field(description="issuer, customer or both")
    reason: str
    seq: Count | None


@strawberry.type(description="Where an agreement stands now.")
class Lifecycle:
    state: str = strawberry.field(description="signed (not in force yet), active, terminated or expired")
    versions: list[TermsVersion]
    timeline: list[Milestone]
    termination: Termination | None


def lifecycle_of(row: Row) -> Lifecycle:
    ended = row["termination"]
    same = ("terms_version", "doc_sha256", "state", "on_chain", "seq")
    return Lifecycle(
        state=row["state"],
        versions=[
            TermsVersion(
                **{name: each[name] for name in same},
                in_force_from=instant_or_none(each["from_ns"]),
                in_force_until=instant_or_none(each["until_ns"]),
                registered_at=InstantNs(each["registered_at_ns"]),
            )
            for each in row["versions"]
        ],
        timeline=[
            Milestone(at=InstantNs(each["at_ns"]), what=each["what"], terms_version=each["terms_version"])
            for each in row["timeline"]
        ],
        termination=ended
        and Termination(
            **{name: ended[name] for name in ("effective", "signed_by", "reason", "seq")}, at=InstantNs(ended["at_ns"])
        ),
    )
