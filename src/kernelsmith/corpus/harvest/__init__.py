"""From repositories, archives and packages to folders of Python files; nothing is imported."""
