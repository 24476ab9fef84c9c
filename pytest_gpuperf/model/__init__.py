"""The nouns: typed, frozen records of evidence and of what is said about it.  Nothing here computes."""
