#!/bin/sh
# A worker of two programs that every machine has: sqlite3 keeps the jobs, curl sends them.
set -eu

ask() { sqlite3 -batch -cmd ".timeout 5000" -separator " " queue.db "$1"; }

send() {
    curl --silent --fail --max-time 5 --noproxy "*" --output /dev/null \
        --header "Content-Type: application/json" --header "Idempotency-Key: $1" --data "{\"job\": \"$1\"}" "$2"
}

ask "create table if not exists jobs (job text primary key, url text, sent integer default 0)"
case $1 in
enqueue)
    ask "insert or ignore into jobs (job, url) values ('$2', '$3')"
    ;;
work)
    while row=$(ask "select job, url from jobs where sent = 0 limit 1") && [ -n "$row" ]; do
        if send "${row% *}" "${row#* }"; then
            ask "update jobs set sent = 1 where job = '${row% *}'"
        else
            sleep 0.1
        fi
    done
    ;;
esac
