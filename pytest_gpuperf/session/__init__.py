"""A run from collection to exit: counters first, the end of each test, the end of the run, its exit status."""
