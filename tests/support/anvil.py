"""A local Ethereum node of the tests' own: anvil on a free port, for as long as they run.

Its program comes from the npm package pinned by ``tests/support/node/package-lock.json`` (by integrity hash, from
whatever registry npm is set to) and stays in that folder's ``node_modules``.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from eth_utils import keccak

from tests.support import node_packages
from tests.support.ports import own_port

HERE = Path(__file__).resolve().parent / "node"
START_TIMEOUT_S = 60
ETHER = 10**18
RECORDED = (
    "0x"
    + keccak(
        text="StatementRecorded(bytes32,uint256,bytes32,uint64,uint64,uint32,uint32,bytes32,bytes32,bytes32,address)"
    ).hex()
)
"""Topic of the registry's event, spelt from its declaration. The topics after it are the agreement and the ctx."""


class AnvilMissing(Exception):
    """No anvil could be started; the text says why."""


class Anvil:
    """A running node. ``url`` is its JSON-RPC endpoint, chain id 31337 unless another was asked for."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, method: str, *params: Any) -> Any:
        """The result of a JSON-RPC method, such as anvil's own ``anvil_reorg``."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        answer = requests.post(self.url, json=body, timeout=30).json()
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def fund(self, *addresses: str, wei: int = 1000 * ETHER) -> None:
        for address in addresses:
            self.call("anvil_setBalance", address, hex(wei))

    def mine(self, blocks: int = 1) -> None:
        self.call("anvil_mine", hex(blocks))

    def height(self) -> int:
        return int(self.call("eth_blockNumber"), 16)


def recorded_logs(node: Anvil, registry: str | None = None) -> list[dict[str, Any]]:
    """The chain's own logs of recorded statements, of one registry or of every contract there is."""
    wanted = {"fromBlock": "0x0", "toBlock": "latest", "topics": [RECORDED]}
    found: list[dict[str, Any]] = node.call(
        "eth_getLogs", wanted if registry is None else wanted | {"address": registry}
    )
    return found


@contextmanager
def running_anvil(*options: str) -> Iterator[Anvil]:
    """A node that is stopped at the end. It keeps EIP-7825's gas limit of a transaction. Raises ``AnvilMissing``."""
    program = installed()
    with own_port() as port, tempfile.TemporaryFile() as log:
        command = [program, "--host", "127.0.0.1", "--port", str(port), "--enable-tx-gas-limit", *options]
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            node = Anvil(f"http://127.0.0.1:{port}")
            _wait_until_it_answers(node, process)
            yield node
        finally:
            process.terminate()
            try:
                process.wait(START_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def installed() -> Path:
    """The program, installed first where it is not there. Raises ``AnvilMissing``."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise AnvilMissing("anvil (its package is for Linux on x86-64)")
    try:
        return node_packages.installed(HERE) / "@foundry-rs/anvil-linux-amd64/bin/anvil"
    except node_packages.NodePackagesMissing as missing:
        raise AnvilMissing(f"anvil ({missing})") from missing


def _wait_until_it_answers(node: Anvil, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            node.call("eth_chainId")
        except requests.RequestException:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AnvilMissing(f"a running anvil (exit code {process.poll()})") from None
            time.sleep(0.02)
        else:
            return
