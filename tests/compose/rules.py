"""What docker-compose.yml and Dockerfile must keep to, told without an engine: each rule gives its faults as sentences.

The rules are tried on lies in tests/compose/test_rules.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import click

from ledger.app.work.outbox import Stage
from ledger.cli.main import cli
from ledger.settings.registry import BY_NAME, Reader
from ledger.wiring.needs import BEAT_NEEDS, EVERYTHING, RELAY_NEEDS, SERVER_NEEDS, KeyGroup, Needs, needs_of

Service = Mapping[str, Any]

PROGRAM = "sla-ledger"
NEEDED = frozenset(
    {
        "postgres",
        "redis",
        "anvil",
        "init",
        "registry",
        "api",
        "settle-worker",
        "prove-worker",
        "anchor-worker",
        "courier",
        "relay",
        "beat",
    }
)
ONE_SHOT = frozenset({"init", "registry"})
PUBLISHED = "api"
OUTSIDE = {"outside": frozenset({"api", "courier"})}
DATA = "/var/lib/sla-ledger"
PROVING_KEYS = "/var/cache/sla-ledger"
WRITES = {
    "init": frozenset({DATA, PROVING_KEYS, *(f"{DATA}/keys/{group}" for group in KeyGroup)}),
    # It moves the pin on, which lies with the log's key.
    "beat": frozenset({f"{DATA}/keys/{KeyGroup.LOG}"}),
}
"""Where a service may write."""
SIGN_BY_SETTING = {
    "SLA_LEDGER_LOG_KEY": KeyGroup.LOG,
    "SLA_LEDGER_ISSUER_KEY": KeyGroup.CHAIN,
    "SLA_LEDGER_DEPLOYER_KEY": KeyGroup.CHAIN,
    "SLA_LEDGER_SIGNER_RPC": KeyGroup.CHAIN,
}
"""Settings that give a key, or the use of one."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:[?-])?([^}]*)\}")
_USER = re.compile(r"[1-9][0-9]*:[1-9][0-9]*")
_TAG = re.compile(r"[^:@\s]+:(?!latest\b)[A-Za-z0-9][\w.-]*(@sha256:[0-9a-f]{64})?")
_SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|_KEY\b|DATABASE_URL|_RPC\b|BROKER")
_PASSWORD_IN_URL = re.compile(r"://[^/@:]*:[^/@$]+@")


def faults_of(document: Mapping[str, Any]) -> list[str]:
    """Everything wrong with a parsed compose file."""
    services: Mapping[str, Service] = document["services"]
    found = [f"the service {name} is missing" for name in sorted(NEEDED - services.keys())]
    for name, service in services.items():
        for rule in (hardening, restarting, health, secrets, settings, keys, commands):
            found += [f"{name}: {fault}" for fault in rule(name, service)]
    return [*found, *together(document), *stages(services)]


def hardening(name: str, service: Service) -> Iterator[str]:
    if not _USER.fullmatch(str(service.get("user", ""))):
        yield "user is no uid:gid other than root's"
    if not _TAG.fullmatch(str(service.get("image", ""))):
        yield "the image has no tag that stays"
    if service.get("read_only") is not True:
        yield "the root file system can be written"
    if service.get("cap_drop") != ["ALL"] or service.get("cap_add"):
        yield "it keeps capabilities"
    if "no-new-privileges:true" not in service.get("security_opt", []):
        yield "it may gain privileges"
    if service.get("privileged") or service.get("network_mode") or service.get("pid"):
        yield "it shares what is the host's"
    for port in service.get("ports", []):
        if name != PUBLISHED or not str(port).startswith("127.0.0.1:"):
            yield f"it publishes {port}"
    if name == "prove-worker":
        limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
        if not {"cpus", "memory"} <= limits.keys():
            yield "proofs have no limit of processor and memory"


def restarting(name: str, service: Service) -> Iterator[str]:
    wanted = "no" if name in ONE_SHOT else "unless-stopped"
    if service.get("restart") != wanted:
        yield f"restart is not {wanted}"


def health(name: str, service: Service) -> Iterator[str]:
    check = service.get("healthcheck")
    if name in ONE_SHOT:
        if check:
            yield "a service that ends needs no health check"
    elif not check or check.get("disable") or list(check.get("test", []))[:1] != ["CMD"] or len(check["test"]) < 2:
        yield "it has no health check without a shell"
    elif not {"interval", "timeout", "retries"} <= check.keys():
        yield "the health check names no interval, timeout or retries"


