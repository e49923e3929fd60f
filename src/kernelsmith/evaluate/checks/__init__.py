"""Whether one output of a candidate is right (``docs/correctness.md``); numpy only."""
