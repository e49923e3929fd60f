"""How long a launch takes: from samples of two sides to a ratio with an interval."""
