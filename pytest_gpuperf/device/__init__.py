"""The GPU as the plugin uses it, behind ``interface``.  CuPy and NVML are imported when one is opened, not before."""
