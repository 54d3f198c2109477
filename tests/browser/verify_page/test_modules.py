"""The page's modules give the published vectors, and read terms, zones and periods as the package does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from ledger.attest.commitments.agreement_terms import attested_terms
from ledger.attest.commitments.attestation_context import sla_id
from ledger.attest.crypto.evm_tx import decode_transaction
from ledger.domain.credits.settlement import attestability
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.terms.agreement import Agreement
from ledger.domain.time import calendar
from ledger.errors import BadInput, SlaLedgerError
from tests.browser.verify_page.conftest import Checker, plain
from tests.support import examples
from tests.unit.attest import test_evm_tx
from tests.unit.attest.test_verification_binding import leaves, variants, with_value

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
VECTORS = json.loads((ROOT / "docs" / "attestation-vectors.json").read_bytes())


# --- vectors -----------------------------------------------------------------------------------


def test_hashes_and_tags(checker: Checker) -> None:
    said = VECTORS["1 conventions"]
    found = checker.run(
        """({ poseidon, hashes, bytes }, said) => ({
          tags: Object.fromEntries(Object.keys(said.tags).map((name) => [name, String(poseidon.tag(name))])),
          empty: bytes.hex(hashes.keccak256(new Uint8Array())),
          poseidon: said.poseidon.map(({ inputs }) => String(poseidon.poseidon(inputs.map(BigInt)))),
        })""",
        said,
    )
    assert found == {
        "tags": said["tags"],
        "empty": said["keccak of the empty text"],
        "poseidon": [each["hash"] for each in said["poseidon"]],
    }


def test_canonical_json(checker: Checker) -> None:
    said = VECTORS["2 canonical JSON"]
    found = checker.run(
        """({ json, bytes }, { exact, refused }) => {
          const refuses = (text) => {
            try { return json.parseJson(bytes.utf8(text), 1000) === undefined; } catch { return true; }
          };
          return {
            exact: exact.map(({ value }) => bytes.hex(json.canonicalBytes(value))),
            read: exact.map(({ utf8 }) => json.parseCanonical(bytes.fromHex(utf8), 1000))
              .map((value) => bytes.hex(json.canonicalBytes(value))),
            refused: refused.map(refuses),
          };
        }""",
        said,
    )
    texts = [each["utf8"] for each in said["exact"]]
    assert found == {"exact": texts, "read": texts, "refused": [True] * len(said["refused"])}


def test_transactions_of_every_type_and_spelling_are_read_alike(checker: Checker) -> None:
    raws = [test_evm_tx.of_type(kind) for kind in test_evm_tx.TYPES]
    raws += [test_evm_tx.of_type(0, chainId=None), *(raw for raw, _ in test_evm_tx.SPELLINGS.values())]
    found = checker.run(
        """({ transaction, bytes }, raws) => raws.map((raw) => {
          try {
            const { hash, sender, chainId, to, value, data } = transaction.decodeTransaction(bytes.fromHex(raw));
            return [bytes.hex(hash), sender, String(chainId), to, String(value), bytes.hex(data)];
          } catch { return null; }
        })""",
        [raw.hex() for raw in raws],
    )
    assert found == [_read(raw) for raw in raws]
    assert sum(each is not None for each in found) == len(test_evm_tx.TYPES)


def _read(raw: bytes) -> list[str | None] | None:
    try:
        tx = decode_transaction(raw)
    except SlaLedgerError:
        return None
    return [tx.tx_hash.hex(), tx.sender, str(tx.chain_id), tx.to, str(tx.value_wei), tx.data.hex()]


def test_words_commitments_and_contexts(checker: Checker) -> None:
    signals, said = VECTORS["8 signals"], VECTORS["9 context"]
    found = checker.run(
        """({ formats, bytes }, { windows, summaries, base, credit, contexts }) => ({
          words: windows.map(({ good, bad, ...flags }) =>
            String(formats.wordOf({ good: good.map(BigInt), bad: bad.map(BigInt), ...flags }))),
          summaries: summaries.map(({ summary }) => formats.decodeSummary(BigInt(summary))),
          base: String(formats.baseCommit(BigInt(base.seal_key), BigInt(base.fee), BigInt(base.salt))),
          credit: String(formats.creditCommit(BigInt(credit.ctx), BigInt(credit.credit), BigInt(credit.salt))),
          contexts: contexts.map((each) => String(formats.contextOf({
            chainId: BigInt(each.chain_id), registry: each.registry, slaId: bytes.fromHex(each.sla_id.slice(2)),
            interval: { startNs: BigInt(each.start_ns), endNs: BigInt(each.end_ns) }, termsVersion: each.terms_version,
            statementVersion: each.statement_version, previous: BigInt(each.prev_ctx),
          }))),
        })""",
        {
            "windows": VECTORS["4 windows"],
            "summaries": signals["summary"],
            "base": signals["base commitment"],
            "credit": signals["credit commitment"],
            "contexts": said,
        },
    )
    words = ("unused", "no_data", "met", "breached")
    assert found["words"] == [each["word"] for each in VECTORS["4 windows"]]
    assert found["base"] == signals["base commitment"]["base_commit"]
    assert found["credit"] == signals["credit commitment"]["credit_commit"]
    assert found["contexts"] == [each["ctx"] for each in said]
    counts = ("windows", "observed", "excluded", "idle")
    assert found["summaries"] == [
        {"states": [words[state] for state in each["states"]], **{name: each[name] for name in counts}}
        for each in signals["summary"]
    ]


def test_seals_and_who_signed_them(checker: Checker) -> None:
    said = VECTORS["5 seal"]
    found = checker.run(
        """({ formats, babyjub, bytes, agreement }, { key, roots, signers }) => ({
          key: String(formats.sealKeyOf(bytes.fromHex(key.sla_id.slice(2)), bytes.fromHex(key.doc_sha256),
            { startNs: BigInt(key.start_ns), endNs: BigInt(key.end_ns) }, key.window_seconds)),
          roots: roots.map(({ seal_key, words, blocks }) =>
            String(formats.telemetryRootOf(BigInt(seal_key), words.length, blocks.map(BigInt)))),
          signers: signers.map((said) => [0n, 1n].map((more) =>
            babyjub.telemetrySignatureHolds(agreement.readPoint(said.public_key), BigInt(said.telemetry_root) + more,
              { r8: agreement.readPoint(said.r8), s: BigInt(said.s) }))),
        })""",
        {
            "key": said["seal key"],
            "roots": [said["one block"], said["seven blocks"]],
            "signers": [said["collector"], said["probe"]],
        },
    )
    assert found == {
        "key": said["seal key"]["seal_key"],
        "roots": [said[name]["telemetry_root"] for name in ("one block", "seven blocks")],
        "signers": [[True, False]] * 2,
    }


def test_keys_names_and_incidents(checker: Checker) -> None:
    proof, claims = VECTORS["10 proof"], VECTORS["8 signals"]["incident credit"]
    found = checker.run(
        """({ formats, groth16, bytes }, { proof, claims }) => ({
          circuit: groth16.readKey(proof.verification_key).circuitId,
          leaf: bytes.hex(formats.nameOf(BigInt(proof.signals[2]), [{
            circuitId: proof.circuit_id, signals: proof.signals.map(BigInt), proof: proof.proof,
          }]).leaf),
          roots: claims.map((each) => String(formats.incidentRootOf(BigInt(each.seal_key), {
            impact: { coefficientE9: BigInt(each.coefficient), priceE9: BigInt(each.price) },
            rulesCombine: each.sum_rules ? "sum" : "best",
          }, each.incidents.map(([first, count, good, bad]) => (
            { first, count, good: BigInt(good), valid: BigInt(good) + BigInt(bad) }))))),
        })""",
        {"proof": proof, "claims": claims},
    )
    assert found == {
        "circuit": proof["circuit_id"],
        "leaf": proof["leaf"],
        "roots": [each["signals"][5] for each in claims],
    }


# --- terms -------------------------------------------------------------------------------------

_READ = """
(modules, documents) => documents.map((text) => {
  const { agreement, attestability, bytes, json, terms, formats } = modules;
  const attempt = (run) => { try { return run(); } catch (error) { return null; } };
  return attempt(() => {
    const document = json.parseJson(bytes.utf8(text), 10 ** 6);
    modules.shape.checkShape(slaLedger.tables.schemas.bundle.properties.agreement, document);
    const read = agreement.readAgreement(document);
    return {
      doc: bytes.hex(read.docSha256),
      sla: attempt(() => bytes.hex(formats.slaIdOf(read))),
      reasons: attestability.reasonsWithoutProof(read, []),
      terms: attempt(() => String(terms.termsHashOf(read))),
      most: read.mostWindows,
      periods: [...read.periods.all()].slice(0, 40)
        .map(({ interval }) => [interval.startNs, interval.endNs].map(String)),
    };
  });
})
"""


def read_here(document: Any) -> dict[str, Any] | None:
    """What the page finds in an agreement; None where it is refused."""
    try:
        agreement = Agreement.from_document(document)
    except SlaLedgerError:
        return None
    reasons = attestability(agreement)
    try:
        name = sla_id(agreement).hex()
    except SlaLedgerError:
        name = None
    try:
        terms: str | None = str(attested_terms(agreement).hash())
    except SlaLedgerError:
        terms = None
    spans = [period.interval for period, _ in zip(agreement.periods.all(), range(40), strict=False)]
    return {
        "doc": agreement.doc_sha256.hex(),
        "sla": name,
        "reasons": list(reasons),
        "terms": terms,
        "most": agreement.most_windows,
        "periods": [[str(span.start_ns), str(span.end_ns)] for span in spans],
    }


def signed(document: Any) -> dict[str, Any]:
    """A document in the shape of a signed one, with the parties' members of the vectors."""
    of = examples.bundle()["agreement"]
    keys = {name: of[name] for name in ("nonce", "parties", "collector", "signatures")}
    return {**document, **keys}


