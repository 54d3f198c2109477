"""The explanation of a statement: every number of it down to windows and clauses."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from litestar.params import QueryParameter

from api.parameters import StatementId
from api.rest.routes import Seen, reads
from api.rest.values import Withheld
from ledger.app.access import Scope

ListedWindows: TypeAlias = Annotated[
    Literal["lost", "all"],
    QueryParameter(description="Which windows, intervals or slices are listed: the telling ones, at most 50, or all"),
]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A statement as a reader redoes it by hand; docs/explain.md has every member. What may not be seen is null.

    Counts are numbers; products, amounts (minor units) and instants (nanoseconds) are decimal strings.
    """

    format: str
    statement: Annotated[dict[str, Any], msgspec.Meta(description="Which statement, of which terms and period")]
    coverage: Annotated[dict[str, Any], msgspec.Meta(description="Windows observed, left out, without data, and why")]
    objectives: Annotated[
        list[dict[str, Any]],
        msgspec.Meta(description="Method and formula, parameters, clause, counts, verdict, and what was bad"),
    ]
    credit: Annotated[dict[str, Any] | None, msgspec.Meta(description="The steps to the credit, in their order")]
    exclusions: Annotated[list[dict[str, Any]] | None, msgspec.Meta(description="What became of each exclusion")]
    violations: list[dict[str, Any]] | None
    credit_lines: list[dict[str, Any]] | None
    restatement: Annotated[dict[str, Any] | None, msgspec.Meta(description="What differs from the version it replaces")]
    withheld: Withheld


@reads(
    "/v1/statements/{statement_id:str}/explanation",
    of_the_log=True,
    summary="The explanation of a statement",
    tag="statements",
    scopes=(Scope.READ_AGREEMENTS,),
    problems=(400, 404, 503),
)
def get_explanation(seen: Seen, statement_id: StatementId, windows: ListedWindows = "lost") -> Explanation:
    """Every number of a statement down to windows and clauses, as `sla-ledger explain` shows it."""
    return Explanation(**seen.explanation(statement_id, all_windows=windows == "all"))
