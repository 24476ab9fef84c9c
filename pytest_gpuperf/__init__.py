"""Performance regression tests for GPU kernels: a pytest plugin and the ``gpuperf`` command.

Where things are, from the front door down; who may import whom is held by the contract in ``pyproject.toml``.

The front door
    ``plugin``      pytest's hooks, each handed on at once
    ``cli``         the ``gpuperf`` command; its subcommands are in ``commands``, ``doctor`` and ``selftest``
    ``fixtures``    ``cuda_kernel``, ``gpu``, ``gpuperf``; ``arguments`` is how they refuse what they do not take
    ``flags``, ``options``, ``marker``, ``tolerance``    what a user may set, and one frozen ``Options`` of it
    ``conflicts``   settings that exclude each other
    ``hooks``       hooks that a conftest may implement

A test, from its first kernel to its report
    ``compiling``   ``cuda_kernel`` itself; ``foreseen`` is what is compiled along with a kernel
    ``workload``    ``gpuperf(...)``: run, check, count, time, judge, in this order
    ``measurement`` what it returns
    ``pairing``     two cubins on one launch, in blocks, until there is a decision
    ``judging``     static verdicts, and baselines that a test did not come to
    ``namesakes``   kernels of one name, told apart
    ``testrun``     the end of a test; ``gate`` says whether its verdicts fail it, and in which words

A run
    ``bench``       what the tests of a process share: GPU, compiler, baselines; ``stash`` is where pytest keeps it
    ``session``     what a test found, and the run's book of it, as it travels through pytest-xdist
    ``counting``    counters, collected under ncu before the first test
    ``children``    what child processes have in common
    ``update``      ``--update-baselines``
    ``runend``      the end of a run; ``lastrun`` keeps it for ``gpuperf explain``
    ``advising``, ``explaining``    causes of what changed, for a run and for ``gpuperf explain``

Rooms that know no pytest
    ``compile``     source to machine code to static evidence
    ``device``      the GPU and its timers
    ``sampling``    rounds and paired blocks on top of a timer
    ``counters``    metrics, and running ncu
    ``baselines``   the committed files
    ``judge``       evidence to verdicts; pure
    ``advise``      differences to causes; pure
    ``selftest``    what this machine can gate

Records and words
    ``evidence``, ``dryrun``, ``verdict``    what is found and said, as typed records
    ``report``      how it is printed
    ``writing``     files that are never seen half written
"""

__version__ = "0.1.0"
