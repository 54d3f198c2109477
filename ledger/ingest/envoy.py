"""Names of Envoy's statistics, as Envoy itself and Istio export them (the label is ``cluster_name`` there).

An open circuit of Envoy's is the proxy's own limit on connections or requests: it says that its client wanted more,
not that the service failed, so it tells little. A host that outlier detection has taken out tells much.
"""

from __future__ import annotations

from decimal import Decimal

from ledger.domain.rows.telemetry import EvidenceKind
from ledger.ingest.catalogue import Catalogue, Labels, Metric

_PREFIX = "envoy_cluster_circuit_breakers"
_ABOVE_NONE = Decimal(0)


def _subject(labels: Labels) -> str:
    return labels.get("envoy_cluster_name") or labels.get("cluster_name") or "the proxy"


_OPEN = [
    f"{_PREFIX}_{priority}_{limit}_open"
    for priority in ("default", "high")
    for limit in ("cx", "cx_pool", "rq", "rq_pending", "rq_retry")
]

CATALOGUE = Catalogue(
    kind=EvidenceKind.SERVER_METRIC,
    metrics={
        **{name: Metric(name, Decimal(1), tells=True, steps=((_ABOVE_NONE, 30),)) for name in _OPEN},
        **{
            name: Metric(name, tells=True, steps=((_ABOVE_NONE, 90),))
            for name in ("envoy_cluster_outlier_detection_ejections_active",)
        },
    },
    subject=_subject,
)
