"""Who writes the next candidate, and what they are told."""
