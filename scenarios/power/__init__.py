"""Loss of power: a run is recorded with its system calls, and every disk that a power cut could have left of it is derived."""
