"""The receiver behind a worker's check: it takes what workers send, applies a key once, and tells of it at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from scenarios.engine.supervisor import Supervisor
from scenarios.targets.destination import CONTROL, Destination, job_of
from scenarios.targets.slot import MODULE, Slot
from tests.support import ROOT


class Bench:
    """A destination in this process, and the harness's connection to it."""

    def __init__(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.port, self._reader, self._writer = port, reader, writer

    async def heard(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(await asyncio.wait_for(self._reader.readline(), 10))
        return told

    async def ask(self, **question: Any) -> dict[str, Any]:
        self._writer.write(json.dumps(question).encode() + b"\n")
        return await self.heard()

    async def send(self, text: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(text)
            return await asyncio.wait_for(reader.read(), 10)
        finally:
            writer.close()

    async def post(self, body: bytes, key: str | None = "k", path: str = "/operations") -> int | None:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
        head += f"Idempotency-Key: {key}\r\n" if key is not None else ""
        with contextlib.suppress(ConnectionError):
            answer = await self.send(head.encode() + b"\r\n" + body)
            return int(answer.split()[1]) if answer else None
        return None


@contextlib.asynccontextmanager
async def bench(folder: Path) -> AsyncIterator[Bench]:
    destination = Destination(folder)
    server = await asyncio.start_server(destination.connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(CONTROL)
    made = Bench(port, reader, writer)
    assert await made.heard() == {"event": "connected"}
    yield made
    writer.close()
    server.close()
    destination.book.close()


async def test_a_key_is_applied_once_and_a_request_without_one_each_time(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        assert [await here.post(b"{}"), await here.post(b"{}"), await here.post(b"[]")] == [200, 200, 409]
        assert [await here.post(b"{}", None), await here.post(b"{}", None)] == [200, 200]
        told = [await here.heard() for _ in range(5)]
        assert [(each["key"], each["status"]) for each in told[:3]] == [("k", 200), ("k", 200), ("k", 409)]
        assert (await here.ask(do="count"))["effects"] == 3


async def test_without_keys_every_arrival_is_an_effect_and_a_new_case_begins_with_none(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        await here.ask(do="begin", keyed=False)
        assert [await here.post(b"{}"), await here.post(b"{}")] == [200, 200]
        assert [await here.heard() for _ in range(2)]
        assert (await here.ask(do="count"))["effects"] == 2
        assert (await here.ask(do="begin"))["effects"] == 0


@pytest.mark.parametrize(("fault", "answered", "effects"), [("refuses", 503, 0), ("hangs-up", None, 1)])
async def test_a_fault_comes_once(tmp_path: Path, fault: str, answered: int | None, effects: int) -> None:
    async with bench(tmp_path) as here:
        await here.ask(do="begin", fault=fault)
        assert await here.post(b"{}") == answered
        assert (await here.heard())["status"] == answered
        assert (await here.ask(do="count"))["effects"] == effects
        assert await here.post(b"{}") == 200


async def test_a_held_arrival_is_applied_and_answered_only_when_the_harness_says_so(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        await here.ask(do="hold")
        posting = asyncio.create_task(here.post(b"{}"))
        assert (await here.heard())["status"] is None
        assert (await here.ask(do="count"))["effects"] == 1
        assert not posting.done()
        await here.ask(do="go")
        assert await posting == 200
        await here.ask(do="hold")
        await here.ask(do="go")
        assert await here.post(b"{}", "other") == 200


async def test_what_http_clients_do_is_understood(tmp_path: Path) -> None:
    async with bench(tmp_path) as here:
        chunked = (
            b"POST /a/halt23-job-7 HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
        )
        assert b"200 OK" in await here.send(chunked)
        assert (await here.heard())["job"] == "halt23-job-7"
        waiting = b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n{}"
        assert (await here.send(waiting)).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
        assert (await here.heard())["key"] is None
        assert b"200 OK" in await here.send(b"GET / HTTP/1.0\r\n\r\n")
        twice = (
            b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
            + b"POST / HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        assert (await here.send(twice)).count(b"200 OK") == 2


@pytest.mark.parametrize(
    "text",
    [
        b"nonsense\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
    ],
)
async def test_nonsense_is_hung_up_on_and_is_no_arrival(tmp_path: Path, text: bytes) -> None:
    async with bench(tmp_path) as here:
        assert await here.send(text) == b""
        assert (await here.ask(do="count"))["effects"] == 0


def test_a_job_is_known_by_body_then_key_then_path() -> None:
    assert job_of(b'{"a": "halt23-job-1"}', "halt23-job-2", "/halt23-job-3") == "halt23-job-1"
    assert job_of(b"\xff", "x-halt23-canary-2", "/halt23-job-3") == "halt23-canary-2"
    assert job_of(b"", None, "/operations/halt23-job-3?x") == "halt23-job-3"
    assert job_of(b"", None, "/operations") is None


async def test_a_receiver_that_dies_in_a_slot_has_its_effects_again(tmp_path: Path) -> None:
    async with Supervisor(ROOT, "fork", (MODULE,)) as supervisor:
        slot = Slot(1, tmp_path, supervisor)
        await slot.open()
        await slot.begin(fault="dies")
        reader, writer = await asyncio.open_connection("127.0.0.1", slot.port)
        client = Bench(slot.port, reader, writer)
        assert await client.post(b'"halt23-job-1"') is None
        while not slot.deaths:
            await slot.changed()
        assert [(each.job, each.status) for each in slot.arrivals] == [("halt23-job-1", None)]
        await slot.revive()
        assert await client.post(b'"halt23-job-1"') == 200
        assert await slot.effects() == 1
        writer.close()
        await slot.close()
