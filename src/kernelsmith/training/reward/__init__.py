"""Numbers for training: rewards from evaluations, and advantages from rewards."""
