"""fastapi-idempotency in FastAPI, with its Tortoise store on SQLite."""

import argparse
import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from fastapi_idempotency import IdempotencyMiddleware
from fastapi_idempotency.stores.tortoise import TortoiseStore
from tortoise.contrib.fastapi import RegisterTortoise

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--dir", type=Path, required=True)
OPTIONS = parser.parse_args()
DATABASE = OPTIONS.dir / "app.db"


def prepare() -> None:
    """Create the tables: one row in `effects` is one effect, one in `failed` a name that has failed once."""
    with contextlib.closing(sqlite3.connect(DATABASE)) as database, database:
        database.execute("create table if not exists effects (number integer primary key, body text)")
        database.execute("create table if not exists failed (name text primary key)")


def perform(body: str, fail_once: str | None) -> int:
    """The effect and its number; the first time that it is to fail for a name, it fails before anything is done."""
    with contextlib.closing(sqlite3.connect(DATABASE, timeout=30)) as database, database:
        fails = fail_once and database.execute("insert or ignore into failed values (?)", [fail_once]).rowcount
        number = None if fails else database.execute("insert into effects (body) values (?)", [body]).lastrowid
    if number is None:
        raise RuntimeError("this request asked for one failure")
    return number


prepare()


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The package's records live in a SQLite file of their own."""
    models = {"models": ["fastapi_idempotency.stores.tortoise"]}
    async with RegisterTortoise(app, db_url=f"sqlite://{OPTIONS.dir / 'keys.db'}", modules=models, generate_schemas=True):
        yield


app = FastAPI(lifespan=lifespan)
# A lease of 3 s instead of 60, so that what is left by a death is seen to end.
app.add_middleware(IdempotencyMiddleware, store=TortoiseStore(), lease_seconds=3, heartbeat_seconds=1, wait_seconds=5)


@app.post("/operations", status_code=201)
async def operations(request: Request) -> dict[str, int]:
    """Perform the effect."""
    body = (await request.body()).decode()
    return {"number": await asyncio.to_thread(perform, body, request.headers.get("X-Fail-Once"))}


uvicorn.run(app, host="127.0.0.1", port=OPTIONS.port, log_level="warning")
