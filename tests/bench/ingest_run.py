"""Request logs to committed windows, once: ``python -m tests.bench.ingest_run RECORDS ROWS_A_BODY`` prints JSON.

A server on a free port takes the bodies one after the other, as one collector sends them, into a new data directory
on disk; then the period's windows are judged and committed. Making the bodies and starting the server are not timed.
"""

from __future__ import annotations

import gc
import http.client
import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from api.app import create_app
from api.desks import Desks
from api.receiving import Intake
from ledger.app.agreements.registering import load_agreement, register_agreement
from ledger.app.billing.credit_changes import CreditDesk
from ledger.app.judgement.windows import evaluate_windows
from ledger.app.reading.queries import Queries
from ledger.app.reading.readiness import Health
from ledger.app.webhooks.desk import WebhookDesk
from ledger.attest.crypto.signing import verify
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.period_names import period_named
from ledger.domain.windows.window import WindowState
from ledger.ingest.facts import read_facts
from ledger.settings import IngestSettings
from ledger.wiring.services import Services, create_data
from tests.bench.main import write_requests
from tests.unit.app.conftest import signed_agreement

PERIOD = "2023-06-14/P1D"
ENDS = "from=2023-06-14T00:00:00Z&to=2023-06-15T00:00:00Z"


def measure(records: int, rows_a_body: int, folder: Path) -> dict[str, float]:
    """Seconds of recording and of judging, of processor time in all, and records a second over both."""
    log = folder / "requests.ndjson"
    write_requests(log, records)
    lines = log.read_bytes().splitlines(keepends=True)
    bodies = [b"".join(lines[at : at + rows_a_body]) for at in range(0, records, rows_a_body)]
    del lines
    services = create_data(folder / "data", key_cache=folder / "keys", notify=lambda _: None)
    sla_id = _register(services)
    with _served(services) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        # As the product's server does, and without the bodies, which a client would hold elsewhere.
        gc.freeze()
        cpu_started = time.process_time()
        started = time.perf_counter()
        accepted = sum(_post(connection, sla_id, body) for body in bodies)
        recorded = time.perf_counter()
        with services.database.begin() as tx:
            registered = load_agreement(tx, sla_id, services.attestor)
            period = period_named(registered.agreement, PERIOD)
            judged = evaluate_windows(tx, registered, period, read_rows=read_facts)
        ended = time.perf_counter()
    services.close()
    counted = sum(window.cells[0].valid for window in judged.windows)
    if accepted != records or any(window.state is not WindowState.OBSERVED for window in judged.windows):
        raise SystemExit("not every record was accepted; the figure would mean nothing")
    if not 0 < counted <= records:
        raise SystemExit("the windows do not hold the records; the figure would mean nothing")
    return {
        "record_s": recorded - started,
        "judge_s": ended - recorded,
        "cpu_s": time.process_time() - cpu_started,
        "records_per_s": records / (ended - started),
    }


def _register(services: Services) -> str:
    agreement = Agreement.from_document(signed_agreement())
    with services.database.begin() as tx:
        register_agreement(
            tx,
            agreement,
            attestor=services.attestor,
            verify=verify,
            terms_version=1,
            registration=None,
            customer_signature=None,
            now_ns=services.clock.now_ns(),
        )
    return services.attestor.sla_id(agreement)


def _post(connection: http.client.HTTPConnection, sla_id: str, body: bytes) -> int:
    headers = {"Content-Type": "application/x-ndjson"}
    connection.request("POST", f"/v1/observations?sla_id={sla_id}&{ENDS}", body=body, headers=headers)
    answer = connection.getresponse()
    document = json.loads(answer.read())
    if answer.status != 200:
        raise SystemExit(f"the server answered {answer.status}: {document}")
    return int(document["rows"]["accepted"])


@contextmanager
def _served(services: Services) -> Iterator[int]:
    chain: Any = {"chain_id": 1, "registry": None, "transactions": []}
    desks = Desks(
        queries=Queries(services.database, bundles=services, chain_status=lambda: chain),
        public_log=services.public_log,
        credit_desk=CreditDesk(services.database, services.clock),
        webhooks=WebhookDesk(services.database, services.clock, services.randomness),
        intake=Intake(services.database, services.attestor, services.clock, IngestSettings()),
    )
    health = Health(services.database, schema_state=services.schema_state, chain_status=lambda: chain)
    app = create_app(desks, health=health)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]), Path(folder))))