def example_agreements() -> Iterator[dict[str, Any]]:
    for path in sorted((ROOT / "examples").glob("**/*.yaml")):
        document = yaml.safe_load(path.read_text())
        if isinstance(document, dict) and document.get("kind") == "Agreement":
            yield signed(json.loads(json.dumps(document, default=str)))


def compare(checker: Checker, documents: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    texts = [canonical_bytes(document).decode() for document in documents]
    found = checker.run(_READ, texts)
    expected = [read_here(document) for document in documents]
    for document, here, there in zip(documents, expected, found, strict=True):
        # A hash of terms that cannot be proved is asked of nobody.
        asked = there is None or here is None or not here["reasons"]
        assert (there if asked else {**there, "terms": None}) == here, document
    return expected


def test_every_example_reads_alike(checker: Checker) -> None:
    found = compare(checker, list(example_agreements()))
    assert len(found) > 10
    assert None not in found


def test_changed_terms_are_accepted_and_refused_alike(checker: Checker) -> None:
    """Every other value of every example changed in turn: to one near it, and to one of another kind."""
    documents = []
    for document in example_agreements():
        unsigned = {
            name: value for name, value in document.items() if name not in ("signatures", "parties", "collector")
        }
        for path, value in islice(leaves(unsigned), len(documents) % 2, None, 2):
            for other in variants(value):
                documents.append(with_value(document, path, other))
    found = compare(checker, documents)
    assert sum(each is None for each in found) > 250
    assert sum(each is not None for each in found) > 150


CALENDARS: list[dict[str, Any]] = [
    {"timezone": zone, "period": period, "window": window, "effective": {"from": "2024-01-31", "until": until}, **more}
    for zone in ("Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")
    for period, window, until in (
        ("P1D", "PT15M", "2024-11-20"),
        ("P1W", "PT30M", "2025-02-01"),
        ("P1M", "PT1H", "2025-03-31"),
    )
    for more in ({}, {"partial_periods": "prorate"}, {"day_start": "02:30"}, {"anchor": "2023-12-31"}, {"step": "P1D"})
]


def test_calendars_are_alike(checker: Checker) -> None:
    base = signed(next(example_agreements()))
    found = compare(checker, [{**base, "grace": "PT1H", **change} for change in CALENDARS])
    assert sum(each is not None for each in found) > len(found) // 2


def test_days_start_alike_in_every_zone(checker: Checker) -> None:
    """Around every turn of the clocks since 1990, and in years that only a rule tells."""
    zones = ["Europe/Dublin", "America/St_Johns", "Pacific/Apia", "Pacific/Kwajalein", "Africa/Casablanca", "Asia/Gaza"]
    zones += [
        "America/Sao_Paulo",
        "Australia/Lord_Howe",
        "America/Havana",
        "Antarctica/Troll",
        "Asia/Kolkata",
        "Etc/GMT+12",
    ]
    first = [date(year, 1, 1) for year in (1971, 1994, 2011, 2018, 2024, 2037, 2038, 2150, 2261)]
    days = [start + timedelta(days=n) for start in first for n in range(365)]
    starts = (0, 9000, 84600)
    found = checker.run(
        """({ calendar, dates }, { zones, days, starts }) => zones.map((name) => starts.map((startS) =>
          days.map((day) => String(calendar.dayStartNs(dates.parseDate(day), calendar.loadZone(name), startS)))))""",
        {"zones": zones, "days": plain(map(str, days)), "starts": list(starts)},
    )
    for name, by_start in zip(zones, found, strict=True):
        zone = calendar.load_zone(name)
        for start_s, there in zip(starts, by_start, strict=True):
            assert there == [str(calendar.day_start_ns(day, zone, start_s)) for day in days], (name, start_s)


def test_every_zone_is_in_the_page(checker: Checker) -> None:
    moments = [datetime(year, month, 15, tzinfo=UTC) for year in (1975, 2000, 2024, 2090) for month in (1, 7)]
    seconds = [int(moment.timestamp()) for moment in moments]
    names, found = checker.run(
        """({ calendar }, seconds) => {
          const names = Object.keys(slaLedger.tables.zones);
          return [names, names.map((name) => seconds.map((each) => calendar.loadZone(name).offset(each)))];
        }""",
        seconds,
    )
    assert len(names) > 590
    for name, offsets in zip(names, found, strict=True):
        zone = calendar.load_zone(name)
        assert offsets == [int(moment.astimezone(zone).utcoffset().total_seconds()) for moment in moments], name  # type: ignore[union-attr]


def test_a_zone_of_another_name_is_refused(checker: Checker) -> None:
    for name in ("", "europe/berlin", "../UTC", "__proto__", "Mars/Olympus"):
        with pytest.raises(BadInput):
            calendar.load_zone(name)
        refused = checker.run(
            "({ calendar }, name) => { try { calendar.loadZone(name); return false; } catch { return true; } }", name
        )
        assert refused, name
