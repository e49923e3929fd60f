"""One execution: configuration, loop, journal. Here search, propose and evaluate meet."""
