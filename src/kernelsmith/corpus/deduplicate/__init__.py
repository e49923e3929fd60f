"""What is the same thing twice, and what is in somebody's benchmark already."""
