"""django-idempotency-key in Django, with its cache store on Django's cache in files."""

import argparse
import contextlib
import sqlite3
from pathlib import Path

import django
import waitress
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--dir", type=Path, required=True)
OPTIONS = parser.parse_args()
DATABASE = OPTIONS.dir / "app.db"

settings.configure(
    SECRET_KEY="of an example",  # noqa: S106
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["idempotency_key.middleware.IdempotencyKeyMiddleware"],
    CACHES={"default": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": OPTIONS.dir / "keys"}},
    IDEMPOTENCY_KEY={"STORAGE": {"CLASS": "idempotency_key.storage.CacheKeyStorage", "CACHE_NAME": "default"}},
)
django.setup()


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


def operations(request: HttpRequest) -> JsonResponse:
    """Perform the effect."""
    body = request.body.decode()
    return JsonResponse({"number": perform(body, request.headers.get("X-Fail-Once"))}, status=201)


urlpatterns = [path("operations", operations)]

prepare()
waitress.serve(get_wsgi_application(), host="127.0.0.1", port=OPTIONS.port, threads=16)
