"""The ready agreements of examples/providers: each can be registered and settles; figures say what they are worth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from ledger.attest.crypto.babyjub import is_public_key
from ledger.domain.credits.settlement import Settlement, settle
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time.calendar import Period
from ledger.domain.windows.window import Cell, Window, WindowState
from ledger.ingest.agreement_yaml import load_agreement
from ledger.resources import resource_dir
from ledger.wiring.parties import DemoParties
from ledger.wiring.services import create_data

pytestmark = pytest.mark.slow

FOLDER = resource_dir("examples") / "providers"
INDEX: Mapping[str, Any] = yaml.safe_load((FOLDER / "index.yaml").read_text())
AGREEMENTS: Mapping[str, Any] = INDEX["agreements"]
NAMES = sorted(AGREEMENTS)
STATUS = "|".join(INDEX["verified"])


def loaded(name: str) -> Agreement:
    return load_agreement(FOLDER / name)


def month(agreement: Agreement) -> Period:
    """The first whole period."""
    return next(period for period in agreement.periods.all() if period.whole is None)


def settled(
    agreement: Agreement, usual: tuple[int, int], special: Mapping[int, tuple[int, int]] | None = None
) -> Settlement:
    """The first whole period: ``usual`` counts (good, bad) in every window but the ``special`` ones."""
    period = month(agreement)
    windows = [
        Window(interval, WindowState.OBSERVED, (Cell(*(special or {}).get(at, usual)),))
        for at, interval in enumerate(agreement.windows(period))
    ]
    return settle(agreement, period, windows)


def state_and_credit(settlement: Settlement) -> tuple[str, int | None]:
    (result,) = settlement.objectives
    return str(result.state), settlement.credit


# --- each of them ---


def test_the_index_lists_every_agreement() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.yaml")) == sorted([*NAMES, "index.yaml"])
    assert len(NAMES) >= 30


def test_all_can_be_registered(tmp_path: Path, key_cache: Path) -> None:
    with closing(create_data(tmp_path / "data", key_cache=key_cache, notify=lambda _: None)) as services:
        parties = DemoParties(services.keyring)
        for name in NAMES:
            document = dict(loaded(name).document)
            registered = services.commands.register(parties.signed(parties.with_keys(document)))
            assert registered.receipt is not None, name


LOST_MONTHS = {
    "upcloud.yaml": 1000_00,
    "vultr.yaml": 903_23,
    "gpuhub-network.yaml": 2232_00,
    "digitalocean-droplets-proportional.yaml": 1000_00,
    "cloudflare-enterprise.yaml": 1000_00,
}
"""By hand, 744 hours of January: one incident, capped at the charges; 672 of 744 hours; 744 * 1.5 hours at 2.00; all
of the charges."""


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_month_pays_nothing_and_a_lost_one_the_last_tier(name: str) -> None:
    agreement = loaded(name)
    assert is_public_key(agreement.collector_key)
    assert state_and_credit(settled(agreement, (5000, 0))) == ("met", 0)
    terms = agreement.compensation
    last = terms.tiered.tiers["availability"][-1].credit_bps if terms.tiered else 0
    lost = LOST_MONTHS.get(name, terms.base * last // 10_000)
    assert state_and_credit(settled(agreement, (0, 5000))) == ("breached", lost)


# --- what figures are worth ---


def figures(value: Any, at: str = "") -> Iterator[str]:
    """Paths of what a provider's schedule says, or would have to say."""
    for index, objective in enumerate(value["objectives"]):
        for key in objective:
            if key not in ("id", "indicator"):
                yield f"objectives[{index}].{key}"
    for index in range(len(value["exclusions"])):
        yield f"exclusions[{index}].error_codes"
    for index, rule in enumerate(value["compensation"]["rules"]):
        if "tiers" not in rule:
            yield f"compensation.rules[{index}]"
        if "hourly_price" in rule:
            yield f"compensation.rules[{index}].hourly_price"
        for key in rule.get("tiers", ()):
            yield f"compensation.rules[{index}].tiers.{key}"
    yield from (f"compensation.caps.{key}" for key in value["compensation"]["caps"])
    yield from ("compensation.currency", "compensation.minimum", "compensation.base")
    yield from ("effective.from", "effective.until", "period", "timezone")
    yield from (key for key in ("anchor", "partial_periods") if key in value)
    if "settlement" in value:
        yield "settlement.deadline.count"
    for index in range(len(value.get("maintenance", {}).get("classes", ()))):
        yield f"maintenance.classes[{index}].notice"


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_its_worth_and_its_source(name: str) -> None:
    entry = AGREEMENTS[name]
    assert set(entry["figures"]) == set(figures(loaded(name).document))
    for path, figure in entry["figures"].items():
        assert figure["verified"] in INDEX["verified"], path
        if figure["verified"] in ("official", "mirror", "secondary"):
            assert figure["source"] in entry["sources"], path
        else:
            assert figure["source"] == {"assumed": "this example", "unverified": "none"}[figure["verified"]], path


