"""What records say: figures with intervals, comparisons, and how searches went; pure functions."""
