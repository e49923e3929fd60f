"""Frozen values that every other package speaks in; standard library only."""
