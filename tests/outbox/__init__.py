"""Tests of the package `outbox`."""