def secrets(_name: str, service: Service) -> Iterator[str]:
    """A password comes from outside, and its absence is an error, not an empty password."""
    texts = {**service.get("environment", {}), "command": " ".join(map(str, service.get("command", [])))}
    for name, value in texts.items():
        variables = _VARIABLE.findall(str(value))
        if _PASSWORD_IN_URL.search(_VARIABLE.sub("$", str(value))):
            yield f"{name} holds a password"
        if re.search(r"PASSWORD|SECRET|_AUTH$", name) and name not in BY_NAME and not variables:
            yield f"{name} holds a password"
        for variable, kind, _ in variables:
            if "PASSWORD" in variable and kind != ":?":
                yield f"{name} would do with {variable} unset"
    command = texts["command"].split()
    if "--requirepass" in command and not command[command.index("--requirepass") + 1].startswith("${"):
        yield "the command holds a password"


def settings(name: str, service: Service) -> Iterator[str]:
    """A process of ours gets settings that it reads, and no others."""
    if not is_ours(service):
        return
    given = service.get("environment", {})
    reader = reader_of(service["command"])
    for each in given:
        if each not in BY_NAME:
            yield f"there is no setting {each}"
        elif reader not in BY_NAME[each].readers:
            yield f"{reader} does not read {each}"
    if name not in ONE_SHOT and given.get("SLA_LEDGER_LOG_FORMAT") != "json":
        yield "its log is not JSON"
    if name == PUBLISHED and given.get("SLA_LEDGER_AUTH") != "required":
        yield "it asks for no credentials"
    user = "ledger_service" if needs_of_service(service).sequences else "ledger_worker"
    user = "ledger_admin" if name == "init" else user
    if f"//{user}:" not in given.get("DATABASE_URL", ""):
        yield f"it does not log in as {user}, which has the rights it needs and no more"


def keys(name: str, service: Service) -> Iterator[str]:
    """A process of ours sees the keys that it needs and no others, and writes where it must."""
    if not is_ours(service):
        return
    needs = needs_of_service(service) if name != "init" else EVERYTHING
    seen = places(service)
    given = {place.removeprefix(f"{DATA}/keys/") for place in seen if place.startswith(f"{DATA}/keys/")}
    if more := given - needs.keys:
        yield f"it sees keys that it does not need: {', '.join(sorted(more))}"
    if fewer := needs.keys - given:
        yield f"it lacks keys: {', '.join(sorted(fewer))}"
    if DATA not in seen:
        yield "it has no data directory"
    for place, writable in seen.items():
        if writable and place not in WRITES.get(name, frozenset()):
            yield f"it may write {place}"
    for setting in service.get("environment", {}):
        if setting in SIGN_BY_SETTING and SIGN_BY_SETTING[setting] not in needs.keys:
            yield f"it is given a key that it does not need: {setting}"


def commands(_name: str, service: Service) -> Iterator[str]:
    """Its command lines are such as the command line takes."""
    check = list(service.get("healthcheck", {}).get("test", []))[1:]
    for line in (service.get("command", []), check if check[:1] == [PROGRAM] else []):
        if line and is_ours(service):
            environ = {key: str(value) for key, value in service.get("environment", {}).items()}
            yield from _refused([str(part) for part in line], environ)


def together(document: Mapping[str, Any]) -> Iterator[str]:
    """What services have to do with each other."""
    services, networks = document["services"], document.get("networks", {})
    mounted: dict[str, set[str]] = {}
    for name, service in services.items():
        for other, condition in dict(service.get("depends_on", {})).items():
            wanted = "service_completed_successfully" if other in ONE_SHOT else "service_healthy"
            if other not in services or condition.get("condition") != wanted:
                yield f"{name}: depends on {other} without {wanted}"
        for network in service.get("networks", ["default"]):
            if network not in networks:
                yield f"{name}: there is no network {network}"
            elif not (networks[network] or {}).get("internal") and name not in OUTSIDE.get(network, frozenset()):
                yield f"{name}: reaches the outside by {network}"
        for volume in service.get("volumes", []):
            source, _, place = str(volume).partition(":")
            if not source.startswith("./") and source not in document.get("volumes", {}):
                yield f"{name}: there is no volume {source}"
            mounted.setdefault(source, set()).add(place.removesuffix(":ro"))
    for source, found in mounted.items():
        if len(found) > 1:
            yield f"the volume {source} is mounted at {' and '.join(sorted(found))}"


