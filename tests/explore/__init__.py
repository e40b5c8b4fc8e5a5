"""Exploring, through the door that people use: what it derives, how it judges, and when it refuses to."""
