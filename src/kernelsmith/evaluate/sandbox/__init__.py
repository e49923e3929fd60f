"""The one process boundary of the judge: hostile code runs on the far side of it."""
