"""Coverage-guided search for files that the readers of baselines and cubins trip over."""
