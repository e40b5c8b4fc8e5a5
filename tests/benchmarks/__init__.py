"""Tests of what measures. None of them is timed: contenders here return numbers that were made up."""
