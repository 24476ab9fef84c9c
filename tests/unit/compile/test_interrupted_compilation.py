"""Ctrl-C while NVRTC compiles, and after, is Python's: NVRTC's own handler would end the process without a word."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from pytest_gpuperf.compile.toolkit import leave_interrupts_alone, nvrtc_bindings

COMPILING = """
import os, signal, sys, threading
from pytest_gpuperf.compile.nvrtc import compile_cubin
from pytest_gpuperf.compile.source import KernelSource
from pytest_gpuperf.compile.toolkit import nvrtc_bindings

signal.signal(signal.SIGINT, signal.default_int_handler)
nvrtc_bindings()

def compiled(body=""):
    compile_cubin(KernelSource('extern "C" __global__ void k() {' + body + "}", "k"), "sm_90")
"""
LONG = """
many = ";" * 8_000_000
try:
    print("compiles", flush=True)
    compiled(many)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
"""Most of its time, which is more than a second, is the front end's, whose handler it is."""
WAITING = """
compiling = threading.Thread(target=compiled)
compiling.start()
compiling.join()
threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
try:
    os.read(os.pipe()[0], 1)
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_an_interrupt_in_the_first_compilation_of_a_process_is_a_keyboard_interrupt() -> None:
    command = [sys.executable, "-c", COMPILING + LONG]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "compiles\n"
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
    assert process.returncode == 0


def test_what_waits_after_a_compilation_is_interrupted() -> None:
    done = subprocess.run([sys.executable, "-c", COMPILING + WAITING], timeout=30)
    assert done.returncode == 7


def test_an_interrupt_that_is_ignored_stays_so() -> None:
    nvrtc = nvrtc_bindings()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        leave_interrupts_alone(nvrtc)
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
