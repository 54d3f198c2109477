"""A port is somebody's own while its server is down, and the server's while it is up."""

from __future__ import annotations

import socket

import pytest

from tests.support.ports import own_port


def listening(port: int) -> socket.socket:
    """As servers listen."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    return server


def test_a_server_gets_it_again_and_again_and_nobody_is_given_it_meanwhile() -> None:
    with own_port() as port:
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
            with listening(port), socket.create_connection(("127.0.0.1", port)):
                pass
        with own_port() as other:
            assert other != port
