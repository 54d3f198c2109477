"""``slaReport``: the figures of a time window, each computed when it is asked for."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from io import BytesIO

import strawberry

from api.graphql.access import resolves, scoped
from api.graphql.context import RequestContext
from api.graphql.scalars import Count, Decimal, InstantNs, decimal
from api.rest.values import attainment_percent
from ledger.app.reading.sla_report import Latency, Uptime
from ledger.domain.time.instant import SECOND_NS
from ledger.domain.time.interval import Interval
from ledger.errors import NotFound, QueryInvalid
from ledger.ingest.request_log import RequestLog

_MINUTE_NS = 60 * SECOND_NS
_HOUR_NS = 60 * _MINUTE_NS
_NS_PER_MS_DIGITS = 6


@strawberry.enum(description="A time window that ends with the last whole minute.")
class NamedRange(Enum):
    LAST_HOUR = _HOUR_NS
    LAST_24_HOURS = 24 * _HOUR_NS
    LAST_7_DAYS = 7 * 24 * _HOUR_NS
    LAST_30_DAYS = 30 * 24 * _HOUR_NS


@strawberry.input(description="Either `from` and `to`, or `range`.")
class TimeWindow:
    from_: InstantNs | None = strawberry.field(name="from", default=None, description="The first instant")
    to: InstantNs | None = strawberry.field(default=None, description="The first instant after it")
    range: NamedRange | None = None

    def interval(self, now_ns: int) -> Interval:
        """Raises ``QueryInvalid`` for a mixture, and ``IntervalInvalid`` for one that does not end after its start."""
        if self.range is not None and self.from_ is None and self.to is None:
            end_ns = now_ns // _MINUTE_NS * _MINUTE_NS
            return Interval(end_ns - self.range.value, end_ns)
        if self.range is not None or self.from_ is None or self.to is None:
            raise QueryInvalid("timeWindow needs either both from and to, or range", parameter="timeWindow")
        return Interval(self.from_, self.to)


class ReportSource:
    """Reads each kind of figure once."""

    def __init__(self, within: Interval, context: RequestContext) -> None:
        self._within = within
        self._context = context

    @cached_property
    def uptime(self) -> Uptime:
        return self._context.queries.uptime(self._within, may_see=self._context.principal.may_see)

    @cached_property
    def latency(self) -> Latency:
        return self._context.queries.response_latency(
            self._within,
            read_rows=lambda data: RequestLog(BytesIO(data), "batch"),
            may_see=self._context.principal.may_see,
            cache=self._context.latency_cache,
        )


@strawberry.type(description="What was measured in a time window, over all agreements of a customer.")
class SlaReport:
    customer_id: strawberry.ID
    start: InstantNs = strawberry.field(name="from")
    end: InstantNs = strawberry.field(name="to", description="The first instant after it")
    source: strawberry.Private[ReportSource]

    @resolves(
        scoped(
            "sla_report",
            "uptime_percent",
            description="Requests that succeeded / requests that count, of the committed windows inside; "
            "four decimals, rounded down, so 100 stands only where nothing failed; null where nothing was counted",
        )
    )
    def uptime_percent(self) -> Decimal | None:
        return decimal(attainment_percent(self.source.uptime.good, self.source.uptime.valid))

    @resolves(
        scoped(
            "sla_report",
            "error_rate_percent",
            description="What uptimePercent leaves of 100: rounded up, so 0 stands only where nothing failed",
        )
    )
    def error_rate_percent(self) -> Decimal | None:
        return decimal(error_rate_percent(self.source.uptime.good, self.source.uptime.valid))

    @resolves(scoped("sla_report", "requests", description="Requests that count, of the committed windows inside"))
    def requests(self) -> Count | None:
        return Count(self.source.uptime.valid)

    @resolves(scoped("sla_report", "windows", description="Committed windows wholly inside the time window"))
    def windows(self) -> Count | None:
        return Count(self.source.uptime.windows)

    @resolves(
        scoped(
            "sla_report",
            "p95_latency_ms",
            name="p95LatencyMs",
            description="95th percentile (exact nearest rank over the recorded rows) of the time to the end of the "
            "answer of requests that succeeded; null where none was measured",
        )
    )
    def p95_latency_ms(self) -> Decimal | None:
        latency_ns = self.source.latency.p95_ns
        return None if latency_ns is None else Decimal(milliseconds(latency_ns))

    @resolves(scoped("sla_report", "measured_requests", description="Requests that p95LatencyMs is the percentile of"))
    def measured_requests(self) -> Count | None:
        return Count(self.source.latency.measured)


def sla_report(customer_id: str, time_window: TimeWindow, context: RequestContext) -> SlaReport:
    """The report of the principal's own tenant.

    Raises ``NotFound`` for any other, whether there is one of that name or not. Who may act for several tenants says
    for which with the request.
    """
    if customer_id != context.principal.tenant:
        raise NotFound(
            f"there is no customer {customer_id[:64]} here; ask for the tenant that your credentials act for",
            customer=customer_id[:64],
        )
    within = time_window.interval(context.now_ns())
    return SlaReport(
        customer_id=strawberry.ID(customer_id),
        start=InstantNs(within.start_ns),
        end=InstantNs(within.end_ns),
        source=ReportSource(within, context),
    )


def error_rate_percent(good: int, valid: int) -> str | None:
    """100 - the attainment as it is shown: they add up, and no failure is rounded away."""
    shown = attainment_percent(good, valid)
    if shown is None:
        return None
    whole, _, decimals = shown.partition(".")
    rest = 100 * 10 ** len(decimals) - int(whole + decimals)
    return f"{rest // 10 ** len(decimals)}.{rest % 10 ** len(decimals):0{len(decimals)}}"


def milliseconds(latency_ns: int) -> str:
    """The exact value in milliseconds, without zeros at its end."""
    whole, rest = divmod(latency_ns, 10**_NS_PER_MS_DIGITS)
    return f"{whole}.{rest:0{_NS_PER_MS_DIGITS}}".rstrip("0").rstrip(".")
