"""Classes of SASS opcodes: the one table behind ``StaticProfile.opcodes``.

The opcodes are those that NVIDIA's "CUDA Binary Utilities" lists for Turing to Blackwell; one in no row is ``other``.
Moves written as arithmetic count as moves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

CLASSES: dict[str, str] = {
    "global_load": "LDG LD LDGSTS LDGMC",
    "global_store": "STG ST USTGR",
    "shared_load": "LDS LDSM",
    "shared_store": "STS STSM STAS UMEMSETS",
    "local_load": "LDL",
    "local_store": "STL",
    "constant_load": "LDC ULDC LDCU",
    "texture": "TEX TLD TLD4 TMML TXD TXQ SULD SUST SUATOM SURED",
    "bulk_copy": "UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKRED UBLKPF",
    "tensor_memory": "LDT LDTM STT STTM UTCCP UTCSHIFT UTCATOMSWS",
    "atomic": "ATOM ATOMG ATOMS RED REDG REDAS UREDGR",
    "fp16": "HADD2 HADD2_32I HFMA2 HFMA2_32I HMNMX2 HMUL2 HMUL2_32I HSET2 HSETP2",
    "fp32": "FADD FADD2 FADD32I FCHK FFMA FFMA2 FFMA32I FHADD FHFMA FMNMX FMNMX3 FMUL FMUL2 FMUL32I FSEL FSET FSETP "
    "FSWZADD UFADD UFFMA UFMNMX UFMUL UFSEL UFSET UFSETP",
    "fp64": "DADD DFMA DMUL DSETP",
    "mufu": "MUFU",
    "tensor": "HMMA IMMA BMMA DMMA QMMA OMMA HGMMA IGMMA BGMMA QGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA",
    "integer": "BMSK BREV FLO IABS IADD IADD3 IADD32I IADD64 IDP IDP4A IMAD IMNMX IMUL IMUL32I ISCADD ISCADD32I LEA "
    "LOP LOP3 LOP32I POPC SGXT SHF SHL SHR VABSDIFF VABSDIFF4 VHMNMX VIADD VIADDMNMX VIMNMX VIMNMX3 UBMSK UBREV UCLEA "
    "UFLO UIABS UIADD3 UIMAD UIMNMX ULEA ULOP ULOP3 ULOP32I UPOPC USGXT USHF USHL USHR UVIADD UVIMNMX",
    "compare": "ISETP PLOP3 PSETP UISETP UPLOP3 UPSETP MATCH QSPC VOTE VOTEU",
    "conversion": "F2F F2FP F2I F2IP FRND I2F I2FP I2I I2IP UF2F UF2FP UF2I UF2IP UFRND UI2F UI2FP UI2I UI2IP",
    "move": "MOV MOV32I MOVM PRMT SEL SHFL P2R R2P S2R CS2R B2R R2B REDUX CREDUX UMOV UPRMT USEL UP2UR UR2UP R2UR S2UR "
    "CS2UR",
    "branch": "BMOV BPT BRA BREAK BRX BRXU BSSY BSYNC CALL EXIT JMP JMX JMXU KILL LEPC ULEPC RET RPCMOV WARPSYNC YIELD",
    "barrier": "BAR DEPBAR LDGDEPBAR MEMBAR ERRBAR CGAERRBAR FENCE SYNCS CCTL CCTLL CCTLT ACQBULK ACQSHMINIT "
    "ENDCOLLECTIVE UCGABAR_ARV UCGABAR_WAIT WARPGROUP WARPGROUPSET UTCBAR",
    "control": "NOP NANOSLEEP PMTRIG PREEXIT ELECT SETCTAID GETLMEMBASE SETLMEMBASE USETMAXREG UVIRTCOUNT "
    "UGETNEXTWORKID",
}
"""Class to the opcodes in it."""

CLASS_OF: dict[str, str] = {opcode: name for name, opcodes in CLASSES.items() for opcode in opcodes.split()}

_MOVES = re.compile(r"IMAD\.MOV\b|HFMA2(?:\.MMA)? R\d+, -RZ, RZ, ")
"""The compiler moves with arithmetic where that unit is idle: a product of zeros, plus the value."""


def class_of(opcode: str, operands: str = "") -> str:
    """The class of ``LDG.E.128``: ``global_load``."""
    if _MOVES.match(f"{opcode} {operands}"):
        return "move"
    return CLASS_OF.get(opcode.partition(".")[0], "other")


def histogram(instructions: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Instructions (opcode and operands) per class, in alphabetical order; classes that do not occur are left out."""
    return dict(sorted(Counter(class_of(opcode, operands) for opcode, operands in instructions).items()))