def stages(services: Mapping[str, Service]) -> Iterator[str]:
    """Every stage is worked, and watched where it is worked."""
    worked: set[str] = set()
    for name, service in services.items():
        line = [str(part) for part in service.get("command", [])]
        if line[:3] == [PROGRAM, "worker", "run"]:
            own = set(line) & set(Stage)
            test = service.get("healthcheck", {}).get("test", [])
            if own != {after for before, after in pairwise(test) if before == "--stage"}:
                yield f"{name}: the health check looks at other stages than it works"
            worked |= own
    if missing := set(Stage) - worked:
        yield f"nobody works {', '.join(sorted(missing))}"


def dockerfile_faults(text: str) -> list[str]:
    """Everything wrong with the Dockerfile."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    images = [line.split()[1] for line in lines if line.startswith("FROM ")]
    found = [f"{image} has no tag that stays" for image in images if not _TAG.fullmatch(image)]
    last = lines[max(index for index, line in enumerate(lines) if line.startswith("FROM ")) :]
    if len(images) < 2:
        found.append("one stage builds and runs")
    users = [line.split()[1] for line in last if line.startswith("USER ")]
    if not users or not _USER.fullmatch(users[-1]):
        found.append("the image runs as root")
    for line in lines:
        if _SECRET.search(line) and line.startswith(("ENV ", "ARG ", "LABEL ")):
            found.append(f"a layer holds a secret: {line.split()[1].partition('=')[0]}")
        if re.match(r"COPY (?!--from=)(\S+ )*\.{0,2}/? ", line):
            found.append(f"copies what nobody named: {line}")
        for part in re.split(r"&&|;", line):
            if "pip" in part and " install " in part and "--require-hashes" not in part and "--no-index" not in part:
                found.append(f"installs without hashes: {part.strip()}")
        if re.search(r"\b(apt-get|apk|curl|wget)\b|^ADD ", line):
            found.append(f"takes in what no hash covers: {line}")
    found += [f"builds in the last stage: {line}" for line in last if re.search(r"pip\S* (install|wheel) ", line)]
    return found


def places(service: Service) -> dict[str, bool]:
    """Where volumes are mounted in a service, and whether it may write there."""
    found = [str(each).partition(":")[2] for each in service.get("volumes", [])]
    return {place.removesuffix(":ro"): not place.endswith(":ro") for place in found}


def needs_of_service(service: Service) -> Needs:
    """What the process of a command line needs; of commands, `chain deploy` alone runs here beside `init`."""
    line = [str(part) for part in service["command"]]
    if reader_of(line) is Reader.WORKER:
        return needs_of(sorted(set(line) & set(Stage)))
    fixed = {Reader.UP: SERVER_NEEDS, Reader.BEAT: BEAT_NEEDS, Reader.RELAY: RELAY_NEEDS}
    return fixed.get(reader_of(line), Needs(frozenset({KeyGroup.CHAIN}), sequences=True))


def is_ours(service: Service) -> bool:
    return list(service.get("command", []))[:1] == [PROGRAM]


def reader_of(command: Sequence[str]) -> Reader:
    """The kind of process that a command line starts."""
    named = (" ".join(command[1:3]), command[1])
    return next((reader for reader in Reader if reader in named), Reader.COMMANDS)


def interpolated(text: str, variables: Mapping[str, str]) -> str:
    """A text as compose fills it in. Raises ``KeyError`` for a variable that must be set and is not."""

    def value(found: re.Match[str]) -> str:
        name, kind, rest = found.groups()
        if variables.get(name):
            return variables[name]
        if kind == ":-":
            return rest
        raise KeyError(name)

    return _VARIABLE.sub(value, text)


def _refused(line: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    """Why the command line would not take a line; it is parsed as far as its last subcommand, and not run."""
    with patch.dict(os.environ, environ, clear=True):
        try:
            command: click.Command = cli
            arguments, parent = list(line[1:]), None
            while True:
                context = command.make_context(line[0], arguments, parent=parent)
                if not isinstance(command, click.Group):
                    return
                rest = [*context._protected_args, *context.args]  # click has no other way to them before a run
                _, found, arguments = command.resolve_command(context, rest)
                if found is None:
                    yield f"there is no command {' '.join(line)}"
                    return
                command, parent = found, context
        except click.ClickException as error:
            yield f"{' '.join(line)}: {error.format_message()}"
        except click.exceptions.Exit:
            yield f"{' '.join(line)} prints its help and ends"
