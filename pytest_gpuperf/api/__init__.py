"""What a test calls: the fixtures ``cuda_kernel``, ``gpu`` and ``gpuperf``."""
