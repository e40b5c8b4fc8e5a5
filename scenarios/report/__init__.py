"""What people look at, made from what a run leaves: tables, the page with its pictures, the chapters' tables.

From an archive to a picture: `archive` reads (with `exports`, into `facts`), `story` tells (by `scene`, `senders`, `servers`,
`ways`, `shelf`, `harness`; of a dispatch outbox by `scans`, `acts`, `posting` and `books`; into `events`), `diagram` lays out
(by `columns`), `svg` and `mermaid` write. `page` puts it together (with `raw`, as `views`) for `command`, which is
`run.py report`.
"""
