"""The independent audit: standard library only, and nothing of the harness that it judges."""
