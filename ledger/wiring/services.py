"""A data directory opened: database, chain, prover, log key and the dispatcher over them.

``data.json`` marks the directory and keeps the embedded chain's genesis time; keys are files in ``keys/``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ledger.app.bundles.building import LedgerBundles
from ledger.app.bundles.tlog import PublicLog
from ledger.app.chain.status import ChainStatus
from ledger.app.commands import Commands
from ledger.app.judgement.judging import Watch
from ledger.app.log.checkpoints import Cosigners, NoWitnesses, sign_checkpoint
from ledger.app.log.cosigning import WitnessedPublishing
from ledger.app.log.log_keys import rotate_log_key
from ledger.app.log.restore_guard import RestoreGuard
from ledger.app.periods.closing import Schedule
from ledger.app.reading.readiness import SchemaState
from ledger.app.settlement.block_seals import BlockSeals
from ledger.app.settlement.finality import DueWork, Finality
from ledger.app.webhooks.delivery import queue_deliveries
from ledger.app.work.outbox import OutboxRunner, Stage, StageWork
from ledger.app.work.repeating import Repeating
from ledger.attest.checks.probe_checks import telemetry_signature_holds
from ledger.attest.commitments.incident_credit import INCIDENTS_CIRCUIT
from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.attest.proving.attestor import CircuitAttestor
from ledger.attest.proving.ceremony_keys import PinnedKeys
from ledger.attest.proving.circuits import load_circuits
from ledger.attest.proving.zk_keys import KeyCache
from ledger.domain.record.naming import LOG_KEYS_STREAM
from ledger.domain.time.instant import SECOND_NS
from ledger.errors import DataDirectoryInvalid
from ledger.merkle.key_history import LogKey
from ledger.merkle.note import VerifierKey
from ledger.resources import resource_dir
from ledger.settings import ProverSettings, WorkerSettings, read_chain_settings, read_record, webhooks_reach_private
from ledger.store.migrate import SCHEMA_REVISION
from ledger.wiring.chain_identity import ChainIdentity, LazySigning, stored_status
from ledger.wiring.chain_watching import watchers
from ledger.wiring.clock import SystemClock, SystemRandomness
from ledger.wiring.collectors import KeyringCollectors
from ledger.wiring.data_directory import DATABASE_FILE, KEY_FOLDER, PIN_FILE
from ledger.wiring.dispatchers import POLL_S, Dispatcher, Dispatchers, NoDispatcher, Notify
from ledger.wiring.given_keys import require_keys
from ledger.wiring.keyring import Keyring
from ledger.wiring.lock import DirectoryLock
from ledger.wiring.log_keys import LOG_KEY_VARIABLE, keep_key, open_signer
from ledger.wiring.making import ensure_data
from ledger.wiring.marker import read_marker, remember_first_key
from ledger.wiring.needs import EVERYTHING, KeyGroup, Needs, folder_of
from ledger.wiring.pin import PinFile
from ledger.wiring.provers import chosen_provers, default_key_cache
from ledger.wiring.proving_pins import pins_of
from ledger.wiring.public_keys import PublicKeys, read_public_keys, write_public_keys
from ledger.wiring.root_chains import open_batches, open_root_chains
from ledger.wiring.stages import directory_holder, judge_of, process_holder, stage_work
from ledger.wiring.storage import open_storage
from ledger.wiring.witness_client import HttpWitness, witnesses_of

if TYPE_CHECKING:
    # Libraries of the chain take over a second to load, which a process that does not touch it need not spend.
    from ledger.app.chain.roots import Batches
    from ledger.wiring.chain import ChainAccounts, OpenChain
    from ledger.wiring.further_chain import FurtherChain

EMBEDDED = WorkerSettings()


class Services:
    """Everything the commands and the API need from one data directory. Close it when done."""

    def __init__(
        self,
        folder: Path,
        genesis_timestamp_s: int,
        first_log_key: VerifierKey | None,
        *,
        key_cache: Path,
        notify: Notify,
        database_url: str | None = None,
        workers: WorkerSettings = EMBEDDED,
        needs: Needs = EVERYTHING,
    ) -> None:
        self.folder = folder
        self.workers = workers
        self.clock = SystemClock()
        self.randomness = SystemRandomness()
        keys = folder / KEY_FOLDER
        self.keyring = Keyring(keys, self.randomness, needs.keys)
        self.database, self._sequencer = open_storage(
            folder, database_url, self.clock, self.randomness, notify, sequences=needs.sequences
        )
        self.log_signer = open_signer(keys, self.keyring, first_log_key, os.environ.get(LOG_KEY_VARIABLE))
        self.public_log = PublicLog(self.database, self.log_signer.identity)
        self._cosigners = self._open_witnesses(notify)
        self.guard = RestoreGuard(PinFile(folder_of(keys, KeyGroup.LOG) / PIN_FILE))
        self._lock: DirectoryLock | None = None
        self._genesis_timestamp_s = genesis_timestamp_s
        self.chain_settings, self.record = read_chain_settings(os.environ), read_record(os.environ)
        self.webhooks_private = webhooks_reach_private(os.environ)
        circuits = load_circuits(resource_dir("circuits"))
        proving_keys = PinnedKeys(KeyCache(key_cache, resource_dir("circuits"), notify), pins_of(folder))
        self._provers = chosen_provers(circuits, proving_keys, ProverSettings.read(os.environ))
        self.attestor = CircuitAttestor(circuits, self._provers)
        self.bundles = LedgerBundles(self.database, self.log_signer.vkey_at, self._sign_bundle, self.attestor)
        self.collectors = KeyringCollectors(self.keyring, lambda: self.public_keys.collectors)
        self.schedule = DueWork(
            Schedule(self.database, self.attestor, self.clock), Finality(self.database, self.attestor, self.clock)
        )
        judge = judge_of(self)
        self.watch = Watch(self.database, judge)
        self.block_seals = BlockSeals(self.database, judge, self.randomness)
        if needs.keys & {KeyGroup.LOG, KeyGroup.CHAIN}:
            # Who forms batches or publishes them: a wrong file of further chains is said at the start.
            _ = self.batches
        embedded = workers.broker_url is None
        self.holder = directory_holder(folder) if embedded else process_holder()
        self._schedule_at_s = 0.0
        self.dispatcher = self._dispatchers(notify) if embedded else NoDispatcher()

    def _dispatchers(self, notify: Notify) -> Dispatchers:
        return Dispatchers(
            Dispatcher(self._run_once, self.sign_log, notify),
            # Receivers that are slow to answer hold up nobody's settlement, nor do nodes that are.
            Repeating(self._deliver_once, name="the courier", rest_s=POLL_S, notify=notify),
            Repeating(self._publish_further_once, name="the publisher", rest_s=POLL_S, notify=notify),
            *watchers(self, notify),
        )

    @cached_property
    def root_chains(self) -> Mapping[str, FurtherChain]:
        """The further chains that roots are published on, by their ids. Raises ``SettingInvalid``."""
        return open_root_chains(self.folder, self.database, self.clock, self._chain_accounts, os.environ)

    @cached_property
    def batches(self) -> Batches:
        """What forms the batches that are published. Raises ``SettingInvalid``."""
        return open_batches(self.database, self.attestor, self.clock, self.root_chains, os.environ)

    @cached_property
    def public_keys(self) -> PublicKeys:
        """What the directory tells of keys that this process is not given. Raises ``DataDirectoryInvalid``."""
        return read_public_keys(self.folder)

    def own_public_keys(self) -> PublicKeys:
        """The same, from the keys themselves."""
        from ledger.wiring.chain_accounts import addresses_at_hand

        accounts = addresses_at_hand(self.keyring, self.chain_settings, os.environ)
        return PublicKeys(self.log_signer.identity.first_key, accounts, self.collectors.public_keys())

    @cached_property
    def issuer_key(self) -> SigningKey:
        """What bundles are signed with; processes that sign nothing need not hold it."""
        return self.keyring.signing_key("issuer")

    def _sign_bundle(self, message: bytes) -> bytes:
        return self.issuer_key.sign(message)

    @cached_property
    def chain(self) -> OpenChain:
        """The chain that the settings name.

        The embedded one is rebuilt from its stored transactions when it is first needed. It lives in this process, so
        the directory is this process's alone from here on. Raises ``DataDirectoryInUse``. The chain of a node is for
        any number of processes.
        """
        from ledger.wiring.chain import RpcChain, open_chain

        if self.chain_settings.rpc_url is not None:
            return RpcChain(self.database, self._chain_accounts(), self.chain_settings, self.clock)
        self._lock = DirectoryLock(self.folder)
        return open_chain(self.database, self._chain_accounts(), self._genesis_timestamp_s, self.clock)

    @cached_property
    def chain_identity(self) -> ChainIdentity:
        """The chain and registry that proofs are for; processes that do not work the embedded chain know them, too."""
        if self.chain_settings.rpc_url is not None:
            return ChainIdentity(*self.chain.location())
        from ledger.wiring.account_addresses import embedded_identity

        return embedded_identity(self.keyring, self.chain_settings, os.environ, lambda: self.public_keys.accounts)

    def meant_chain(self) -> ChainIdentity:
        """As ``chain_identity``, for processes that only write and read: nothing is sent or deployed to a node."""
        if self.chain_settings.rpc_url is not None:
            return ChainIdentity(*self.chain.location())
        return self.chain_identity

    def _chain_accounts(self) -> ChainAccounts:
        from ledger.wiring.chain_accounts import chain_accounts

        return chain_accounts(self.keyring, self.chain_settings, os.environ, lambda: self.public_keys.accounts)

    @cached_property
    def runner(self) -> OutboxRunner:
        """Works the stages of this deployment.

        The embedded one works them all, so it opens the chain first: with the directory's lock in hand, what a process
        before this one had leased in the directory's name is due again.
        """
        if self.workers.broker_url is None:
            _ = self.chain
            with self.database.begin() as tx:
                tx.outbox.release(self.holder)
        work = dict(stage_work(self))
        if self.workers.broker_url is None:
            del work[Stage.DELIVER], work[Stage.PUBLISH_FURTHER]
        return self._runner_of(work)

    @cached_property
    def further_publisher(self) -> OutboxRunner:
        """Publishes on further chains, beside the runner of the embedded deployment."""
        return self._runner_of({Stage.PUBLISH_FURTHER: stage_work(self)[Stage.PUBLISH_FURTHER]})

    @cached_property
    def deliverer(self) -> OutboxRunner:
        """Tells webhook endpoints, beside the runner of the embedded deployment."""
        return self._runner_of({Stage.DELIVER: stage_work(self)[Stage.DELIVER]})

    def _runner_of(self, work: Mapping[Stage, StageWork]) -> OutboxRunner:
        lease_ns = self.workers.lease_s * SECOND_NS
        return OutboxRunner(self.database, work, self.clock, holder=self.holder, lease_ns=lease_ns)

    @cached_property
    def commands(self) -> Commands:
        """The writes, of tenant ``default``."""
        return Commands(
            self.database,
            self.attestor,
            collectors=self.collectors,
            signing=LazySigning(self.meant_chain),
            verify=verify,
            clock=self.clock,
            verify_telemetry=telemetry_signature_holds,
        )

    def warm_provers(self, windows: int = 1, *, incidents: bool = False) -> None:
        """Load now, instead of with the first proof, the proving keys for periods of up to ``windows`` windows, and
        that of incident credits if asked to.

        Those of longer periods take minutes and a gigabyte; whoever has none never pays for them. Raises
        ``ProverUnavailable``, and ``Refused`` where no circuit takes as many windows.
        """
        for name in (*self.attestor.circuits_up_to(windows), *((INCIDENTS_CIRCUIT,) if incidents else ())):
            self._provers[name].warm()

    def guest_seed(self) -> bytes:
        """The secret that guest tokens are signed with, made when it is first needed."""
        self.keyring.make("guest")
        return self.keyring.secret("guest")

    def sign_log(self) -> None:
        """Sign the present size of the log, have it cosigned by the witnesses if there are any, and publish it."""
        sign_checkpoint(self.database, self.log_signer, self._cosigners, self.guard)

    def publish_roots(self) -> None:
        """Put what waits into a batch now, publish it on the home chain, and sign the log. Raises ``StageFailed``."""
        if self.batches.form_due(at_once=True):
            self.runner.run_until_idle(time.sleep)
            self.sign_log()

    def rotate_log_key(self, new: NoteKey) -> LogKey:
        """Make ``new`` the log's key: sign with the old one once more, log the rotation, sign with the new one.

        The new key's file is there before the log says that it counts. Raises ``KeyFileUnusable``, and
        ``LogInconsistent`` for a key that cannot follow.
        """
        self.sign_log()
        self.log_signer.hold(new)
        remember_first_key(self.folder, self.log_signer.identity.first_key)
        keep_key(self.folder / KEY_FOLDER, new)
        with self.database.begin() as tx:
            rotated = rotate_log_key(
                tx,
                self.log_signer.identity,
                new.key,
                sign_with=self.log_signer.sign_with,
                now_ns=self.clock.now_ns(),
            )
            rotations = [event.id for event in tx.events.stream(LOG_KEYS_STREAM)]
        # The new key signs a tree that holds its rotation.
        self.database.wait_sequenced(rotations)
        self.sign_log()
        return rotated

    @property
    def witnesses(self) -> tuple[tuple[HttpWitness, ...], int]:
        """The witnesses that this directory publishes by, and how many must cosign. Raises ``SettingInvalid``."""
        return witnesses_of(self.folder)

    def _open_witnesses(self, notify: Notify) -> Cosigners:
        witnesses, quorum = self.witnesses
        if not witnesses:
            return NoWitnesses()
        return WitnessedPublishing(self.database, witnesses, quorum, verify=verify, clock=self.clock, notify=notify)

    def _run_once(self) -> bool:
        if time.monotonic() >= self._schedule_at_s:
            self._schedule_at_s = time.monotonic() + self.workers.schedule_s
            self.block_seals.seal_due()
            self.schedule.close_due()
            self.watch.judge_new()
            self.batches.form_due()
        return self.runner.run_once()

    def _publish_further_once(self) -> bool:
        return bool(self.root_chains) and self.further_publisher.run_once()

    def _deliver_once(self) -> bool:
        return queue_deliveries(self.database) > 0 or self.deliverer.run_once()

    def chain_status(self) -> ChainStatus:
        """With workers of their own the embedded chain is the anchor worker's: this process tells what is stored."""
        if self.workers.broker_url is not None and self.chain_settings.rpc_url is None:
            return stored_status(self.database, self.chain_identity)
        return self.chain.status()

    def schema_state(self) -> SchemaState:
        return SchemaState(self.database.revision(), SCHEMA_REVISION)

    def close(self) -> None:
        for prover in self._provers.values():
            prover.close()
        if self._sequencer is not None:
            self._sequencer.stop()
        self.database.close()
        if self._lock is not None:
            self._lock.release()


