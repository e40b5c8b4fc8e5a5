"""Tests of the package `receivers`: real processes, real HTTP."""
