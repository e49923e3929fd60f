"""A trained model as a proposer: a small server, and who asks it."""
