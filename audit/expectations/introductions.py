"""The SHA-256 of each section's introduction, the one line of prose above its table: readers paste it, so it is pinned."""

from __future__ import annotations

INTRODUCTIONS: dict[str, str] = {
    "ledger": "e1db2d504c509f2bc18d256503d8883b6dd4bb1d92e75a299f547e725e3c3a6d",
    "delivery": "b6a3e26bc54a672b752b10c414e0df9f1369e59c7bddaae42754e4de73ab86ed",
    "history": "5f498fb42e53fb33a2038c80a69d0aefe689cced624113bdcf74ef70b959ac26",
    "identity": "c3a537074abee19db75eeadde6645fcc98a404635c4da983ba865984afe51b28",
    "unknown": "2bcc29e6a8bdccdbd307bf39e913ea7c1fa9b6dbf84aed7cbad8c5cd0d7ec849",
    "wire": "88d72a3565e53e7460af3a8c5847b671c4fe1024136ca48932c1f636853ad6c4",
    "dispatch": "0957ed308ee9dba85dd5875624066289a40ba863b3097210167daa7ed615b2c7",
    "points": "2554d6559cd88157e2db8008840ce2c4ed076efc61111ba0e8122a18b7cbac62",
}
