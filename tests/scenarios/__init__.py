"""Tests of the package `scenarios` and of `run.py`: real processes, real files."""
