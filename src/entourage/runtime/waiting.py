"""How the threads of libraries wait for each other: asleep, not in a loop that keeps a processor busy.

By default the threads of OpenMP (torch, scikit-learn) and of OpenBLAS (numpy, scipy) wait in such loops, which is a
little faster on a machine of one's own. Where two processes share its processors, each waits in a loop for threads that
the other one's loops keep from running, and small products take many times as long. OpenBLAS cannot wait otherwise, so
it gets one thread; what takes long is shared out by threads.py, whose threads sleep.

Libraries read this when they are loaded, so it is for a program to decide, at its start, and not for a library that is
imported into one.
"""

import os

__all__ = ["ASLEEP", "wait_asleep"]

ASLEEP = {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0", "OPENBLAS_NUM_THREADS": "1"}
"""Variables of the environment: of OpenMP, of its Intel and LLVM runtimes, of OpenBLAS."""


def wait_asleep() -> None:
    """Let libraries that are loaded from now on wait asleep, except where the user has decided otherwise."""
    for name, value in ASLEEP.items():
        os.environ.setdefault(name, value)
