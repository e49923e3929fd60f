"""A repository with known answers: what is in ``good`` is a task, what is in ``bad`` is none."""
