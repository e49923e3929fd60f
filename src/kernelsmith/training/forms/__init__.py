"""What a model is shown and what it answers: whole programs, diffs, or typed edits."""
