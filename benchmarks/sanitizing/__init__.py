"""What ``sanitize.py`` is made of: which kernels to check, how a tool is run, that it is not blind, and the page."""
