"""The parts of ``paired_campaign.py``: kernels and their slower versions, callables in a repository, the page."""
