"""Ctrl-C while NVRTC compiles, and after, is Python's: NVRTC's own handler would end the process without a word."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

COMPILING = """
import os, signal, sys, threading
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import nvrtc_bindings

signal.signal(signal.SIGINT, signal.default_int_handler)
nvrtc_bindings()
try:
    print("compiles", flush=True)
    compile_cubin(KernelSource('extern "C" __global__ void k() {' + ";" * 8_000_000 + "}", "k"), "sm_90")
except KeyboardInterrupt:
    print("interrupted", flush=True)
threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
try:
    os.read(os.pipe()[0], 1)
except KeyboardInterrupt:
    sys.exit(7)
"""
"""Most of its time, which is more than a second, is the front end's, whose handler it is; then it waits."""


def test_an_interrupt_of_the_first_compilation_and_of_a_wait_behind_it_is_a_keyboard_interrupt() -> None:
    with subprocess.Popen([sys.executable, "-c", COMPILING], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "compiles\n"
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
        assert process.wait(30) == 7
