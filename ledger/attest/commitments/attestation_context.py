"""Agreement and period as the byte formats take them: slaId, ctx and window counts."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.app.ports.evidence import StatementContext
from ledger.attest.commitments import statement
from ledger.attest.commitments.telemetry import WindowCounts
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.windows.window import Window, WindowState


def sla_id(agreement: Agreement) -> bytes:
    """The 32 bytes that name an agreement on chain; addresses must be in EIP-55 form."""
    return statement.sla_id(agreement.issuer.evm_address, agreement.customer.evm_address, agreement.nonce)


def context_value(agreement: Agreement, period: Period, context: StatementContext) -> int:
    """ctx of a statement: section 9 of docs/attestation-format.md."""
    return statement.Context(
        chain_id=context.chain_id,
        registry=context.registry,
        sla_id=sla_id(agreement),
        start_ns=period.interval.start_ns,
        end_ns=period.interval.end_ns,
        terms_version=context.terms_version,
        statement_version=context.statement_version,
        previous=context.previous,
    ).value()


def window_counts(windows: Sequence[Window]) -> tuple[WindowCounts, ...]:
    """Judged windows as the circuit counts them."""
    return tuple(
        WindowCounts(
            good=tuple(cell.good for cell in window.cells),
            bad=tuple(cell.bad for cell in window.cells),
            observed=window.state is WindowState.OBSERVED,
            excluded=window.state is WindowState.EXCLUDED,
        )
        for window in windows
    )
