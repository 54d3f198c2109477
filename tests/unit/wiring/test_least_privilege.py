"""Each process of a deployment works with its own keys alone: what it is not given it neither finds nor looks for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest

from ledger.app.facts.handing_in import hand_in
from ledger.app.settlement.attestations import anchored, confirmed, proved
from ledger.app.work.outbox import OutboxRunner, Stage
from ledger.cli.main import main
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.errors import DataDirectoryInvalid, KeyFileUnusable, SettingInvalid
from ledger.ingest.facts import read_facts
from ledger.settings import WorkerSettings
from ledger.wiring.clock import SystemRandomness
from ledger.wiring.given_keys import needs_of_commands, require_keys
from ledger.wiring.keyring import Keyring
from ledger.wiring.needs import (
    BEAT_NEEDS,
    COLLECT_NEEDS,
    EVERYTHING,
    OF_STAGE,
    RELAY_NEEDS,
    SERVER_NEEDS,
    KeyGroup,
    Needs,
    group_of,
    needs_of,
)
from ledger.wiring.parties import DemoParties
from ledger.wiring.proving_pins import PROVING_PINS, pins_of
from ledger.wiring.public_keys import PUBLIC_KEYS_FILE, read_public_keys
from ledger.wiring.services import Services, create_data, open_data
from ledger.wiring.stages import stage_work
from tests.conformance.samples import windows
from tests.support.deployment import ROOT, example_terms, request_log

DAY = date(2023, 6, 14)
BROKER = WorkerSettings(broker_url="redis://127.0.0.1:1/0")
CHAIN_STAGES = (Stage.REGISTER, Stage.ANCHOR, Stage.CONFIRM, Stage.PUBLISH)

PROVE_ALONE = """
import json, os, sys, time
from pathlib import Path

