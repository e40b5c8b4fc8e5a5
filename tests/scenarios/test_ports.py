"""Ports that the harness keeps for receivers that are down."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from receivers.server import listen
from scenarios.engine.ports import Ports


def test_a_kept_port_refuses_connections_while_nobody_listens() -> None:
    with closing(Ports()) as ports:
        port = ports.of("receiver")
        for _time in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=5)


def test_the_receiver_may_listen_on_its_kept_port_again_and_again() -> None:
    with closing(Ports()) as ports:
        port = ports.of("receiver")
        for _time in range(3):
            with closing(listen(port)) as listener, socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                accepted, address = listener.accept()
                accepted.close()
                assert address == connection.getsockname()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=5)


def test_each_process_keeps_one_port_and_no_two_are_the_same() -> None:
    many = [Ports() for _number in range(50)]
    try:
        given = [ports.of(name) for ports in many for name in ("receiver", "other")]
        assert len(set(given)) == 100
        assert [ports.of(name) for ports in many for name in ("receiver", "other")] == given
    finally:
        for ports in many:
            ports.close()


def test_a_kept_port_is_given_to_nobody_who_asks_for_a_free_one() -> None:
    with closing(Ports()) as ports:
        kept = ports.of("receiver")
        free = [listen(0) for _number in range(200)]
        try:
            assert kept not in {each.getsockname()[1] for each in free}
        finally:
            for each in free:
                each.close()


def test_closing_gives_the_ports_back() -> None:
    ports = Ports()
    port = ports.of("receiver")
    ports.close()
    with closing(socket.socket()) as other:  # without SO_REUSEADDR: only a port that nobody holds can be had
        other.bind(("127.0.0.1", port))
    assert ports.of("receiver") > 0
    ports.close()
