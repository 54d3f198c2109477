"""What a customer with keys of their own needs: the bytes to sign, and later bundle, trust file and opening."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from ledger.attest.crypto.signing import SigningKey, verify
from ledger.cli.main import main
from ledger.merkle.cosignature import WitnessKey
from ledger.resources import resource_dir
from ledger.wiring.services import open_data
from tests.support.deployment import example_terms

EXAMPLES = resource_dir("examples")
ISSUER, CUSTOMER = SigningKey(b"\x31" * 32), SigningKey(b"\x32" * 32)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, key_cache: Path) -> None:
    monkeypatch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
    for name in ("SLA_LEDGER_DATA", "SLA_LEDGER_BROKER", "SLA_LEDGER_WITNESSES"):
        monkeypatch.delenv(name, raising=False)


def asked(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> Any:
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == code
    said = capsys.readouterr()
    return json.loads(said.out if code == 0 else said.err)


@pytest.fixture
def draft() -> dict[str, Any]:
    """The example's terms between two parties whose private keys are in no keyring."""
    terms = json.loads(json.dumps(example_terms()))
    terms.pop("signatures", None)
    terms["parties"]["issuer"]["ed25519_public_key"] = ISSUER.public_key.hex()
    terms["parties"]["customer"]["ed25519_public_key"] = CUSTOMER.public_key.hex()
    return terms


def written(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(document))
    return path


def test_both_parties_sign_what_is_printed_with_tools_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], draft: dict[str, Any]
) -> None:
    file, raw = written(tmp_path / "draft.yaml", draft), tmp_path / "message.bin"
    assert asked(capsys, "agreements", "validate", file)["state"] == "draft"
    found = asked(capsys, "agreements", "signing-bytes", file, "--out", raw)
    message = raw.read_bytes()
    assert message.hex() == found["message"]
    assert found["public_keys"] == {"issuer": ISSUER.public_key.hex(), "customer": CUSTOMER.public_key.hex()}
    draft["signatures"] = {"issuer": ISSUER.sign(message).hex(), "customer": CUSTOMER.sign(message).hex()}
    signed = written(tmp_path / "signed.yaml", draft)
    assert asked(capsys, "agreements", "validate", signed)["state"] == "signed"
    # Signed or not, the bytes are the same; a second file is not written over the first.
    assert main(["agreements", "signing-bytes", str(signed)]) == 0
    assert capsys.readouterr().out.strip() == message.hex()
    assert asked(capsys, "agreements", "signing-bytes", signed, "--out", raw, code=2)["code"] == "bad_input"
    assert verify(CUSTOMER.public_key, message, bytes.fromhex(draft["signatures"]["customer"]))


def test_a_document_that_is_no_agreement_has_no_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("kind: Agreement\n")
    assert asked(capsys, "agreements", "signing-bytes", file, code=2)["code"] == "document_invalid"


@pytest.fixture(scope="module")
def unproved(tmp_path_factory: pytest.TempPathFactory, key_cache: Path) -> tuple[Path, str]:
    """The main job under terms that no circuit attests; the statement."""
    folder = tmp_path_factory.mktemp("evidence") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLA_LEDGER_KEY_CACHE", str(key_cache))
        terms = folder.parent / "share.yaml"
        text = (EXAMPLES / "agreement-impact.yaml").read_text()
        terms.write_text(text.replace('contract: "2900.00"', 'contract: "50 %"'))
        assert main(["demo", "--agreement", str(terms), "--out", str(folder), "--json"]) == 0
    bundle = json.loads((folder / "bundle.json").read_bytes())
    return folder, bundle["statement"]["payload"]["statement_id"]


