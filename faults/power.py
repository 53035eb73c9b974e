#!/usr/bin/env python3
"""Power cuts on a real file system: what was not flushed is lost in the middle of everything.

A file system in a file is mounted, krond has its state there, and the file system is shut down under it without
flushing its log (the ioctl that crash tests of file systems use). It is unmounted and mounted again, krond starts
again, and the oracle judges. The log of what was executed lies outside. Needs root.
"""

import argparse
import fcntl
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

from world import JOBS, World, wait_until

# XFS_IOC_GOINGDOWN, which ext4 understands as well; 2 is: without flushing the log.
SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2


def shell(*words):
    """Runs a command that must succeed."""
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


class Disk:
    """A file system in a file."""

    def __init__(self, kind):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="kron-power-"))
        self.image = self.base / "image"
        self.mount_point = self.base / "mnt"
        self.mount_point.mkdir()
        with open(self.image, "wb") as image:
            image.truncate((512 if kind == "xfs" else 64) << 20)
        shell(f"mkfs.{kind}", "-q", self.image)
        self.mount()

    def mount(self):
        shell("mount", "-o", "loop", self.image, self.mount_point)

    def cut(self):
        """The power goes."""
        handle = os.open(self.mount_point, os.O_RDONLY)
        fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        os.close(handle)

    def unmount(self):
        for _ in range(200):
            if subprocess.run(["umount", self.mount_point], capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        shell("umount", "-l", self.mount_point)

    def remove(self):
        self.unmount()
        self.image.unlink()
        self.mount_point.rmdir()
        self.base.rmdir()


def main():
    """Cuts the power so many times on one disk, with a restart after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krond", type=pathlib.Path, help="the binary")
    parser.add_argument("--kind", choices=["ext4", "xfs"], default="ext4")
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--careless", action="store_true", help="flush nothing, to see that the oracle notices")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    disk = Disk(args.kind)
    world = World(args.krond.resolve(), state=disk.mount_point / "state")
    wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=fsync,syncfs:retval=0"] if args.careless else []
    complaints = []
    for _ in range(args.cuts):
        process = world.start(wrapper)
        if not wait_until(lambda: world.ask("status")[0] == 0, 20):
            complaints.append("krond did not start again")
            break
        time.sleep(rng.uniform(0.3, 2.3))
        disk.cut()
        world.kill(process)
        disk.unmount()
        disk.mount()
    process = world.start()
    before = len(world.executions())
    if not wait_until(lambda: {job for job, _, _ in world.executions()[before:]} == set(JOBS), 30):
        complaints.append("after the last cut not every job runs again")
    world.end(process)
    executed = world.judge(complaints, args.kind)
    print("\n".join(complaints[:20]))
    print(f"{args.cuts} power cuts on {args.kind}, seed {args.seed}: {executed} executions, {len(complaints)} complaints")
    disk.remove()
    world.forget()
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
