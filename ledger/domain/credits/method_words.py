"""The methods in words: what each one counts, its formula as published, and who publishes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MethodWords:
    """``formula`` leads from the listed units to good and valid; ``publishers`` use the method in their terms."""

    words: str
    formula: str
    publishers: str


METHOD_WORDS: Mapping[str, MethodWords] = {
    "total_ratio": MethodWords(
        "all that was good in the period, of all that was valid",
        "good = sum of good, valid = sum of good + bad + undecided, over all windows",
        "Azure OpenAI and most request-based agreements",
    ),
    "exact_quantile": MethodWords(
        "how many requests were at or under the threshold: the quantile is, exactly where that share of them is "
        "(nearest rank)",
        "good = sum of good, valid = sum of good + bad + undecided, over all windows",
        "latency agreements that name a percentile",
    ),
    "graded_score-v1": MethodWords(
        "the scores of all requests by their latency, of the full score of all",
        "good = sum of thousandths earned, valid = 1000 x requests, over all windows",
        "GitLab Dedicated",
    ),
    "interval_mean-v1": MethodWords(
        "the mean of the intervals' error rates; an interval without requests has none",
        "valid = intervals with data x 10^9, good = valid - the sum over intervals of bad x 10^9 / (good + bad), "
        "rounded up at the end",
        "Amazon S3, Stedi, Cloudflare, Oracle",
    ),
    "downtime_minutes-v1": MethodWords(
        "minutes that were not down, of all minutes that count; partial minutes do not",
        "valid = minutes that count, good = valid - minutes down",
        "Google Cloud, GitLab, CoreWeave",
    ),
    "interval_threshold-v1": MethodWords(
        "intervals that were not down, of all intervals that count",
        "valid = intervals that count, good = valid - intervals down",
        "Alibaba Cloud, DigitalOcean",
    ),
    "deployment_minutes-v1": MethodWords(
        "what all deployments together were up, of what they were there",
        "good = sum of good, valid = sum of good + bad, over all windows",
        "agreements on single deployments or instances",
    ),
    "attainment-v1": MethodWords(
        "slices that kept their own target, of all that had enough requests to be judged",
        "valid = slices judged, good = valid - slices that broke the promise",
        "OpenSLO time slices, latency agreements over rolling windows",
    ),
}
"""By the method's name."""
