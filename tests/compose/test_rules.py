"""The rules of the compose file and the Dockerfile, tried on files that break them."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from ledger.wiring.needs import KeyGroup
from tests.compose.rules import dockerfile_faults, faults_of, interpolated

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()

Services = dict[str, Any]


def test_the_files_here_keep_the_rules() -> None:
    assert faults_of(DOCUMENT) == []
    assert dockerfile_faults(DOCKERFILE) == []


LIES: dict[str, tuple[str, Callable[[Services], object]]] = {
    "no health check": ("settle-worker: it has no health check", lambda s: s["settle-worker"].pop("healthcheck")),
    "health by a shell": (
        "relay: it has no health check",
        lambda s: s["relay"]["healthcheck"].update(test=["CMD-SHELL", "true"]),
    ),
    "root": ("api: user is no uid", lambda s: s["api"].update(user="0:0")),
    "named root": ("api: user is no uid", lambda s: s["api"].update(user="root")),
    "image of any day": ("redis: the image has no tag", lambda s: s["redis"].update(image="redis:latest")),
    "image without tag": ("redis: the image has no tag", lambda s: s["redis"].update(image="redis")),
    "writable": ("beat: the root file system", lambda s: s["beat"].update(read_only=False)),
    "capabilities": ("beat: it keeps capabilities", lambda s: s["beat"].update(cap_add=["NET_ADMIN"])),
    "privileges": ("anvil: it may gain", lambda s: s["anvil"].pop("security_opt")),
    "host network": ("anchor-worker: it shares", lambda s: s["anchor-worker"].update(network_mode="host")),
    "published database": ("postgres: it publishes", lambda s: s["postgres"].update(ports=["127.0.0.1:5432:5432"])),
    "published to all": ("api: it publishes", lambda s: s["api"].update(ports=["8000:8000"])),
    "unlimited proofs": ("prove-worker: proofs have no limit", lambda s: s["prove-worker"].pop("deploy")),
    "not restarted": ("beat: restart is not", lambda s: s["beat"].update(restart="no")),
    "init for ever": ("init: restart is not no", lambda s: s["init"].update(restart="always")),
    "password in a URL": (
        "relay: SLA_LEDGER_BROKER holds a password",
        lambda s: s["relay"]["environment"].update(SLA_LEDGER_BROKER="redis://:hunter2@redis:6379/0"),
    ),
    "password": (
        "postgres: POSTGRES_PASSWORD holds a password",
        lambda s: s["postgres"]["environment"].update(POSTGRES_PASSWORD="hunter2"),
    ),
    "default password": (
        "postgres: POSTGRES_PASSWORD would do with X_PASSWORD unset",
        lambda s: s["postgres"]["environment"].update(POSTGRES_PASSWORD="${X_PASSWORD:-}"),
    ),
    "password in a command": (
        "redis: the command holds a password",
        lambda s: s["redis"].update(command=["redis-server", "--requirepass", "hunter2"]),
    ),
    "unknown setting": (
        "beat: there is no setting SLA_LEDGER_SHEDULE_S",
        lambda s: s["beat"]["environment"].update(SLA_LEDGER_SHEDULE_S="5"),
    ),
    "setting of another": (
        "relay: worker relay does not read SLA_LEDGER_CHAIN_RPC",
        lambda s: s["relay"]["environment"].update(SLA_LEDGER_CHAIN_RPC="http://anvil:8545"),
    ),
    "log for people": ("api: its log is not JSON", lambda s: s["api"]["environment"].pop("SLA_LEDGER_LOG_FORMAT")),
    "open API": ("api: it asks for no credentials", lambda s: s["api"]["environment"].pop("SLA_LEDGER_AUTH")),
    "database's admin": (
        "api: it does not log in as ledger_service",
        lambda s: s["api"]["environment"].update(DATABASE_URL=s["init"]["environment"]["DATABASE_URL"]),
    ),
    "right to give events their place": (
        "prove-worker: it does not log in as ledger_worker",
        lambda s: s["prove-worker"]["environment"].update(DATABASE_URL=s["api"]["environment"]["DATABASE_URL"]),
    ),
    "unknown command": (
        "relay: sla-ledger worker ring: No such command",
        lambda s: s["relay"].update(command=["sla-ledger", "worker", "ring"]),
    ),
    "unknown option": (
        "api: sla-ledger up --jsn: No such option",
        lambda s: s["api"].update(command=["sla-ledger", "up", "--jsn"]),
    ),
    "missing argument": (
        "beat: sla-ledger worker beat: Missing option '--data'",
        lambda s: s["beat"]["environment"].pop("SLA_LEDGER_DATA"),
    ),
    "health of a stage that is not": (
        "prove-worker: sla-ledger health --stage proof: Invalid value",
        lambda s: s["prove-worker"]["healthcheck"].update(test=["CMD", "sla-ledger", "health", "--stage", "proof"]),
    ),
    "health of another stage": (
        "prove-worker: the health check looks at other stages",
        lambda s: s["prove-worker"]["healthcheck"].update(test=["CMD", "sla-ledger", "health", "--stage", "anchor"]),
    ),
    "a stage without worker": (
        "nobody works prove",
        lambda s: s["prove-worker"].update(command=["sla-ledger", "worker", "run", "anchor"]),
    ),
    "started too soon": (
        "api: depends on init without service_completed_successfully",
        lambda s: s["api"]["depends_on"].update(init={"condition": "service_started"}),
    ),
    "way out": ("beat: reaches the outside", lambda s: s["beat"]["networks"].append("outside")),
    "unknown network": ("beat: there is no network lan", lambda s: s["beat"].update(networks=["lan"])),
    "default network": ("beat: there is no network default", lambda s: s["beat"].pop("networks")),
    "unknown volume": ("beat: there is no volume logs", lambda s: s["beat"]["volumes"].append("logs:/var/log")),
    "keys that a proof does not need": (
        "prove-worker: it sees keys that it does not need: chain",
        lambda s: s["prove-worker"]["volumes"].append("chain-keys:/var/lib/sla-ledger/keys/chain:ro"),
    ),
    "keys that reach the outside": (
        "courier: it sees keys that it does not need: issuer",
        lambda s: s["courier"]["volumes"].append("issuer-key:/var/lib/sla-ledger/keys/issuer:ro"),
    ),
    "keys of all for one": (
        "anchor-worker: it lacks keys: chain",
        lambda s: s["anchor-worker"].update(volumes=["data:/var/lib/sla-ledger:ro"]),
    ),
    "keys of the chain that settle": (
        "settle-worker: it sees keys that it does not need: chain",
        lambda s: s["settle-worker"]["volumes"].append("chain-keys:/var/lib/sla-ledger/keys/chain:ro"),
    ),
    "stage with keys that prove": (
        "prove-worker: it lacks keys: collector",
        lambda s: s["prove-worker"]["command"].append("compensate"),
    ),
    "key in a variable": (
        "prove-worker: it is given a key that it does not need: SLA_LEDGER_ISSUER_KEY",
        lambda s: s["prove-worker"]["environment"].update(SLA_LEDGER_ISSUER_KEY="${ISSUER_KEY:?write it to .env}"),
    ),
    "signer for who looks": (
        "beat: it is given a key that it does not need: SLA_LEDGER_SIGNER_RPC",
        lambda s: s["beat"]["environment"].update(SLA_LEDGER_SIGNER_RPC="http://signer:9000"),
    ),
    "keys of a group in another's place": (
        "the volume chain-keys is mounted at",
        lambda s: s["beat"].update(volumes=["data:/var/lib/sla-ledger:ro", "chain-keys:/var/lib/sla-ledger/keys/log"]),
    ),
    "writable keys": (
        "api: it may write /var/lib/sla-ledger/keys/issuer",
        lambda s: s["api"]["volumes"].append("issuer-key:/var/lib/sla-ledger/keys/issuer"),
    ),
    "writable data": (
        "relay: it may write /var/lib/sla-ledger",
        lambda s: s["relay"].update(volumes=["data:/var/lib/sla-ledger"]),
    ),
    "no beat": ("the service beat is missing", lambda s: s.pop("beat")),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_compose_file_that_breaks_a_rule(lie: str) -> None:
    fault, tell = LIES[lie]
    document = deepcopy(DOCUMENT)
    for name, service in document["services"].items():
        document["services"][name] = deepcopy(service)  # anchors make services share their parts
    tell(document["services"])
    assert any(found.startswith(fault) for found in faults_of(document)), faults_of(document)


def test_a_network_that_is_not_internal() -> None:
    document = deepcopy(DOCUMENT)
    document["networks"]["data"] = None
    assert "postgres: reaches the outside by data" in faults_of(document)


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("USER 10001:10001", "USER root", "the image runs as root"),
        ("USER 10001:10001\n", "", "the image runs as root"),
        (" --require-hashes -r /tmp/runtime.lock", " -r /tmp/runtime.lock", "installs without hashes"),
        ("python:3.11.14-slim-bookworm AS", "python:latest AS", "python:latest has no tag"),
        ("WORKDIR /tmp\n", "RUN apt-get install -y gcc\n", "takes in what no hash covers"),
        ("WORKDIR /tmp\n", "ENV SLA_LEDGER_ISSUER_KEY=ab\n", "a layer holds a secret: SLA_LEDGER_ISSUER_KEY"),
        ("WORKDIR /src\n", "ARG POSTGRES_ADMIN_PASSWORD\n", "a layer holds a secret: POSTGRES_ADMIN_PASSWORD"),
        ("COPY api api\n", "COPY . .\n", "copies what nobody named"),
        ("COPY api api\n", "COPY api ./ /src\n", "copies what nobody named"),
        ("WORKDIR /tmp\n", "RUN /build/bin/pip install --require-hashes -r x\n", "builds in the last stage"),
        ("WORKDIR /tmp\n", "ADD https://example.org/x /x\n", "takes in what no hash covers"),
    ],
)
def test_a_dockerfile_that_breaks_a_rule(before: str, after: str, fault: str) -> None:
    assert before in DOCKERFILE
    found = dockerfile_faults(DOCKERFILE.replace(before, after))
    assert any(each.startswith(fault) for each in found), found


def test_the_builder_gets_what_the_dockerfile_copies() -> None:
    """And nothing else: .dockerignore refuses everything and lets these through."""
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignored
    let_through = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        part for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE) for part in line.split()[:-1]
    }
    assert let_through == copied
    assert all((ROOT / part).exists() for part in copied)


def test_the_image_has_an_empty_folder_for_each_group_of_keys_that_its_user_alone_reads() -> None:
    """A volume that is mounted over one takes owner and mode from it."""
    lines = DOCKERFILE.replace("\\\n", " ").splitlines()
    (line,) = [line for line in lines if line.startswith("RUN") and "keys/" in line]
    made = re.search(r"cd /var/lib/sla-ledger && mkdir -m 0700 keys ([^&]+)&&", line)
    assert made is not None
    assert set(made[1].split()) == {f"keys/{group}" for group in KeyGroup}
    assert "chown -R 10001:10001 /var/lib/sla-ledger" in line


def test_variables_are_filled_in_as_compose_does() -> None:
    assert interpolated("a${X:-b}c", {}) == "abc"
    assert interpolated("a${X:-b}c", {"X": "x"}) == "axc"
    assert interpolated("${X:?say it}", {"X": "x"}) == "x"
    with pytest.raises(KeyError):
        interpolated("${X:?say it}", {})
