"""What the hooks and fixtures of one process share: its GPU and baselines, its book of evidence, its children."""