def test_exported_files_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str], unproved: tuple[Path, str]) -> None:
    data, name = unproved
    bundle, trust = tmp_path / "bundle.json", tmp_path / "trust.json"
    assert asked(capsys, "bundle", "export", name, "--data", data, "--out", bundle)["file"] == str(bundle)
    capsys.readouterr()
    assert main(["trust", "export", "--data", str(data), "--out", str(trust)]) == 0
    said = capsys.readouterr().err
    assert "prove nothing about the provider: compare each with what you learnt another way" in said
    assert "no circuit is pinned" in said
    pins = json.loads(trust.read_bytes())
    assert pins == json.loads((data / "trust.json").read_bytes())
    assert main(["verify", str(bundle), "--trust", str(trust)]) == 0
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    assert asked(capsys, "bundle", "export", name, "--data", data, "--out", bundle, code=2)["code"] == "bad_input"


def test_without_a_file_the_document_itself_is_printed(
    capsys: pytest.CaptureFixture[str], unproved: tuple[Path, str]
) -> None:
    data, name = unproved
    assert asked(capsys, "trust", "export", "--data", data) == json.loads((data / "trust.json").read_bytes())
    capsys.readouterr()
    assert main(["bundle", "export", name, "--data", str(data)]) == 0
    assert capsys.readouterr().out.encode() == (data / "bundle.json").read_bytes()


def test_pins_are_exported_without_the_libraries_of_the_chain(unproved: tuple[Path, str]) -> None:
    """Which registry proofs are for follows from the deployer's address, and that from its key. The demo, which has the
    chain open, says the same."""
    data, _ = unproved
    program = (
        "import sys\n"
        "from ledger.cli.main import main\n"
        f"code = main(['trust', 'export', '--data', {str(data)!r}])\n"
        "print(code, sorted({'web3', 'eth_account', 'eth_tester', 'eth', 'aiohttp'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120)
    pins, _, ended = done.stdout.rstrip().rpartition("}")
    assert (json.loads(pins + "}"), ended) == (json.loads((data / "trust.json").read_bytes()), "0 []")


class Node(BaseHTTPRequestHandler):
    """A test chain that takes no transaction, and says what it was asked."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(request["method"])
        found = {"result": "0x7a69"} if request["method"] == "eth_chainId" else {"error": {"code": -32000}}
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], **found}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def test_an_export_asks_a_node_which_chain_it_is_of_and_deploys_nothing_there(
    capsys: pytest.CaptureFixture[str], unproved: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, name = unproved
    pins = json.loads((data / "trust.json").read_bytes())
    with ThreadingHTTPServer(("127.0.0.1", 0), Node) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("SLA_LEDGER_CHAIN_RPC", f"http://127.0.0.1:{server.server_port}")
        capsys.readouterr()
        assert main(["bundle", "export", name, "--data", str(data)]) == 0
        assert Node.asked == []
        assert asked(capsys, "trust", "export", "--data", data) == {**pins, "chain_id": "31337"}
        server.shutdown()
    assert set(Node.asked) == {"eth_chainId"}


def test_what_is_not_there_is_said(capsys: pytest.CaptureFixture[str], unproved: tuple[Path, str]) -> None:
    data, name = unproved
    assert asked(capsys, "opening", "export", name, "--data", data, code=1)["code"] == "not_found"
    for kind in ("bundle", "opening"):
        assert asked(capsys, kind, "export", "nothing", "--data", data, code=1)["code"] == "not_found"
        other = (kind, "export", name, "--data", data, "--tenant", "another")
        assert asked(capsys, *other, code=1)["code"] == "not_found"
    assert asked(capsys, "trust", "export", "--data", data, "--sla-id", "0x12", code=1)["code"] == "not_found"


def test_witnesses_are_pinned_where_a_quorum_of_them_is_asked(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    unproved: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, _ = unproved
    services = open_data(data)
    key = services.log_signer.identity.first_key
    services.close()
    vkey = WitnessKey("witness.example/w1", key.public_key).vkey()
    file = tmp_path / "witnesses.json"
    named = [{"url": "https://witness.example", "vkey": vkey}]
    file.write_text(json.dumps({"format": "sla-ledger/witnesses/v1", "quorum": 1, "witnesses": named}))
    monkeypatch.setenv("SLA_LEDGER_WITNESSES", str(file))
    assert asked(capsys, "trust", "export", "--data", data)["witnesses"] == {"quorum": 1, "vkeys": [vkey]}
