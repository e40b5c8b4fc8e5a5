"""Exploring: crash cases derived by the machine, one for each point that a run reaches, judged by invariants."""
