"""Static evidence from source: compiler, cubin, disassembly.  Needs no GPU, no driver, no CuPy, no pytest.

``compiler.compile_for`` makes binaries with their evidence; ``machine_code`` takes those that others compiled.
"""
