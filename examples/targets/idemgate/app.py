"""idemgate in FastAPI, with its Redis store."""

import argparse
import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from idemgate import IdempotencyConfig, IdempotencyRoute, idempotent
from idemgate.redis_store import RedisAcquirer
from redis.asyncio import Redis

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--dir", type=Path, required=True)
parser.add_argument("--redis", required=True)
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
    """The store is found in the application's state."""
    redis = Redis.from_url(OPTIONS.redis, decode_responses=False)
    app.state.idempotency_store = RedisAcquirer(redis)
    try:
        yield
    finally:
        await redis.aclose()


app = FastAPI(lifespan=lifespan)
app.router.route_class = IdempotencyRoute
# A lease of 3 s instead of 30, so that what is left by a death is seen to end.
settings = IdempotencyConfig(processing_lease_seconds=3, renew_interval_seconds=1)


@app.post("/operations", status_code=201)
@idempotent(config=settings)
async def operations(request: Request) -> dict[str, int]:
    """Perform the effect."""
    body = (await request.body()).decode()
    return {"number": await asyncio.to_thread(perform, body, request.headers.get("X-Fail-Once"))}


uvicorn.run(app, host="127.0.0.1", port=OPTIONS.port, log_level="warning")