@pytest.mark.parametrize("name", NAMES)
def test_comments_say_what_the_index_says(name: str) -> None:
    said = re.findall(rf"# ({STATUS})\b", (FOLDER / name).read_text())
    assert sorted(said) == sorted(figure["verified"] for figure in AGREEMENTS[name]["figures"].values())


TIERS = {
    "aws-bedrock.yaml": ("aws-bedrock", "tiers"),
    "aws-compute-region.yaml": ("aws-ec2-compute", "tiers.region_level"),
    "aws-compute-instance.yaml": ("aws-ec2-compute", "tiers.instance_level"),
    "aws-s3-standard.yaml": ("aws-s3", "tiers_by_class.standard_and_other"),
    "aws-s3-infrequent-access.yaml": ("aws-s3", "tiers_by_class.intelligent_tiering_ia_onezone_glacier_ir"),
    "azure-ai-services.yaml": ("azure-ai-cognitive-services", "tiers"),
    "azure-openai.yaml": ("azure-openai", "tiers"),
    "clouddigit-dedicated.yaml": ("clouddigit", "tiers"),
    "clouddigit-shared.yaml": ("clouddigit", "tiers"),
    "coreweave-2020-multi-region.yaml": ("coreweave-2020", "tiers.multi_region"),
    "coreweave-2020-single-instance.yaml": ("coreweave-2020", "tiers.single_instance"),
    "digitalocean-app-platform.yaml": ("digitalocean", "services.app_platform.credit"),
    "digitalocean-droplets-2025.yaml": ("digitalocean", "services.cpu_droplets_2025_06_03.credit"),
    "google-cloud-functions.yaml": ("google-cloud-functions-and-compute", "services.cloud_functions.tiers"),
    "google-compute-engine.yaml": ("google-cloud-functions-and-compute", "services.compute_engine.tiers"),
    "google-vertex-ai-platform.yaml": ("google-vertex-ai-platform", "tiers"),
    "google-vertex-generative-ai.yaml": ("google-vertex-generative-ai", "tiers"),
    "google-vertex-search-commerce.yaml": ("google-vertex-search-commerce", "tiers"),
    "openai-scale-tier.yaml": ("openai-scale-tier", "tiers"),
    "oracle-oci.yaml": ("oracle-oci", "tiers"),
    "safespring-compute.yaml": ("other-proportional", "safespring.tiers_compute"),
    "stedi-public-guides.yaml": ("stedi", "services.public_guides.tiers"),
}


@pytest.mark.parametrize("name", sorted(TIERS))
def test_tiers_are_those_of_the_schedule(name: str, sla_fixtures: Path) -> None:
    file, path = TIERS[name]
    found: Any = yaml.safe_load((sla_fixtures / f"sla/schedules/{file}.yaml").read_text())
    for key in path.split("."):
        found = found[key]
    agreement = loaded(name)
    (objective,) = agreement.objectives
    below = [objective.target if row["lt"] == "target" else row["lt"] for row in found["rows"]]
    expected = [(Fraction(lt), Fraction(row["credit_percent"])) for lt, row in zip(below, found["rows"], strict=True)]
    assert agreement.compensation.tiered is not None
    tiers = agreement.compensation.tiered.tiers["availability"]
    assert [(Fraction(tier.below_ppb, 10**7), Fraction(tier.credit_bps, 100)) for tier in tiers] == expected
    worth = AGREEMENTS[name]["figures"]["compensation.rules[0].tiers.availability"]["verified"]
    assert worth == found["verified"].removeprefix("stored_")


