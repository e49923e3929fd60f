"""Measurements of the judge itself; each module says what is measured and beside what."""