def create_data(
    folder: Path,
    *,
    key_cache: Path,
    notify: Notify,
    database_url: str | None = None,
    workers: WorkerSettings = EMBEDDED,
) -> Services:
    """Open a data directory, making it first where ``folder`` is absent, empty or was left half made.

    Keys and database come first and the marker last, whole or not at all. Raises ``DataDirectoryInvalid`` where the
    folder holds something else: nothing of another's is written into. A log that was imported without keys gets its own
    here. What is told of keys to processes that are not given them is written anew.
    """
    ensure_data(folder, database_url)
    services = open_data(folder, key_cache=key_cache, notify=notify, database_url=database_url, workers=workers)
    try:
        write_public_keys(folder, services.own_public_keys())
    except BaseException:
        services.close()
        raise
    return services


def open_data(
    folder: Path,
    *,
    key_cache: Path | None = None,
    notify: Notify = lambda _: None,
    database_url: str | None = None,
    workers: WorkerSettings = EMBEDDED,
    needs: Needs = EVERYTHING,
) -> Services:
    """Open a data directory that ``create_data`` made.

    ``database_url`` names a PostgreSQL that holds the log instead of a file in the directory; ``workers`` says who
    works its outbox. The keys that the process ``needs`` must be there; others it does not open.

    Raises ``DataDirectoryInvalid``, also where the database is gone: a new one under the old keys would be another
    history in the same name. Raises ``DataDirectoryInUse``, and ``KeyFileUnusable`` for a missing key.
    """
    marker = read_marker(folder)
    database = folder / DATABASE_FILE
    if database_url is None and (not database.is_file() or database.stat().st_size == 0):
        raise DataDirectoryInvalid(
            f"{database} is missing or empty, but the directory's keys have signed its log: restore it from a backup, "
            "or name the PostgreSQL that holds it",
            path=str(database),
        )
    require_keys(folder, needs, os.environ)
    told = None if KeyGroup.LOG in needs.keys else read_public_keys(folder).log
    return Services(
        folder,
        marker.genesis_timestamp_s,
        marker.first_log_key or told,
        key_cache=key_cache or default_key_cache(),
        notify=notify,
        database_url=database_url,
        workers=workers,
        needs=needs,
    )
