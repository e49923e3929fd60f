"""From trajectories to a strong local improver: data, rewards, recipes, and the loop of them."""
