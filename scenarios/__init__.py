"""Declared experiments (`catalogue`) and the engine that runs them (`engine`)."""
