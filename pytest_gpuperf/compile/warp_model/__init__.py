"""An estimate of what one warp does, read off the machine code without a GPU.

``walk.dry_run`` walks one warp through a kernel's instructions.  Integers that follow from the thread's index and from
constants are computed lane by lane; whatever comes from memory or from floating-point arithmetic is unknown.  That
tells sectors and bank conflicts, which branches split a warp, how often loops run, and what waits for what.
"""
