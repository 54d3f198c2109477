"""Faults that users of other tools report, and the tests that show this one does not have them.

``project#number`` is the report. The name of each test, or its docstring, says the report it is for.
"""

from __future__ import annotations

from typing import NamedTuple


class FieldReport(NamedTuple):
    """``fault``: what the users met; ``tests``: ``path::function`` below ``tests/``."""

    fault: str
    tests: tuple[str, ...]


_HISTOGRAM_LOG = "unit/app/test_histogram_feed.py"
_HISTOGRAM = "unit/domain/test_histogram.py"
_RATIO = "unit/domain/methods/test_ratio.py"
_COUNTERS = "unit/app/test_counter_feed.py"
_OUTAGES = "unit/app/test_outage_feed.py"
_HEARTBEATS = "unit/app/test_heartbeats.py"
_SAMPLES = "unit/domain/test_samples.py"

FIELD_REPORTS = {
    "pyrra#981": FieldReport(
        "counters are summed before their rate is taken, so one restart is everybody's",
        (
            f"{_COUNTERS}::test_pyrra_981_a_restart_of_one_pod_is_none_of_the_others",
            "unit/domain/test_counters.py::test_pyrra_981_a_restart_of_one_pod_is_none_of_the_others",
        ),
    ),
    "slo-generator#319": FieldReport(
        "more good than all is taken for above 100 %",
        (
            f"{_COUNTERS}::test_slo_generator_319_more_good_than_all_is_refused_and_not_100_percent",
            f"{_SAMPLES}::test_slo_generator_319_more_good_than_all_blocks_settlement_until_it_is_answered",
        ),
    ),
    "slo-generator#42": FieldReport(
        "where nothing failed there is no report",
        (f"{_COUNTERS}::test_slo_generator_42_without_an_error_series_nothing_failed",),
    ),
    "sloth#133": FieldReport(
        "an idle slice is not a number, and so is all that it is part of",
        (f"{_SAMPLES}::test_sloth_133_an_idle_slice_spreads_nothing",),
    ),
    "sloth#241": FieldReport(
        "a mean of ratios is shown as the ratio",
        (f"{_RATIO}::test_sloth_241_a_ratio_is_that_of_the_sums_however_unevenly_requests_came",),
    ),
    "sloth#618": FieldReport(
        "nothing says which of the two a figure is",
        (f"{_RATIO}::test_sloth_618_a_mean_of_ratios_is_another_method_by_name_unit_and_words",),
    ),
    "pyrra#1576": FieldReport(
        "an outage that ended a second before the month takes from its budget",
        (
            "unit/domain/test_periods.py::test_pyrra_1576_an_outage_one_second_before_the_month_is_not_of_the_month",
            "unit/domain/test_budget.py::test_a_budget_begins_whole_whatever_came_before_the_period",
        ),
    ),
    "pyrra#1502": FieldReport(
        "the bounds 1 and 1.0 are two",
        (
            f"{_HISTOGRAM_LOG}::test_pyrra_1502_a_bound_is_a_number_however_it_is_written",
            f"{_HISTOGRAM}::test_pyrra_1502_a_bound_is_a_number_however_it_is_written",
        ),
    ),
    "prometheus#13020": FieldReport(
        "an interpolated quantile jumps to the end of its bucket",
        (
            f"{_HISTOGRAM_LOG}::test_prometheus_13020_a_threshold_between_bounds_is_undecided_and_never_interpolated",
            f"{_HISTOGRAM}::test_prometheus_13020_a_shown_quantile_jumps_where_the_attainment_moves_by_one_request",
        ),
    ),
    "uptime-kuma#6233": FieldReport(
        "a maintenance by the wall clock does not follow its changes",
        ("unit/domain/test_exclusions.py::test_maintenance_ignores_dst_uptime_kuma_6233",),
    ),
    "uptime-kuma#6064": FieldReport(
        "a maintenance cannot be recorded after it was",
        ("unit/app/test_exclusions.py::test_no_retroactive_maintenance_uptime_kuma_6064",),
    ),
    "uptime-kuma#6475": FieldReport(
        "while the monitor itself is down, 100 % is shown",
        (
            "api/test_shown_percentages.py::test_uptime_kuma_6475_of_a_period_that_nobody_saw_no_answer_shows_a_share",
            f"{_SAMPLES}::test_uptime_kuma_6475_a_monitor_that_was_down_gives_no_100_percent",
            f"{_HEARTBEATS}::test_uptime_kuma_6475_rows_without_a_heartbeat_count_nowhere_until_one_comes",
        ),
    ),
    "uptime-monitor#287": FieldReport(
        "outages that overlap are counted twice",
        (
            "unit/app/test_claims.py::test_overlaps_counted_twice_uptime_monitor_287",
            f"{_OUTAGES}::test_overlaps_counted_twice_uptime_monitor_287",
            "unit/domain/test_exclusions.py::test_overlaps_counted_twice_uptime_monitor_287",
        ),
    ),
    "kuvasz#219": FieldReport(
        "an outage that began before the period counts whole",
        (
            f"{_OUTAGES}::test_outage_not_clipped_to_the_period_kuvasz_219",
            "unit/domain/test_downtime.py::test_outage_not_clipped_to_the_period_kuvasz_219",
        ),
    ),
    "openstatus#2668": FieldReport(
        "a failure counts when it was inserted and not when it happened",
        (
            "unit/domain/test_periods.py::test_openstatus_2668_a_failure_counts_when_it_happened_not_when_it_was_inserted",
        ),
    ),
    "metagraphed#1796": FieldReport(
        "0.99996 is shown as 100 %",
        (
            "api/test_shown_percentages.py::test_metagraphed_1796_no_answer_shows_100_percent_of_what_is_not_all",
            "browser/test_dashboard.py::test_metagraphed_1796_what_is_not_all_is_not_drawn_as_100_percent",
            "unit/cli/test_budget.py::test_metagraphed_1796_a_budget_that_is_not_gone_is_not_shown_as_gone",
            "unit/cli/test_shown_percentages.py::test_metagraphed_1796_settle_and_explain_show_no_100_percent",
        ),
    ),
    "kibana#143190": FieldReport(
        "a time zone is taken for the offset it has today",
        ("unit/domain/test_periods.py::test_kibana_143190_a_zone_is_no_fixed_offset",),
    ),
}
