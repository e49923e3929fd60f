"""From a journal to numbers and a page."""
