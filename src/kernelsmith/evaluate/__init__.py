"""The judge: from a task and a candidate to an evaluation that can be believed."""
