"""Static evidence from source: compiler, cubin, disassembly.  Needs no GPU, no driver, no CuPy, no pytest.

``compiler.compile_for`` makes binaries with their evidence; ``cubin.occupancy`` says how many warps a launch keeps
resident; ``cubin.ready_made`` takes machine code that others compiled.
Everything raised on purpose is a ``compile_errors.CompileProblem``.
"""
