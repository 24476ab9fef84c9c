"""The pieces of ``paired_campaign.py``: what is tried, one process of it, many processes, and what came of it."""
