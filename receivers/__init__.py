"""Receiver processes for the study: real HTTP on 127.0.0.1, one small module for each kind of duplicate semantics.

Teaching servers: no authentication, no encryption, one thread. Never expose them to a network.
"""
