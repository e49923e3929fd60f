"""Which candidate next: archive, islands, policies. Pure, synchronous, seeded."""
