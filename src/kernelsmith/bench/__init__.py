"""Suites of tasks, the protocol that runs entrants over them, and what the numbers say."""
