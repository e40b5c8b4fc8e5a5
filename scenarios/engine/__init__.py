"""The engine: starts processes, walks through a scenario's steps, counts what is there, and archives the evidence."""
