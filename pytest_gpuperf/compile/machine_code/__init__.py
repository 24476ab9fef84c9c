"""Cubin to static evidence: sections, machine code, its hash, registers, occupancy."""