TARGETS = {
    "alibaba-creation-workshop.yaml": ("alibaba-cloud", "services.intelligent_creation_workshop.slo"),
    "alibaba-maxcompute.yaml": ("alibaba-cloud", "services.maxcompute_2018.slo"),
    "anthropic-claude-api.yaml": ("anthropic", "metric.uptime_target"),
    "aws-compute-instance.yaml": ("aws-ec2-compute", "levels.instance_level.commitment"),
    "aws-compute-region.yaml": ("aws-ec2-compute", "levels.region_level.commitment"),
    "azure-openai.yaml": ("azure-openai", "metric.availability.commitment"),
    "clouddigit-dedicated.yaml": ("clouddigit", "slos.inference_endpoints_dedicated"),
    "clouddigit-shared.yaml": ("clouddigit", "slos.inference_endpoints_shared"),
    "cloudflare-enterprise.yaml": ("cloudflare", "services.enterprise_support_sla.commitment.slo"),
    "cloudflare-queues.yaml": ("cloudflare", "services.queues.metric.slo"),
    "cloudflare-workers.yaml": ("cloudflare", "services.workers.metric.slo"),
    "coreweave-2020-multi-region.yaml": ("coreweave-2020", "slos.multi_region"),
    "coreweave-2020-single-instance.yaml": ("coreweave-2020", "slos.single_region"),
    "digitalocean-app-platform.yaml": ("digitalocean", "services.app_platform.slo"),
    "digitalocean-droplets-2025.yaml": ("digitalocean", "services.cpu_droplets_2025_06_03.slo"),
    "digitalocean-droplets-proportional.yaml": ("digitalocean", "services.cpu_droplets_v_undated.slo"),
    "digitalocean-spaces.yaml": ("digitalocean", "services.spaces.slo"),
    "gitlab-2025.yaml": ("gitlab", "services.gitlab_com_and_dedicated_2025_12.slo"),
    "gitlab-dedicated-graded.yaml": ("gitlab", "services.gitlab_dedicated_old_graded.slo"),
    "google-vertex-search-commerce.yaml": ("google-vertex-search-commerce", "metric.slo"),
    "openai-scale-tier.yaml": ("openai-scale-tier", "metric.uptime.slo"),
    "oracle-oci.yaml": ("oracle-oci", "metric.category_2.target"),
    "stedi-public-guides.yaml": ("stedi", "services.public_guides.slo"),
    "upcloud.yaml": ("other-proportional", "upcloud.slo"),
}


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_targets_are_those_of_the_schedule(name: str, sla_fixtures: Path) -> None:
    file, path = TARGETS[name]
    found: Any = yaml.safe_load((sla_fixtures / f"sla/schedules/{file}.yaml").read_text())
    worth = ""
    for key in path.split("."):
        found = found[key]
        worth = found.get("verified", worth) if isinstance(found, dict) else worth
    (objective,) = loaded(name).objectives
    assert objective.target == found
    if worth:
        assert AGREEMENTS[name]["figures"]["objectives[0].target"]["verified"] == worth.removeprefix("stored_")


def test_a_schedule_without_tiers_has_no_rule() -> None:
    without = {name for name in NAMES if not loaded(name).document["compensation"]["rules"]}
    assert without == set(NAMES) - set(TIERS) - set(LOST_MONTHS)
    assert "anthropic-claude-api.yaml" in without


# --- months worked out by hand, each on charges of 1000.00 ---


def spread(count: int, cell: tuple[int, int], *, from_window: int = 0, step: int = 1) -> dict[int, tuple[int, int]]:
    return {from_window + at * step: cell for at in range(count)}


NINE_OF_TEN = {at * 10 + minute: (0, 2000) for at in range(400) for minute in range(9)}


