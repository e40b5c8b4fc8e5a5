"""What all tests share: laws are held on any machine, however busy it is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How fast examples are made is the machine's business and that of its other work, not a property of what is tested.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
