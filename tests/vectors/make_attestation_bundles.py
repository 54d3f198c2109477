"""Write the committed example bundles: two proved days and a withheld one, of one agreement, by the real main job.

``python -m tests.vectors.make_attestation_bundles [KEY_CACHE]`` makes other, equally valid files (salts and event ids
are random); run ``tests.vectors.make_attestation_vectors`` after it. The parties' secrets are public on purpose.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from ledger.app.agreements.registering import load_agreement
from ledger.app.bundles.building import build_opening
from ledger.app.judgement.windows import evaluate_windows
from ledger.app.settlement.statements import issue_statement
from ledger.attest.crypto.signing import save_secret
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.agreement_schema import AGREEMENT
from ledger.domain.time.interval import Interval
from ledger.ingest.agreement_yaml import parse_document
from ledger.ingest.request_log import RequestLog
from ledger.resources import resource_dir
from ledger.wiring import Services, open_data
from ledger.wiring.main_job import run_main_job
from ledger.wiring.marker import DATA_FILE
from ledger.wiring.parties import DemoParties
from ledger.wiring.provers import default_key_cache
from ledger.wiring.services import create_data
from tests.support.secrets import NAMES, vector_seed

HERE = Path(__file__).parent
FIRST = date(2024, 3, 1)
GENESIS_TIMESTAMP_S = 1_709_251_200


def main(key_cache: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "data"
        (folder / "keys").mkdir(mode=0o700, parents=True)
        for name in NAMES:
            save_secret(folder / "keys" / f"{name}.key", vector_seed(name))
        create_data(folder, key_cache=key_cache, notify=print).close()
        # The chain of the bundles began at an instant of its own, before the periods that are recorded on it.
        marker = json.loads((folder / DATA_FILE).read_bytes())
        (folder / DATA_FILE).write_bytes(canonical_bytes({**marker, "genesis_timestamp_s": GENESIS_TIMESTAMP_S}))
        services = open_data(folder, key_cache=key_cache, notify=print)
        try:
            _write_bundles(services)
        finally:
            services.close()


def _write_bundles(services: Services) -> None:
    parties = DemoParties(services.keyring)
    agreement = Agreement.from_document(parties.signed(parties.with_keys(_terms())))
    first, second, third = (agreement.period_starting(date(2024, 3, day)) for day in (1, 2, 3))
    complete = Interval(first.interval.start_ns, second.interval.end_ns)
    job = run_main_job(
        services, parties, agreement, first, _requests(), read_rows=_read_rows, span=complete, step=print
    )
    assert job.opening is not None
    (HERE / "trust.json").write_bytes(canonical_bytes(job.trust))
    (HERE / "opening.json").write_bytes(job.opening)
    later = [_issue(services, agreement, period) for period in (second, third)]
    services.runner.run_until_idle(time.sleep)
    services.sign_log()
    for name, statement_id in zip(
        ("bundle", "bundle_next_day", "bundle_withheld"), (job.statement.id, *later), strict=True
    ):
        (HERE / f"{name}.json").write_bytes(services.bundles.get(statement_id))
    with services.database.read() as tx:
        (HERE / "opening_withheld.json").write_bytes(build_opening(tx, later[1]))


def _issue(services: Services, agreement: Agreement, period: Any) -> str:
    with services.database.begin() as tx:
        registered = load_agreement(tx, services.attestor.sla_id(agreement), services.attestor)
        judged = evaluate_windows(tx, registered, period, read_rows=_read_rows)
        return issue_statement(
            tx,
            registered,
            period,
            judged,
            attestor=services.attestor,
            collector=services.collectors.of(agreement),
            randomness=services.randomness,
            now_ns=services.clock.now_ns(),
        ).id


def _terms() -> dict[str, Any]:
    """The example's terms for three days of March 2024."""
    text = (resource_dir("examples") / "agreement.yaml").read_bytes()
    document, _ = parse_document(text, "agreement.yaml", AGREEMENT)
    return yaml.safe_load(yaml.safe_dump(dict(document))) | {
        "nonce": "0x" + vector_seed("nonce").hex(),
        "effective": {"from": str(FIRST), "until": "2024-03-31"},
    }


def _requests() -> bytes:
    """Three requests an hour for two days; one fails on the first day, one has a late first token on each."""
    rows = []
    for number in range(2 * 24 * 3):
        day, within = divmod(number, 24 * 3)
        hour, third = divmod(within, 3)
        failed = day == 0 and within == 40
        rows.append(
            {
                "request_id": f"r{number}",
                "started_at": f"2024-03-{1 + day:02}T{hour:02}:{20 * third:02}:00Z",
                "service": "example-chat",
                "ttft_s": None if failed else 0.9 if within == 7 else 0.25,
                "e2e_s": None if failed else 1.5,
                "input_tokens": 100,
                "output_tokens": 50,
                "error_code": 503 if failed else None,
                "error_msg": "overloaded" if failed else "",
            }
        )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _read_rows(data: bytes) -> RequestLog:
    return RequestLog(io.BytesIO(data), "batch")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default_key_cache())
