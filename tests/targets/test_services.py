"""Private servers for targets: each case has an empty database, and nothing of them stays."""

import socket
from pathlib import Path

import psutil
import pytest

from outbox.errors import BadInput
from scenarios.targets import services
from scenarios.targets.services import Services


def asked(url: str, words: bytes) -> bytes:
    """What a Redis server answers to one inline command, in the database of this URL."""
    address, _, number = url.removeprefix("redis://").partition("/")
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), 5) as connection:
        connection.sendall(b"SELECT %s\r\n" % number.encode() + words + b"\r\n")
        answer = b""
        while answer.count(b"\r\n") < 2:
            answer += connection.recv(4096)
        return answer.split(b"\r\n")[1]


async def test_each_case_has_a_redis_database_of_its_own_and_the_server_goes_afterwards() -> None:
    reason = services.why_not(["redis"])
    if reason is not None:
        pytest.skip(reason)
    async with Services(["redis"]) as given:
        one, two = (await given.fresh())["redis_url"], (await given.fresh())["redis_url"]
        assert asked(one, b"SET job 1") == b"+OK"
        assert asked(one, b"EXISTS job") == b":1"
        assert asked(two, b"EXISTS job") == b":0"
    left = [each for each in psutil.process_iter(["cmdline"]) if one.partition("//")[2].partition("/")[0] in str(each.info)]
    assert left == []
    with pytest.raises(OSError, match="refused"):
        asked(one, b"PING")


async def test_a_service_that_is_not_installed_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="apt-get install redis-server"):
        async with Services(["redis"]):
            pass


async def test_a_target_that_asks_for_no_service_is_given_none() -> None:
    async with Services([]) as given:
        assert await given.fresh() == {}
