"""Training on one machine: supervised steps, group-relative ones, and episodes of turns."""
