"""Its presence puts this folder on the path of Python: tests of several folders share the samples that lie here."""
