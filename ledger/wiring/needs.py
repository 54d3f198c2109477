"""What each process of a deployment needs: which of a directory's secrets, and whether it gives events their place.

A process is given no more than that: what it does not need it never opens, wherever the files lie. docs/workers.md
has the same as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from ledger.app.work.outbox import Stage
from ledger.errors import KeyFileUnusable


class KeyGroup(StrEnum):
    """Secrets that the same processes need. Each may lie in a folder of its own, named so, below ``keys/``."""

    LOG = "log"
    """Signs checkpoints; the pin of what was signed lies beside it."""
    ISSUER = "issuer"
    """Signs bundles and guest tokens."""
    CHAIN = "chain"
    """The accounts that pay on the chain: deployer and issuer."""
    COLLECTOR = "collector"
    """Seals what collectors reported."""


@dataclass(frozen=True, slots=True)
class Needs:
    """``keys`` are the secrets that a process uses. One that ``sequences`` logs in with the right to.

    docs/postgresql.md says what that is.
    """

    keys: frozenset[KeyGroup] = frozenset()
    sequences: bool = False


EVERYTHING: Final = Needs(frozenset(KeyGroup), sequences=True)
"""Of a process that does all the work, and of commands."""
SERVER_NEEDS: Final = Needs(frozenset({KeyGroup.ISSUER}), sequences=True)
"""Of ``up`` where workers do the work."""
BEAT_NEEDS: Final = Needs(frozenset({KeyGroup.LOG}), sequences=True)
RELAY_NEEDS: Final = Needs()
COLLECT_NEEDS: Final = Needs()
OF_STAGE: Final[Mapping[Stage, Needs]] = {
    Stage.EVALUATE: Needs(sequences=True),
    Stage.COMPENSATE: Needs(frozenset({KeyGroup.COLLECTOR}), sequences=True),
    Stage.PROVE: Needs(),
    Stage.REGISTER: Needs(frozenset({KeyGroup.CHAIN})),
    Stage.ANCHOR: Needs(frozenset({KeyGroup.CHAIN})),
    # It records anew what a reorganisation dropped.
    Stage.CONFIRM: Needs(frozenset({KeyGroup.CHAIN})),
    Stage.PUBLISH: Needs(frozenset({KeyGroup.CHAIN})),
    Stage.PUBLISH_FURTHER: Needs(frozenset({KeyGroup.CHAIN})),
    # What webhooks are signed with is in the database.
    Stage.DELIVER: Needs(),
}


def needs_of(stages: Iterable[str]) -> Needs:
    """What a worker of these stages needs."""
    found = [OF_STAGE[Stage(stage)] for stage in stages]
    return Needs(frozenset[KeyGroup]().union(*(each.keys for each in found)), any(each.sequences for each in found))


ACCOUNT_KEYS: Final = {"deployer": "SLA_LEDGER_DEPLOYER_KEY", "issuer": "SLA_LEDGER_ISSUER_KEY"}
"""The accounts of the chain and the variables that may hold their keys."""

_GROUPS: Final[Mapping[str, KeyGroup]] = {
    "log": KeyGroup.LOG,
    "issuer": KeyGroup.ISSUER,
    "guest": KeyGroup.ISSUER,
    "issuer-evm": KeyGroup.CHAIN,
    "deployer-evm": KeyGroup.CHAIN,
    "collector": KeyGroup.COLLECTOR,
}
_FAMILIES: Final = (KeyGroup.LOG, KeyGroup.COLLECTOR)
"""Groups that take every key named like them, with a hyphen and more."""


def group_of(name: str) -> KeyGroup | None:
    """The group of the secret called ``name``; None for one of a party that no process works with."""
    family = next((group for group in _FAMILIES if name.startswith(f"{group}-")), None)
    return _GROUPS.get(name, family)


def folder_of(keys: Path, group: KeyGroup | None) -> Path:
    """Where the secrets of a group lie: in its own folder where that is there, else in ``keys`` with all others."""
    own = keys if group is None else keys / group
    return own if own.is_dir() else keys


def refuse(group: KeyGroup) -> KeyFileUnusable:
    """Says to a process that is not given a group of keys that it needs one after all."""
    who = sorted(stage for stage, needs in OF_STAGE.items() if group in needs.keys)
    others = {KeyGroup.LOG: ["beat"], KeyGroup.ISSUER: ["server"]}.get(group, who)
    return KeyFileUnusable(
        f"this process is given no key of {group}; leave that to one that needs it ({', '.join(others)}): "
        "docs/workers.md says which process needs which keys",
        group=str(group),
    )
