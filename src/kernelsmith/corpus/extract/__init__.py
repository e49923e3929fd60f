"""From classes in packages to files that stand alone, by static analysis only."""