@pytest.mark.parametrize(
    ("name", "usual", "special", "expected"),
    [
        # November 2023 has 8640 intervals. A tenth of them at 90 %: a mean of exactly 99 %, which is not below 99.
        ("aws-bedrock.yaml", (100, 0), spread(864, (90, 10)), ("breached", 100_00)),
        ("aws-bedrock.yaml", (100, 0), {**spread(864, (90, 10)), 900: (99, 1)}, ("breached", 250_00)),
        ("aws-bedrock.yaml", (100, 0), spread(9, (0, 1)), ("breached", 100_00)),
        # 8.64 lost intervals are the budget; idle ones are whole.
        ("aws-bedrock.yaml", (0, 0), spread(8, (0, 1)), ("met", 0)),
        # 99 of 100 calls is not below 99 %, one more in a million is.
        ("azure-ai-services.yaml", (99, 1), {}, ("breached", 100_00)),
        ("azure-ai-services.yaml", (99, 1), {0: (98, 2)}, ("breached", 250_00)),
        ("azure-ai-services.yaml", (999, 1), {}, ("met", 0)),
        # May 2020 has 44,640 minutes: 44.64 of them may be lost. An error rate of 99 % is not an outage.
        ("coreweave-2020-multi-region.yaml", (5, 0), spread(44, (0, 5)), ("met", 0)),
        ("coreweave-2020-multi-region.yaml", (5, 0), spread(45, (0, 5), step=2), ("breached", 100_00)),
        ("coreweave-2020-multi-region.yaml", (5, 0), spread(447, (0, 5)), ("breached", 250_00)),
        ("coreweave-2020-multi-region.yaml", (1, 99), {}, ("met", 0)),
        ("coreweave-2020-single-instance.yaml", (5, 0), spread(447, (0, 5)), ("breached", 100_00)),
        # January 2026: runs of nine minutes never count, one of 45 does; 10 % is not above 10 %, 1,999 are too few.
        ("google-vertex-search-commerce.yaml", (2000, 0), NINE_OF_TEN, ("met", 0)),
        ("google-vertex-search-commerce.yaml", (2000, 0), spread(45, (1799, 201)), ("breached", 100_00)),
        ("google-vertex-search-commerce.yaml", (2000, 0), spread(45, (1800, 200)), ("met", 0)),
        ("google-vertex-search-commerce.yaml", (2000, 0), spread(45, (0, 1999)), ("met", 0)),
        # The worked example of the source: 864 of 8640 intervals at 90 %. November 2022.
        ("stedi-public-guides.yaml", (10, 0), spread(864, (9, 1)), ("breached", 100_00)),
        ("stedi-public-guides.yaml", (10, 0), spread(433, (0, 10)), ("breached", 250_00)),
        # December 2025: a minute at 5 % is down, one under it is not; 44 of 44,640 are allowed; nothing is paid.
        ("gitlab-2025.yaml", (100, 0), spread(45, (95, 5)), ("breached", 0)),
        ("gitlab-2025.yaml", (100, 0), spread(44, (95, 5)), ("met", 0)),
        ("gitlab-2025.yaml", (100, 0), spread(400, (951, 49)), ("met", 0)),
        # February 2018: 8 of 8064 intervals are allowed, at above 5 %.
        ("alibaba-maxcompute.yaml", (100, 0), spread(8, (94, 6)), ("met", 0)),
        ("alibaba-maxcompute.yaml", (100, 0), spread(9, (94, 6)), ("breached", 0)),
        ("alibaba-maxcompute.yaml", (100, 0), spread(900, (95, 5)), ("met", 0)),
        # A target without credits is missed for nothing, and that is no error.
        ("anthropic-claude-api.yaml", (99, 1), {}, ("breached", 0)),
        ("digitalocean-droplets-2025.yaml", (1, 0), spread(5, (0, 1)), ("breached", 1000_00)),
        ("digitalocean-droplets-2025.yaml", (1, 0), spread(4, (0, 1)), ("met", 0)),
        # Six minutes of 44,640, fifty times: 1000.00 * 300 / 44640. Five are not over five.
        ("upcloud.yaml", (1, 0), spread(6, (0, 1)), ("breached", 6_72)),
        ("upcloud.yaml", (1, 0), spread(5, (0, 1)), ("breached", 0)),
        # Nine minutes are in the first row: 12 of 744 hours; ten in the second: 24.
        ("vultr.yaml", (1, 0), spread(9, (0, 1)), ("breached", 16_13)),
        ("vultr.yaml", (1, 0), spread(10, (0, 1)), ("breached", 32_26)),
        # 41 minutes times 1.5 are 61.5, so two hours at 2.00.
        ("gpuhub-network.yaml", (1, 0), spread(41, (0, 1), step=3), ("breached", 4_00)),
        ("gpuhub-network.yaml", (1, 0), spread(40, (0, 1), step=3), ("breached", 2_00)),
        # One of 8,928 intervals is under 99.99 %: 1000.00 / 8928.
        ("digitalocean-droplets-proportional.yaml", (1, 0), {7: (0, 1)}, ("breached", 11)),
        # An hour in which a quarter of the requests failed, of 31 days of August 2025: 1000.00 * 15 / 44640.
        ("cloudflare-enterprise.yaml", (4, 0), spread(60, (3, 1)), ("breached", 34)),
    ],
)  # fmt: skip
def test_credits_worked_out_by_hand(
    name: str, usual: tuple[int, int], special: Mapping[int, tuple[int, int]], expected: tuple[str, int]
) -> None:
    assert state_and_credit(settled(loaded(name), usual, special)) == expected


def test_a_credit_must_be_above_the_minimum() -> None:
    """Ten percent of 10.00 is 1.00, which is not above 1.00; of 10.01 it is 1.001."""
    document = dict(loaded("stedi-public-guides.yaml").document)
    for base, credit in (("10.00", 0), ("10.01", 1_00)):
        terms = {**document["compensation"], "base": base}
        agreement = Agreement.from_document({**document, "compensation": terms})
        assert settled(agreement, (10, 0), spread(864, (9, 1))).credit == credit


def test_schedules_are_dated_as_published() -> None:
    assert loaded("aws-bedrock.yaml").effective_from == date(2023, 10, 4)
    assert AGREEMENTS["anthropic-claude-api.yaml"]["dated"] is None
