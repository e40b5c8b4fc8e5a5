"""How strong the audit is, measured: real archives edited, torn, fuzzed and interrupted, and what the audit says of each."""
