"""The system under study: a small durable outbox on append-only journals.

It knows nothing of receivers' insides, of scenarios or of the audit; it can be read and used on its own.
"""
