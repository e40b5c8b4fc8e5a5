"""The programs around a dispatch outbox that scenarios start: producer, scan, heartbeat; and the books as recorded."""
