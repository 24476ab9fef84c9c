"""The version of the baseline files' layout, and its history.

6   A time record may have figures ``beside`` its time: memory, times of the CPU, error; its rounds are of one process.
5   A workload, static or timed, may have a ``config``: what an autotuner chose to compile.
4   One record per machine code, which workloads name; tests by function and parameters; of rounds what a judge reads;
    metrics by family; the commit of a session.

A file of another version is refused.  A new version needs a line above.
"""

SCHEMA_VERSION = 6
