"""drf-idempotency in Django REST Framework, with its database store on SQLite."""

import argparse
import contextlib
import sqlite3
from pathlib import Path

import django
import waitress
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
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
    USE_TZ=True,
    INSTALLED_APPS=["rest_framework", "drf_idempotency"],
    MIDDLEWARE=["drf_idempotency.middleware.IdempotencyMiddleware"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": OPTIONS.dir / "keys.db"}},
    REST_FRAMEWORK={"DEFAULT_AUTHENTICATION_CLASSES": [], "UNAUTHENTICATED_USER": None},
    # A lock is abandoned after 3 s instead of 30, so that what is left by a death is seen to end.
    IDEMPOTENCY={"BACKEND": "drf_idempotency.backends.database.DatabaseBackend", "LOCK_TTL_SECONDS": 3},
)
django.setup()

from rest_framework.decorators import api_view  # noqa: E402  # needs the settings
from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402


def prepare() -> None:
    """Create the tables: one row in `effects` is one effect, one in `failed` a name that has failed once."""
    call_command("migrate", verbosity=0)
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


@api_view(["POST"])
def operations(request: Request) -> Response:
    """Perform the effect."""
    body = request.body.decode()
    return Response({"number": perform(body, request.headers.get("X-Fail-Once"))}, status=201)


urlpatterns = [path("operations", operations)]

prepare()
waitress.serve(get_wsgi_application(), host="127.0.0.1", port=OPTIONS.port, threads=16)
