"""Candidates for the softmax task that fail on the device, each in its own way."""
