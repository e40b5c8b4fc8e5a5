"""What people look at, made from what a run leaves: tables, the page with its pictures, the chapters' tables.

From an archive to a picture: `archive` reads (into `facts`), `story` tells (by `scene`, `senders`, `servers`, `ways`, `shelf`;
into `events`), `diagram` lays out (by `columns`), `svg` and `mermaid` write. `page` puts it together (as
`views`) for `command`, which is `run.py report`.
"""
