"""An estimate of what one warp does, read off the machine code without a GPU.

``walk.dry_run`` walks one warp through a kernel's instructions.  Integers that follow from the thread's index, from
constants and from what is alike in all threads are computed lane by lane; whatever comes from memory or from
floating-point arithmetic is unknown.  That tells addresses, and with them sectors and bank conflicts, which branches
split a warp, how often loops with constant bounds run, and what waits for what.
"""
