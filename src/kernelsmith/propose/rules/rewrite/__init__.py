"""Graph rewrites: a task's reference in other words, equal for all finite inputs."""
