"""Names and values of NVIDIA's DCGM exporter (fields of ``dcgm_fields.h``).

A GPU is its UUID, and a slice of it is UUID and GPU_I_ID. Pod, host and driver are attributes: they change while the
GPU stays. Field 1005 (DRAM_ACTIVE) is memory bandwidth; 1002 and 1004, which some texts call so, are SM and tensor
activity.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from ledger.domain.rows.telemetry import Doubt, EvidenceKind
from ledger.ingest.catalogue import HUNDRED, ONE, Catalogue, Labels, Metric

# DCGM_INT64_BLANK to its last variant, the same of 32 bits, and DCGM_FP64_BLANK (2^47) likewise.
_BLANKS = (
    *range(0x7FFFFFFFFFFFFFF0, 0x7FFFFFFFFFFFFFF4),
    *range(0x7FFFFFF0, 0x7FFFFFF4),
    *range(2**47, 2**47 + 4),
)
_BLANK_SET = frozenset(_BLANKS)
_FIRST_DOUBLE_BLANK = float(2**63)

ABSENCES: Mapping[str, Doubt] = {
    "[N/A]": Doubt.NOT_SUPPORTED,
    "N/A": Doubt.NOT_SUPPORTED,
    "-": Doubt.NOT_SUPPORTED,
    "[Not Supported]": Doubt.NOT_SUPPORTED,
    "[Function Not Found]": Doubt.NOT_SUPPORTED,
    "[Requested functionality has been deprecated]": Doubt.NOT_SUPPORTED,
    "[GPU requires reset]": Doubt.DEVICE_FAULT,
    "ERR!": Doubt.DEVICE_FAULT,
}
"""What NVIDIA's tools print in the place of a number. The last two also say that the device is faulty."""

BANDWIDTH_STEPS = ((Decimal("0.7"), 40), (Decimal("0.82"), 80))
"""Memory bandwidth: above 70 % latency rises, above 82 % held a GPU is bound by it (domain notes, section 3)."""


def _ratio(name: str, steps: tuple[tuple[Decimal, int], ...] = (), *, tells: bool = False) -> tuple[str, Metric]:
    return name, Metric(name, ONE, tells, steps)


_METRICS = (
    _ratio("DCGM_FI_PROF_DRAM_ACTIVE", BANDWIDTH_STEPS, tells=True),
    _ratio("DCGM_FI_PROF_GR_ENGINE_ACTIVE", tells=True),
    _ratio("DCGM_FI_PROF_SM_ACTIVE", tells=True),
    _ratio("DCGM_FI_PROF_SM_OCCUPANCY"),
    _ratio("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
    _ratio("DCGM_FI_PROF_PIPE_FP64_ACTIVE"),
    _ratio("DCGM_FI_PROF_PIPE_FP32_ACTIVE"),
    _ratio("DCGM_FI_PROF_PIPE_FP16_ACTIVE"),
    ("DCGM_FI_DEV_GPU_UTIL", Metric("DCGM_FI_DEV_GPU_UTIL", HUNDRED, tells=True)),
    ("DCGM_FI_DEV_FB_USED", Metric("DCGM_FI_DEV_FB_USED", Decimal(10**7), tells=True)),
    ("DCGM_FI_DEV_FB_FREE", Metric("DCGM_FI_DEV_FB_FREE", Decimal(10**7), tells=True)),
    ("DCGM_FI_DEV_GPU_TEMP", Metric("DCGM_FI_DEV_GPU_TEMP", Decimal(200), tells=True, steps=((Decimal(85), 70),))),
    # A gauge of the last code: what it showed before is no new error.
    (
        "DCGM_FI_DEV_XID_ERRORS",
        Metric("DCGM_FI_DEV_XID_ERRORS", Decimal(10**6), tells=True, steps=((Decimal(0), 95),), on_change=True),
    ),
)


def _subject(labels: Labels) -> str:
    slice_id = labels.get("GPU_I_ID")
    return labels.get("UUID", "") + (f" slice {slice_id}" if slice_id else "")


def _is_blank(value: int | float) -> bool:
    return value in _BLANK_SET or (isinstance(value, float) and value == _FIRST_DOUBLE_BLANK)


CATALOGUE = Catalogue(
    kind=EvidenceKind.GPU_SAMPLE,
    metrics=dict(_METRICS),
    subject=_subject,
    identity=("UUID", "GPU_I_ID"),
    required="UUID",
    percent_suffix="_UTIL",
    blank=_is_blank,
    absences=ABSENCES,
)
