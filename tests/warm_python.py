"""A Python that starts warm: ``python -m pytest`` forks off a process that has imported pytest and the plugin before.

Their import takes most of what a child of a plugin test does.  ``start`` runs a server, and leaves a program that
stands for ``sys.executable``: it hands command line, folder, environment and open files to the server, and ends as the
forked process does.  Whatever else it is called with, it becomes the Python that it stands for.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import marshal
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

COLD = "GPUPERF_TESTS_COLD"
"""In the environment of a process that is to be no fork, nor those that it starts."""
LAUNCHER = """#!{python} -ISE
import _signal, _socket, array, marshal, os, sys
arguments = sys.argv[1:]
if arguments[:1] == ["-mpytest"]:  # as pytester says it
    arguments[:1] = ["-m", "pytest"]
warm = arguments[:1] == ["-m"] or arguments[:2] in {programs!r}
if warm and {cold!r} not in os.environ:
    files = [0, 1, 2]
    for number in sorted(map(int, os.listdir("/proc/self/fd")))[3:]:
        try:
            files += [number] if os.get_inheritable(number) else []
        except OSError:  # the list of them, which is closed by now
            pass
    server = _socket.socket(_socket.AF_UNIX)
    server.connect({socket!r})
    asked = marshal.dumps([files, os.getsid(0) == os.getpid(), arguments, os.getcwd(), dict(os.environ)])
    head = len(asked).to_bytes(8, "big")
    server.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", files))])
    server.sendall(asked)
    status = int(server.recv(16) or b"1")
    if status < 0:
        _signal.signal(-status, _signal.SIG_DFL) if -status not in (_signal.SIGKILL, _signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    os._exit(status)
os.execv({python!r}, [{python!r}, *arguments])
"""
"""Imports no more than it needs: ``json``, ``signal`` and ``socket`` would double the time that it takes."""
MOST_FILES = 64
IMPORTED = ("xdist.dsession", "numpy.random", "scipy.special", "pynvml")
"""Besides all of the plugin.  None opens a GPU: a process that has must not be forked."""


@contextlib.contextmanager
def start() -> Iterator[str]:
    """The program that stands for ``sys.executable``, for as long as its server runs."""
    # Not above: in the server, pytest imports them first.
    from pytest_gpuperf.model.task import AS_COMMAND
    from pytest_gpuperf.revision.imports import BOOTSTRAP

    with tempfile.TemporaryDirectory(prefix="gpuperf-warm-") as folder:
        launcher, place = Path(folder, "python"), Path(folder, "socket")
        programs = [["-u", "-c"], ["-c", AS_COMMAND], ["-c", BOOTSTRAP]]
        text = LAUNCHER.format(python=sys.executable, socket=str(place), cold=COLD, programs=programs)
        launcher.write_text(text, encoding="utf-8")
        launcher.chmod(0o755)
        command = [sys.executable, __file__, str(place), str(launcher)]
        with subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        ) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n", "the server of warm processes did not start"
            yield str(launcher)
            server.terminate()


def main(place: str, launcher: str) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(place)
    listening.listen(64)
    load()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.executable = launcher
    gc.collect()
    gc.freeze()  # a forked process copies no page of these for the collector's sake
    serve(listening)


def load() -> None:
    """Import what a child imports, the plugin as pytest does, and find the compiler."""
    import light_pytest
    import pytest

    light_pytest.use()
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main(["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--collect-only", f"-c{os.devnull}", "."])
    import pytest_gpuperf

    modules = (module.name for module in pkgutil.walk_packages(pytest_gpuperf.__path__, "pytest_gpuperf."))
    for name in (*IMPORTED, *(name for name in modules if not name.endswith("__main__"))):
        importlib.import_module(name)
    import warm_nvdisasm

    from pytest_gpuperf.compile.compile_errors import ToolchainMissing
    from pytest_gpuperf.compile.nvcc import toolchain
    from pytest_gpuperf.compile.toolkit import disassembler

    with contextlib.suppress(ToolchainMissing):
        toolchain()
        disassembler()
        warm_nvdisasm.use()


def serve(listening: socket.socket) -> None:
    """Fork for each client, until what has started this process is gone."""
    waiting = selectors.DefaultSelector()
    waiting.register(listening, selectors.EVENT_READ)
    waiting.register(sys.stdin, selectors.EVENT_READ)
    children: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for key, _ in waiting.select():
            if key.fileobj is sys.stdin:
                return
            if key.fileobj is listening:
                client = listening.accept()[0]
                streams, asked = received(client)
                if not asked:
                    client.close()
                    for stream in streams:
                        os.close(stream)
                    continue
                pid = os.fork()
                if pid == 0:
                    for open_one in (waiting, listening, client, *(other for _, other in children.values())):
                        open_one.close()
                    for ended in children:
                        os.close(ended)
                    run(streams, *asked)
                for stream in streams:
                    os.close(stream)
                ended = os.pidfd_open(pid)
                children[ended] = pid, client
                waiting.register(ended, selectors.EVENT_READ, data=ended)
                waiting.register(client, selectors.EVENT_READ, data=ended)
            elif key.data in children:
                pid, client = children.pop(key.data)
                if key.fileobj is client:  # killed by what had started it
                    os.kill(pid, signal.SIGKILL)
                waiting.unregister(key.data)
                waiting.unregister(client)
                os.close(key.data)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(OSError):
                    client.sendall(str(status).encode())
                client.close()


def received(client: socket.socket) -> tuple[list[int], list[Any]]:
    """The client's open files; and what it says of itself, or nothing if it ended meanwhile."""
    streams: list[int] = []
    parts: list[bytes] = []
    try:
        head, streams, _, _ = socket.recv_fds(client, 8, MOST_FILES)
        left = int.from_bytes(head, "big")
        while left:
            parts.append(client.recv(min(left, 1 << 16)))
            if not parts[-1]:
                return streams, []
            left -= len(parts[-1])
    except ConnectionError:
        return streams, []
    return streams, marshal.loads(b"".join(parts)) if parts else []


def run(
    streams: Sequence[int], numbers: Sequence[int], leads: bool, arguments: Sequence[str], folder: str,
    environment: Mapping[str, str],
) -> None:  # fmt: skip
    """Become the process that was asked for, the leader of a session if that is one.  Ends this one."""
    if leads:
        os.setsid()
    apart = [fcntl.fcntl(stream, fcntl.F_DUPFD, max(*numbers, *streams) + 1) for stream in streams]
    for stream in streams:
        os.close(stream)
    for number, moved in zip(numbers, apart, strict=True):
        os.dup2(moved, number)
        os.close(moved)
    own = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    given = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [folder, *given, *(path for path in sys.path[1:] if path not in own)]
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.orig_argv[:] = [sys.executable, *arguments]
    importlib.invalidate_caches()
    try:
        execute(arguments)
    except SystemExit as asked:
        end(asked.code)
    end(None)


def execute(arguments: Sequence[str]) -> None:
    if arguments[0] == "-m":
        sys.argv[:] = arguments[1:]
        if not hasattr(sys.modules.get(arguments[1]), "__path__"):  # no package: it is run as if for the first time
            sys.modules.pop(arguments[1], None)
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = ""
        code = arguments.index("-c") + 1
        sys.argv[:] = ["-c", *arguments[code + 1 :]]
        exec(arguments[code], vars(sys.modules["__main__"]))


def end(code: int | str | None) -> NoReturn:
    """As ``sys.exit``, but leave what the server imported: to take that down copies all its pages, in 0.1 s."""
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main(*sys.argv[1:])
