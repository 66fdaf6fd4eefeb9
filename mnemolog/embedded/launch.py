"""Starts a server that ends with its owner: `python -I -S launch.py OWNER_PID SIGNAL UID GID NICENESS command ...`.

A script of its own because what it does must happen between fork and exec, where a process with threads
may not run Python. The order matters: Linux forgets the parent-death signal when the user changes.
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    owner, signal, uid, gid, niceness = (int(text) for text in sys.argv[1:6])
    os.nice(niceness)
    if os.geteuid() == 0 and uid != 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        # The kernel sends the signal when the owner's thread that started us ends.
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
        if os.getppid() != owner:
            sys.exit("the process that started this server is gone")
    os.execv(sys.argv[6], sys.argv[6:])  # noqa: S606 - the command comes from the embedded stack itself


if __name__ == "__main__":
    main()
