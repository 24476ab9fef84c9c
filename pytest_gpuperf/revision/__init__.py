"""Another revision of a callable, in a process of its own: which one, how it is started, how the two are paired."""
