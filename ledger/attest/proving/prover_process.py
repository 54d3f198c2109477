"""The near side of the prover's child process: start it, ask it, bound it, say what went wrong."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import threading
from types import TracebackType
from typing import IO, Any, Final

from ledger.attest.proving.limits import DEFAULT_MEMORY_MB, Notify, Watch, silent
from ledger.errors import ProverUnavailable

COMMAND: Final = (sys.executable, "-P", "-m", "ledger.attest.proving.prover_child")
"""``-P``: a folder named ledger where the user happens to stand is not ours."""

_STDERR_TAIL_BYTES: Final = 2000


class ProverProcess:
    """One resident child. It starts on the first request and again after it died.

    Requests are answered one at a time, whichever threads they come from. Use it as a context manager
    or call :meth:`close`; the child also ends by itself when this process does.
    """

    def __init__(
        self, command: tuple[str, ...] = COMMAND, *, memory_mb: int = DEFAULT_MEMORY_MB, notify: Notify = silent
    ) -> None:
        self._command = command
        self._memory_mb = memory_mb
        self._notify = notify
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self.generation = 0
        """How many children were started; a new one has no key loaded."""

    def __enter__(self) -> ProverProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def request(self, operation: str, timeout_s: float, what: str = "", **arguments: Any) -> dict[str, Any]:
        """The child's answer to ``operation``, which people are told of as ``what``.

        Raises ProverUnavailable if the child cannot start, dies, answers with an error, is not done after
        ``timeout_s`` seconds or takes more memory than it may. Such a child is killed: what it would still say
        belongs to no one.
        """
        line = json.dumps({"op": operation, **arguments}).encode("ascii") + b"\n"
        with self._lock:
            process = self._running()
            watch = Watch(process.pid, what or repr(operation), timeout_s, self._memory_mb, self._notify)
            try:
                answer = self._exchange(process, line, watch)
            except ProverUnavailable:
                self._stop()
                raise
            except (OSError, ValueError) as error:
                raise self._death(operation) from error
        if answer.pop("ok", False) is not True:
            raise ProverUnavailable(
                f"the prover could not do {operation!r}: {answer.get('error', 'no reason given')}", operation=operation
            )
        return answer

    def started(self) -> int:
        """The generation of the child that answers next, started now if none runs. Raises ProverUnavailable."""
        with self._lock:
            self._running()
            return self.generation

    def close(self) -> None:
        """Stop the child, if there is one."""
        with self._lock:
            self._stop()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._stop()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the child, in _stop)
        try:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, bufsize=0
            )
        except OSError as error:
            raise ProverUnavailable(f"the prover's process cannot be started: {error}") from error
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)
        self.generation += 1
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], line: bytes, watch: Watch) -> dict[str, Any]:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the prover has no pipes")
        unsent = memoryview(line)
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdin, selectors.EVENT_WRITE)
            selector.register(process.stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                ready = selector.select(watch.wait_s())
                watch.look()
                for selected, _ in ready:
                    if selected.fileobj is process.stdin:
                        unsent = unsent[os.write(process.stdin.fileno(), unsent) :]
                        if not unsent:
                            selector.unregister(process.stdin)
                        continue
                    chunk = os.read(process.stdout.fileno(), 1 << 16)
                    if not chunk:
                        raise ValueError("the prover closed its output")
                    received += chunk
        answer = json.loads(received)
        if not isinstance(answer, dict):
            raise ValueError("the prover's answer is not an object")
        return answer

    def _death(self, operation: str) -> ProverUnavailable:
        """Stop what is left of the child and say what it said last."""
        process, stderr = self._process, self._stderr
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
        said = _tail(stderr) if stderr is not None else ""
        self._stop()
        status = process.returncode if process is not None else None
        if "No module named 'groth16py'" in said:
            message = "the prover is not installed; install sla-ledger with the extra 'prove'"
        else:
            message = f"the prover died during {operation!r} with status {status}; its last words: {said or 'none'}"
        return ProverUnavailable(message, operation=operation, status=status, stderr=said)

    def _stop(self) -> None:
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None


def _tail(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _STDERR_TAIL_BYTES))
    return stream.read().decode("utf-8", "replace").strip()
