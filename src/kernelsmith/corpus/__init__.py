"""From repositories to self-contained, runnable, deduplicated tasks, with counts at every stage."""