looked_for = []
keys = sys.argv[1] + "/keys"
def told(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith(keys):
        looked_for.append(str(arguments[0]))
sys.addaudithook(told)

from ledger.app.work.outbox import OutboxRunner, Stage
from ledger.settings import WorkerSettings
from ledger.wiring.needs import needs_of
from ledger.wiring.services import open_data
from ledger.wiring.stages import stage_work

workers = WorkerSettings.read(os.environ)
services = open_data(Path(sys.argv[1]), workers=workers, needs=needs_of([Stage.PROVE]))
work = {Stage.PROVE: stage_work(services)[Stage.PROVE]}
worked = OutboxRunner(services.database, work, services.clock, holder="alone").run_once()
services.close()
print(json.dumps({"worked": worked, "looked_for": looked_for}))
"""


A_TRANSACTION = {"chainId": 1, "nonce": 0, "gas": 21000, "maxFeePerGas": 1, "maxPriorityFeePerGas": 0, "value": 0}
A_TRANSACTION |= {"to": "0x" + "11" * 20, "type": 2}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> Path:
    folder = tmp_path_factory.mktemp("template") / "data"
    for group in KeyGroup:
        (folder / "keys" / group).mkdir(parents=True)
    create_data(folder, key_cache=key_cache, notify=lambda _: None).close()
    return folder


@pytest.fixture
def made(template: Path, tmp_path: Path) -> Path:
    """A directory with a folder for each group of keys, as the compose file mounts them."""
    return Path(shutil.copytree(template, tmp_path / "data"))


@contextmanager
def given(folder: Path, *groups: KeyGroup) -> Iterator[None]:
    """Only these groups of keys are there meanwhile."""
    away = folder.parent / "away"
    shutil.move(folder / "keys", away)
    (folder / "keys").mkdir()
    for group in groups:
        shutil.move(away / group, folder / "keys" / group)
    yield
    for group in groups:
        shutil.move(folder / "keys" / group, away / group)
    shutil.rmtree(folder / "keys")
    shutil.move(away, folder / "keys")


@contextmanager
def process(folder: Path, needs: Needs, key_cache: Path) -> Iterator[Services]:
    """A process of a deployment that finds the keys it needs and no others."""
    with given(folder, *needs.keys):
        services = open_data(folder, key_cache=key_cache, workers=BROKER, needs=needs)
        try:
            yield services
        finally:
            services.close()


def work(services: Services, stages: Sequence[Stage]) -> None:
    known = stage_work(services)
    runner = OutboxRunner(services.database, {each: known[each] for each in stages}, services.clock, holder="a worker")
    while runner.run_once():
        pass


def prove_alone(folder: Path, key_cache: Path) -> dict[str, object]:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "SLA_LEDGER_KEY_CACHE": str(key_cache)}
    environ |= {"HOME": str(folder.parent), "SLA_LEDGER_BROKER": "redis://127.0.0.1:1/0"}
    done = subprocess.run(
        [sys.executable, "-c", PROVE_ALONE, str(folder)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.slow
def test_a_period_is_settled_by_processes_that_hold_their_own_keys_alone(made: Path, key_cache: Path) -> None:
    shutil.copytree(made / "keys", made.parent / "parties")
    parties = DemoParties(Keyring(made.parent / "parties", SystemRandomness()))
    document = parties.signed(parties.with_keys(example_terms()))
    period = period_named(Agreement.from_document(document), f"{DAY}/P1D")

    with process(made, SERVER_NEEDS, key_cache) as server:
        request = server.commands.registration_request(document, first_period=str(period))
        assert request is not None
        signature = parties.sign_registration(request.digest)
        registered = server.commands.register(document, first_period=str(period), customer_signature=signature)
        hand_in(
            server.database,
            registered.sla_id,
            request_log("example-chat", DAY),
            attestor=server.attestor,
            clock=server.clock,
            read_rows=read_facts,
            declared_complete=period.interval,
        )
        server.commands.close(registered.sla_id, str(period))
    with process(made, needs_of([Stage.EVALUATE, Stage.COMPENSATE]), key_cache) as settler:
        work(settler, [Stage.EVALUATE, Stage.COMPENSATE])
    with given(made):
        assert prove_alone(made, key_cache) == {"worked": True, "looked_for": []}
    with process(made, needs_of(CHAIN_STAGES), key_cache) as anchorer:
        work(anchorer, CHAIN_STAGES)
    with process(made, BEAT_NEEDS, key_cache) as beat:
        beat.sign_log()
    with process(made, SERVER_NEEDS, key_cache) as server:
        with server.database.read() as tx:
            (statement_id,) = [row["id"] for row in tx.views.statements()]
            assert all(found(tx, statement_id) for found in (proved, anchored, confirmed))
            assert tx.outbox.parked() == []
        assert json.loads(server.bundles.get(statement_id))["anchor"]


def test_keys_that_are_there_are_left_alone_by_who_does_not_need_them(made: Path, key_cache: Path) -> None:
    assert prove_alone(made, key_cache) == {"worked": False, "looked_for": []}


REFUSED: dict[str, Callable[[Services], object]] = {
    "signs no checkpoint": lambda services: services.log_signer.sign_with(services.log_signer.identity.first_key),
    "signs no bundle": lambda services: services.issuer_key,
    "makes no guest token": lambda services: services.guest_seed(),
    "sends nothing to the chain": lambda services: services._chain_accounts().issuer.sign_transaction({}),
    "deploys nothing": lambda services: services._chain_accounts().deployer.sign_transaction({}),
    "seals nothing": lambda services: services.keyring.secret("collector"),
}


@pytest.mark.parametrize("act", REFUSED)
def test_who_is_given_no_key_says_who_has_it(made: Path, act: str) -> None:
    services = open_data(made, workers=BROKER, needs=needs_of([Stage.PROVE]))
    try:
        with pytest.raises(
            KeyFileUnusable, match=r"this process is given no key of .* leave that to one that needs it"
        ):
            REFUSED[act](services)
    finally:
        services.close()


def test_the_keys_of_signers_and_variables_are_no_ones_who_is_not_given_the_chain(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLA_LEDGER_ISSUER_KEY", "66" * 32)
    services = open_data(made, workers=BROKER, needs=RELAY_NEEDS)
    issuer = services._chain_accounts().issuer
    services.close()
    assert issuer.address != read_public_keys(made).accounts["issuer"]
    with pytest.raises(KeyFileUnusable):
        issuer.sign_transaction({})


@pytest.mark.parametrize(
    ("stages", "lost", "named"),
    [
        (["prove", "anchor"], "chain/issuer-evm.key", "issuer-evm.key"),
        (["confirm"], "chain/deployer-evm.key", "deployer-evm.key"),
        (["evaluate", "compensate"], "collector/collector.key", "holds no collector's key"),
    ],
)
def test_a_worker_without_the_keys_of_its_stages_does_not_start(
    made: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    stages: list[str],
    lost: str,
    named: str,
) -> None:
    monkeypatch.setenv("SLA_LEDGER_BROKER", "redis://127.0.0.1:1/0")
    (made / "keys" / lost).unlink()
    assert main(["worker", "run", *stages, "--data", str(made)]) == 2
    assert named in capsys.readouterr().err


def test_a_key_elsewhere_need_not_lie_in_a_file(made: Path) -> None:
    shutil.rmtree(made / "keys" / "chain")
    node = {"SLA_LEDGER_CHAIN_RPC": "http://127.0.0.1:1", "SLA_LEDGER_SIGNER_RPC": "http://127.0.0.1:2"}
    environ = {**node, "SLA_LEDGER_SIGNER_ISSUER": "0x" + "11" * 20, "SLA_LEDGER_DEPLOYER_KEY": "77" * 32}
    require_keys(made, needs_of([Stage.ANCHOR]), environ)
    with pytest.raises(KeyFileUnusable, match="deployer-evm"):
        require_keys(made, needs_of([Stage.ANCHOR]), {**environ, "SLA_LEDGER_DEPLOYER_KEY": ""})
    (made / "keys" / "log" / "log.key").unlink()
    require_keys(made, BEAT_NEEDS, {"SLA_LEDGER_LOG_KEY": "PRIVATE+KEY+..."})
    with pytest.raises(KeyFileUnusable, match="no key of the log"):
        require_keys(made, BEAT_NEEDS, {})


def test_a_command_works_with_the_keys_of_its_container(made: Path) -> None:
    assert needs_of_commands(made) == EVERYTHING
    with given(made, KeyGroup.CHAIN):
        for group in set(KeyGroup) - {KeyGroup.CHAIN}:
            (made / "keys" / group).mkdir()
        services = open_data(made, needs=needs_of_commands(made))
        accounts = services._chain_accounts()
        assert accounts.issuer.address == read_public_keys(made).accounts["issuer"]
        assert accounts.issuer.sign_transaction(A_TRANSACTION).hash
        with pytest.raises(KeyFileUnusable, match="server"):
            _ = services.issuer_key
        assert set(services.collectors.public_keys()) == {"collector"}
        services.close()


class TestWhatIsTold:
    def test_it_has_nothing_secret(self, made: Path) -> None:
        text = (made / PUBLIC_KEYS_FILE).read_text()
        secrets = [path.read_text().strip() for path in (made / "keys").rglob("*.key")]
        assert len(secrets) >= 5
        assert not any(secret in text for secret in secrets)

    def test_an_account_whose_key_is_elsewhere_is_told_by_the_settings_of_init(
        self, made: Path, key_cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deployer = read_public_keys(made).accounts["deployer"]
        (made / "keys/chain/deployer-evm.key").unlink()
        create_data(made, key_cache=key_cache, notify=lambda _: None).close()
        assert set(read_public_keys(made).accounts) == {"issuer"}
        services = open_data(made, workers=BROKER, needs=needs_of([Stage.PROVE]))
        with pytest.raises(SettingInvalid, match=r"the address of the deployer.*SLA_LEDGER_DEPLOYER_KEY"):
            _ = services.chain_identity
        services.close()
        monkeypatch.setenv("SLA_LEDGER_DEPLOYER_KEY", "77" * 32)
        create_data(made, key_cache=key_cache, notify=lambda _: None).close()
        monkeypatch.delenv("SLA_LEDGER_DEPLOYER_KEY")
        assert read_public_keys(made).accounts["deployer"] != deployer
        services = open_data(made, workers=BROKER, needs=needs_of([Stage.PROVE]))
        assert services.chain_identity.registry
        services.close()

    def test_a_collector_that_came_later_is_known_after_init(self, made: Path, key_cache: Path) -> None:
        Keyring(made / "keys", SystemRandomness()).make("collector-berlin")
        assert (made / "keys/collector/collector-berlin.key").exists()
        assert set(read_public_keys(made).collectors) == {"collector"}
        create_data(made, key_cache=key_cache, notify=lambda _: None).close()
        assert set(read_public_keys(made).collectors) == {"collector", "collector-berlin"}

    @pytest.mark.parametrize("content", [None, "{}", '{"format": "sla-ledger/public-keys/v1"}'])
    def test_without_it_nobody_starts_without_keys(self, made: Path, content: str | None) -> None:
        (made / PUBLIC_KEYS_FILE).unlink()
        if content is not None:
            (made / PUBLIC_KEYS_FILE).write_text(content)
        with pytest.raises(DataDirectoryInvalid, match="sla-ledger init"):
            open_data(made, needs=RELAY_NEEDS)
        open_data(made).close()


class TestFoldersOfKeys:
    def test_init_makes_what_a_server_needs_that_only_reads_its_keys(self, made: Path) -> None:
        assert main(["init", "--data", str(made)]) == 0
        assert (made / "keys/issuer/guest.key").exists()

    def test_each_key_is_made_in_the_folder_of_its_group(self, made: Path) -> None:
        found = {str(path.relative_to(made / "keys")) for path in (made / "keys").rglob("*.key")}
        assert found == {
            "log/log.key",
            "issuer/issuer.key",
            "chain/issuer-evm.key",
            "chain/deployer-evm.key",
            "collector/collector.key",
        }

    def test_keys_that_lie_together_are_moved_by_init_once_there_are_folders(
        self, tmp_path: Path, key_cache: Path
    ) -> None:
        folder = tmp_path / "data"
        services = create_data(folder, key_cache=key_cache, notify=lambda _: None)
        with services.database.begin() as tx:
            tx.events.append("s", windows(1), expected_version=0)
        services.sign_log()
        services.close()
        (folder / "keys" / PROVING_PINS).write_text(json.dumps({"format": "sla-ledger/key-pins/v1", "pins": {}}))
        before = {path.name: path.read_bytes() for path in (folder / "keys").glob("*.*") if path.suffix != ".lock"}
        for group in (KeyGroup.LOG, KeyGroup.CHAIN):
            (folder / "keys" / group).mkdir()
        services = create_data(folder, key_cache=key_cache, notify=lambda _: None)
        services.sign_log()
        services.close()
        after = {path.name: path for path in (folder / "keys").rglob("*.*") if path.suffix != ".lock"}
        assert {name for name, path in after.items() if path.parent.name == "log"} == {"log.key", "log.pin"}
        assert {name for name, path in after.items() if path.parent.name == "chain"} == {
            "issuer-evm.key",
            "deployer-evm.key",
        }
        assert {name: path.read_bytes() for name, path in after.items()} | {
            PROVING_PINS: (folder / PROVING_PINS).read_bytes()
        } == before

    def test_a_key_is_not_lost_where_another_lies_already(self, made: Path, key_cache: Path) -> None:
        (made / "keys/issuer.key").write_text("ab" * 32)
        (made / "keys/issuer.key").chmod(0o600)
        kept = (made / "keys/issuer/issuer.key").read_bytes()
        create_data(made, key_cache=key_cache, notify=lambda _: None).close()
        assert (made / "keys/issuer.key").exists()
        assert (made / "keys/issuer/issuer.key").read_bytes() == kept


def test_pins_that_lie_among_the_keys_count_until_init_has_moved_them(made: Path, key_cache: Path) -> None:
    pins = {"format": "sla-ledger/key-pins/v1", "pins": {"compliance_25x4": "0" * 64}}
    (made / "keys" / PROVING_PINS).write_text(json.dumps(pins))
    assert pins_of(made) == pins["pins"]
    create_data(made, key_cache=key_cache, notify=lambda _: None).close()
    assert not (made / "keys" / PROVING_PINS).exists()
    assert pins_of(made) == pins["pins"]


def test_every_stage_says_what_it_needs_and_only_chain_and_settling_take_keys() -> None:
    assert set(OF_STAGE) == set(Stage)
    assert {stage for stage, needs in OF_STAGE.items() if not needs.keys} == {
        Stage.EVALUATE,
        Stage.PROVE,
        Stage.DELIVER,
    }
    assert needs_of(Stage).keys | SERVER_NEEDS.keys | BEAT_NEEDS.keys == EVERYTHING.keys
    assert (group_of("log-0a1b"), group_of("collector-x"), group_of("customer")) == (
        KeyGroup.LOG,
        KeyGroup.COLLECTOR,
        None,
    )


def test_the_page_on_workers_has_what_each_process_needs() -> None:
    rows = [
        [cell.strip() for cell in line.strip("| \n").split("|")]
        for line in (ROOT / "docs/workers.md").read_text().partition("## Keys and rights")[2].splitlines()
        if line.startswith("| `")
    ]
    groups = {"none": frozenset[KeyGroup](), **{f"`{group}`": frozenset({group}) for group in KeyGroup}}
    told = {
        name.strip(" `"): Needs(groups[folder], sequences="sequences" in rights)
        for names, folder, *_, rights in rows
        for name in names.split(",")
    }
    processes = {"up": SERVER_NEEDS, "worker beat": BEAT_NEEDS, "worker relay": RELAY_NEEDS}
    processes |= {"collect": COLLECT_NEEDS, "scrape": COLLECT_NEEDS}
    assert told == {**processes, **{str(stage): needs for stage, needs in OF_STAGE.items()}}
