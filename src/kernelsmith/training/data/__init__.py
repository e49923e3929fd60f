"""Journals become training samples: read, filtered, selected, guarded, balanced, split."""
