"""The examples of docs/graphql.md are answered as it says, and its tables say what the code says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from api.graphql.gate import COSTS, LIST_ITEMS
from api.graphql.limits import Limits
from api.graphql.schema import SDL_PATH, sdl_file
from ledger.app.access import ROLE_SCOPES, Principal, Role
from ledger.app.reading import sla_report
from tests.api.graphql.conftest import Asker, World

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "graphql.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```graphql\n# as (\w+)\n(.*?)```\n\n```json\n(.*?)```", TEXT, re.DOTALL)


def test_every_example_is_found() -> None:
    assert len(EXAMPLES) == TEXT.count("```graphql") == TEXT.count("```json") == 4


@pytest.mark.parametrize(("role", "query", "answer"), EXAMPLES)
def test_an_example_is_answered_as_it_says(ask: Asker, world: World, role: str, query: str, answer: str) -> None:
    principal = Principal(f"key {role}", "default", ROLE_SCOPES[Role(role)])
    # The line that names the role is part of the text, so that places in errors are those of the example.
    assert ask(f"# as {role}\n{query}", by=principal) == json.loads(answer)


def test_the_command_sends_a_request(ask: Asker, world: World) -> None:
    (body,) = re.findall(r"-d '(\{.*\})'", TEXT)
    answer = ask.post(body.encode(), headers={"content-type": "application/json"}).json()
    assert answer["data"]["statements"]["edges"][0]["node"] == {"id": world.statements[0], "state": "settled"}


def test_the_limits_are_those_of_the_code() -> None:
    limits = Limits()
    assert (
        f"{limits.tokens} tokens, depth {limits.depth}, {limits.aliases} aliases, {limits.fragments} fragments, "
        f"{limits.operations} operations, cost {limits.cost:,}"
    ) in TEXT
    assert f"more than {limits.body_bytes // 1024} KiB" in TEXT
    assert f"({LIST_ITEMS} for a list" in TEXT
    text = " ".join(TEXT.split())
    listed = re.findall(r"(\d+): ((?:`\w+`(?:, )?)+)", text)
    said = {int(cost): set(re.findall(r"\w+", names)) for cost, names in listed}
    costs = {cost: {name for (_, name), each in COSTS.items() if each == cost} for cost in COSTS.values()}
    assert said == costs
    assert f"{sla_report.MAX_WINDOWS:,} windows, {sla_report.MAX_RAW_BYTES // 2**20} MiB" in text
    assert f"{sla_report.MAX_REQUESTS:,} requests" in text


def test_the_schema_file_is_current() -> None:
    assert (ROOT / SDL_PATH).read_text(encoding="utf-8") == sdl_file()[SDL_PATH]
