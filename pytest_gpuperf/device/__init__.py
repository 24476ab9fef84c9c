"""The GPU as the plugin uses it: discovery, lock, loading, launches, timers.

``discovery.open_device`` is the way in to a real GPU; ``placeholder.PlaceholderDevice`` stands in where there is none.
``interface`` says what either can do.  CuPy and NVML are imported when a GPU is opened, not before.
"""
