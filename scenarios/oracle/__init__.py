"""Senders, receivers and operators with one mistake each, for the exploration to catch: a checker that has never failed proves
nothing. Each has a correct twin. Nothing outside `run.py explore --oracle` uses anything of this."""
