"""Measurements: side by side, in one run, as ratios. None of them is a test."""
