"""Any sequence of calls, honest or not, has the outcome that the model says, and leaves what the model holds.

SEED=N repeats a run; the seed of each run is printed.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import pytest
from eth_account.signers.local import LocalAccount
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from ledger.anchor.chain import DeployedVerifier, Statement
from ledger.anchor.registration import sign_registration, sla_id
from ledger.app.ports.evidence import Registration
from ledger.attest.crypto.batch import batch_node
from ledger.errors import AnchorRefused, NotFound
from ledger.merkle.checkpoint import Checkpoint
from tests.contracts.ground import CUSTOMER, DAY, DEPLOYER, HOUR, ISSUER, SECOND, STRANGER, TERMS_HASH, Ground
from tests.contracts.model import NOTHING, ModelRegistry
from tests.contracts.test_statements import slot_of
from tests.contracts.trapdoor import Trapdoor, curve_order, rerandomise

EXAMPLES = {"anvil": 10, "embedded": 2}
STEPS = {"anvil": 25, "embedded": 10}

WEIGHTS = [*["record"] * 4, *["restate"] * 4, "replay", *["agree"] * 2, *["publish"] * 2, "govern", "wait"]

senders = st.sampled_from([*[ISSUER] * 7, *[CUSTOMER] * 3, STRANGER, DEPLOYER])
admins = st.sampled_from([DEPLOYER, DEPLOYER, ISSUER, STRANGER])
rarely = st.integers(0, 5).map(lambda n: n == 5)
mostly = rarely.map(lambda n: not n)
lies = st.sampled_from([*["none"] * 14, "proof", "ctx", "chain", "plus r", "terms hash", "windows"])


class Registry(RuleBasedStateMachine):
    """The contract on one side, the model on the other."""

    ground: ClassVar[Ground]
    outcomes: ClassVar[Counter[str]]
    runs: ClassVar[int] = 0

    @initialize()
    def begin(self) -> None:
        type(self).runs += 1
        self.model = ModelRegistry(verifiers={self.ground.verifier.circuit_id})
        self.trapdoors = {self.ground.verifier.circuit_id: self.ground.trapdoor}
        self.recorded: list[Statement] = []
        self.first_start = (self.ground.clock_s // 86_400 - 10) * DAY
        self.first_block = self.ground.anchor.latest_block() + 1
        # An agreement has circuits whether or not somebody adds their verifiers.
        trapdoor = Trapdoor(f"{self.ground.chain.name} {self.runs}")
        words = b"".join(word.to_bytes(32, "big") for word in trapdoor.words)
        self.later = DeployedVerifier("", _circuit_id(words), b"")
        self.trapdoors[self.later.circuit_id] = trapdoor
        self._register(self._terms(), ISSUER, signed=True)
        (sla,) = self.model.agreements
        self._send(self._proved(self.ground.statement(sla, start=self.first_start, proved=False)), ISSUER, proved=True)

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        if self.model.paused:
            self.ground.send(DEPLOYER, "unpause")
        self.everything_stands()

    # --- steps -------------------------------------------------------------------------------

    def outcome(self, call: Callable[[], object]) -> str | None:
        try:
            got = None if call() else NOTHING
        except AnchorRefused as refused:
            got = str(refused.data["error"])
        self.outcomes[got or "changed"] += 1
        return got

    @property
    def now_ns(self) -> int:
        """The time of the block that the next call comes to stand in."""
        return (self.ground.clock_s + 1) * SECOND

    @rule(data=st.data(), what=st.sampled_from(WEIGHTS))
    def step(self, data: st.DataObject, what: str) -> None:
        """One rule for all, since Hypothesis leaves some rules out of each run, and recording must be in all."""
        getattr(self, what)(data)

    def wait(self, data: st.DataObject) -> None:
        self.ground.clock_s += 86_400 * data.draw(st.integers(1, 12), label="days")

    def _terms(self, late_ns: int = 0) -> Registration:
        circuits = (self.ground.verifier.circuit_id, self.later.circuit_id)
        effective, first = self.first_start + late_ns, self.first_start
        return self.ground.terms(effective_from_ns=effective, first_start_ns=first, circuit_ids=circuits)

    def agree(self, data: st.DataObject) -> None:
        sender, signed = data.draw(senders, label="sender"), data.draw(mostly, label="signed")
        if data.draw(st.sampled_from([False, False, True]), label="new"):
            self._register(self._terms(late_ns=data.draw(rarely, label="late")), sender, signed)
            return
        version = data.draw(st.sampled_from([1, 1, 1, 1, 0, 2]), label="version")
        hours = data.draw(st.integers(-2, 60), label="hours from now")
        moved = data.draw(rarely, label="first start moved")
        last = self.model.agreements[self._some_agreement(data)].terms[-1]
        amended = replace(
            last,
            terms_version=last.terms_version + version,
            terms_hash=TERMS_HASH + last.terms_version,
            effective_from_ns=self.now_ns // HOUR * HOUR + hours * HOUR,
            first_start_ns=last.first_start_ns + moved * DAY,
        )
        self._register(amended, sender, signed)

    def _register(self, terms: Registration, sender: LocalAccount, signed: bool) -> None:
        anchor = self.ground.anchor
        hand = CUSTOMER if signed else STRANGER
        signature = sign_registration(terms, anchor.chain_id, anchor.registry, hand)
        sla = sla_id(terms.issuer, terms.customer, terms.nonce)
        expected = self.model.register(sla, terms, sender.address, signed, self.now_ns)
        assert self.outcome(lambda: self.ground.register(terms, sender=sender, signature=signature)) == expected

    def record(self, data: st.DataObject) -> None:
        self._record_next(data, data.draw(senders, label="sender"), data.draw(lies, label="lie"))

    def restate(self, data: st.DataObject) -> None:
        self._restate(data, data.draw(senders, label="sender"), data.draw(lies, label="lie"))

    def _record_next(self, data: st.DataObject, sender: LocalAccount, lie: str) -> None:
        sla = self._some_agreement(data)
        shift = data.draw(st.sampled_from([*[0] * 8, -HOUR, 1, DAY]), label="shift")
        self._record(
            data, sla, sender, lie,
            start=self.model.agreements[sla].next_start + shift,
            hours=data.draw(st.sampled_from([1, 24, 120, 240]), label="hours"),
            statement_version=data.draw(st.sampled_from([*[1] * 8, 0, 2]), label="version"),
        )  # fmt: skip

    def _restate(self, data: st.DataObject, sender: LocalAccount, lie: str) -> None:
        replaced = data.draw(st.sampled_from(self.recorded[-3:]), label="replaced")
        version = replaced.statement_version + data.draw(st.sampled_from([*[1] * 8, 0, -1, 2]), label="version")
        self._record(
            data, replaced.sla_id, sender, lie,
            start=replaced.start_ns,
            hours=(replaced.end_ns - replaced.start_ns) // HOUR,
            replaces=replaced,
            statement_version=max(version, 0),
            alter=data.draw(st.integers(0, 2), label="credit"),
        )  # fmt: skip

    def replay(self, data: st.DataObject) -> None:
        """Somebody re-randomises a proof that he sees, and sends it again."""
        s = data.draw(st.sampled_from(self.recorded), label="replayed")
        sender, factor = data.draw(senders, label="sender"), data.draw(st.integers(1, 9), label="factor")
        self._send(replace(s, proof=rerandomise(s.proof, factor)), sender, proved=True)

    def _record(
        self, data: st.DataObject, sla: bytes, sender: LocalAccount, lie: str, *, alter: int = 0, **fields: object
    ) -> None:
        known = self.model.agreements[sla]
        in_force = known.in_force(int(str(fields["start"])))
        version = data.draw(st.sampled_from([in_force] * 10 + [in_force + 1, 0]), label="terms version")
        named = known.terms[min(max(version, 1), len(known.terms)) - 1]
        circuit = data.draw(st.sampled_from([self.ground.verifier.circuit_id, *self.trapdoors]), label="circuit")

        def signals(values: list[int]) -> None:
            values[1] += alter
            values[4] = named.terms_hash + (lie == "terms hash")
            values[0] += (lie == "windows") << 8

        s = self.ground.statement(
            sla, proved=False, terms_version=version, circuit_id=circuit, alter_signals=signals, **fields  # type: ignore[arg-type]
        )  # fmt: skip
        if lie in ("ctx", "chain"):
            ctx = s.signals[2] ^ 1 if lie == "ctx" else self.ground.ctx(s, chain_id=1)
            s = replace(s, signals=(*s.signals[:2], ctx, *s.signals[3:]))
        s = self._proved(s)
        if lie == "proof":
            s = replace(s, proof=self.trapdoors[circuit].forge((*s.signals[:3], s.signals[3] - 1, *s.signals[4:])))
        if lie == "plus r":
            s = replace(s, signals=(s.signals[0] + curve_order, *s.signals[1:]))
        self._send(s, sender, proved=lie != "proof")

    def _proved(self, s: Statement) -> Statement:
        return replace(s, proof=self.trapdoors[s.circuit_id].forge(s.signals))

    def _send(self, s: Statement, sender: LocalAccount, *, proved: bool) -> None:
        ctx = self.ground.ctx(s)
        expected = self.model.record(s, sender.address, ctx=ctx, proved=proved, now_ns=self.now_ns)
        assert self.outcome(lambda: self.ground.record(s, sender=sender).recorded) == expected
        if expected is None:
            self.recorded.append(s)

    def govern(self, data: st.DataObject) -> None:
        sender = data.draw(admins, label="sender")
        what = data.draw(st.sampled_from(["add", "retire", "pause", "resume", "resume"]), label="what")
        if what == "add":
            self._add_verifier(sender)
        elif what == "retire":
            expected = self.model.retire(self.later.circuit_id, sender is DEPLOYER)
            assert self.outcome(lambda: self.ground.send(sender, "retireVerifier", self.later.circuit_id)) == expected
        else:
            expected = self.model.pause(what == "pause", sender is DEPLOYER)
            function = "pause" if what == "pause" else "unpause"
            assert self.outcome(lambda: self.ground.send(sender, function)) == expected

    def _add_verifier(self, sender: LocalAccount) -> None:
        circuit = self.later.circuit_id
        if not self.later.address:
            self.later = self.ground.deploy_verifier(self.trapdoors[circuit])
            assert self.later.circuit_id == circuit
        expected = "VerifierExists" if circuit in self.model.verifiers else None
        expected = expected if sender is DEPLOYER else "AccessControlUnauthorizedAccount"
        add = self.ground.anchor.add_verifier
        assert self.outcome(lambda: add(sender, self.later, dev_unsafe=True, now_s=self.ground.tick())) == expected
        if expected is None:
            self.model.verifiers.add(circuit)

    def publish(self, data: st.DataObject) -> None:
        sender = data.draw(st.sampled_from([ISSUER, STRANGER]), label="sender")
        log, size = data.draw(st.sampled_from("ab"), label="log"), data.draw(st.integers(1, 9), label="size")
        root = bytes([data.draw(st.sampled_from([1, 1, 1, 2]), label="root")]) * 32
        batch = data.draw(st.integers(0, 3), label="batch")
        state, batch_root = self._checkpoint(log, size, root), bytes([batch]) * 32
        expected = self.model.anchor(sender.address, state.origin, size, root, batch_root)
        batches = self.ground.batches

        def anchor() -> object:
            return batches.events_of(batches.anchor(sender, state, batch_root, now_s=self.ground.tick()))

        assert self.outcome(anchor) == expected

    def _checkpoint(self, log: str, size: int, root: bytes) -> Checkpoint:
        return Checkpoint(f"{self.ground.chain.name}/{self.runs}/{log}", size, root)

    def _some_agreement(self, data: st.DataObject) -> bytes:
        return data.draw(st.sampled_from(sorted(self.model.agreements)), label="agreement")

    # --- what stands at the end --------------------------------------------------------------

    def everything_stands(self) -> None:
        anchor, batches = self.ground.anchor, self.ground.batches
        latest = anchor.latest_block()
        for sla, known in self.model.agreements.items():
            state = anchor.sla_state(sla)
            assert (state.terms_version, state.next_start_ns) == (len(known.terms), known.next_start)
            events = anchor.recorded(sla, from_block=self.first_block, to_block=latest)
            assert sorted((e.start_ns, e.statement_version, e.ctx) for e in events) == sorted(
                (start, n + 1, signals[2])
                for (start, _), versions in known.periods.items()
                for n, signals in enumerate(versions)
            ), "each statement once, from the chain's own logs"
        for s in self.recorded:
            slot = slot_of(self.ground, s)
            versions = self.model.agreements[s.sla_id].periods[s.start_ns, s.end_ns]
            assert slot > 1
            assert slot & 1 == (s.statement_version < len(versions))
        for sender, origin, size, root, batch in self.model.batches:
            assert batches.anchored_at(sender, batch_node(Checkpoint(origin, size, root), batch)) is not None
        for (sender, origin), (size, _) in self.model.heads.items():
            assert batches.latest_size(sender, origin) == size
        if self.later.circuit_id not in self.model.verifiers:
            with pytest.raises(NotFound):
                anchor.verifier_of(self.later.circuit_id)


def _circuit_id(words: bytes) -> bytes:
    return hashlib.sha256(b"sla-ledger/vk/v1" + (6).to_bytes(4, "big") + words).digest()


@pytest.mark.slow
def test_any_sequence_of_calls_comes_to_what_the_model_says(ground: Ground) -> None:
    number = int(os.environ.get("SEED") or random.SystemRandom().randrange(2**32))
    print(f"SEED={number}")
    name = ground.chain.name
    machine = type(f"Registry_{name}", (Registry,), {"ground": ground, "outcomes": Counter()})
    bounds = settings(
        max_examples=EXAMPLES[name],
        stateful_step_count=STEPS[name],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(number)(machine), settings=bounds)
    print(machine.outcomes)
