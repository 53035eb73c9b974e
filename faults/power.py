#!/usr/bin/env python3
"""Power cuts on a real file system: what was not flushed is lost in the middle of everything.

A file system in a file is mounted, krond has its state there, and the file system is shut down under it without
flushing its log (the ioctl that crash tests of file systems use). It is unmounted and mounted again, krond starts
again, and the oracle judges. The log of what was executed lies outside. Needs root.

krond is stopped at that moment, for after a power cut nothing goes on: xfs tells some of those who flush while it is being
shut down that all is well, and a krond that went on would start what it could then not remember. And all this has mounts of its own: a copy of them in anybody else's namespace keeps a dead file system alive,
which is then mounted again in place of what the power cut has left.
"""

import argparse
import concurrent.futures
import fcntl
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

from world import JOBS, World, binary, wait_until

# XFS_IOC_GOINGDOWN, which ext4 understands as well; 2 is: without flushing the log.
SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2

# How long krond lives at most between two cuts, in seconds. Everything is due every second or two.
LIFE_MAX = 2.0


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
        # Whoever was at a gate may take a while to end on a busy machine. To unmount lazily instead would be wrong: the dead
        # file system would be mounted again, and not what a power cut has left of it.
        if not wait_until(lambda: subprocess.run(["umount", self.mount_point], capture_output=True).returncode == 0, 120):
            shell("umount", self.mount_point)

    def remove(self):
        self.unmount()
        self.image.unlink()
        self.mount_point.rmdir()
        self.base.rmdir()


def stop(process):
    """Lets a process do nothing more but what the kernel does for it at this moment."""
    process.send_signal(signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{process.pid}/task")

    def state(task):
        try:
            return (task / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            # It has ended since it was listed, and does nothing more either.
            return "X"

    if not wait_until(lambda: all(state(task) in "TtDZX" for task in tasks.iterdir()), 60):
        raise OSError(f"krond does not stop: {[state(task) for task in tasks.iterdir()]}")


def with_own_mounts():
    """Starts this program again where nobody else sees its mounts, unless it is there already."""
    if os.environ.get("KRON_OWN_MOUNTS") != "1":
        os.environ["KRON_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])


def on_one_disk(krond, kind, cuts, seed, careless):
    """Cuts the power so many times on one disk, with a restart after each. How much was executed, and what was wrong."""
    rng = random.Random(seed)
    disk = Disk(kind)
    world = World(krond, state=disk.mount_point / "state")
    wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=fsync,syncfs:retval=0"] if careless else []
    complaints = []
    for _ in range(cuts):
        process = world.start(wrapper)
        if not wait_until(world.is_up, 60):
            complaints.append("krond did not start again")
            break
        time.sleep(rng.uniform(0.1, LIFE_MAX))
        if not wrapper:
            stop(process)
        disk.cut()
        if wrapper:
            world.kill(process)
        else:
            # Its spawner and whoever is at a gate end with it. To look for them among all processes costs more than a cut.
            process.kill()
            process.wait()
        disk.unmount()
        disk.mount()
    process = world.start()
    before = len(world.executions())
    if not wait_until(lambda: {job for job, _, _ in world.executions()[before:]} == set(JOBS), 60):
        complaints.append("after the last cut not every job runs again")
    world.end(process)
    executed = world.judge(complaints, kind)
    disk.remove()
    if not complaints:
        world.forget()
    return executed, complaints


def main():
    """Shares the cuts among disks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krond", type=binary, help="the binary")
    parser.add_argument("--kind", choices=["ext4", "xfs"], default="ext4")
    parser.add_argument("--cuts", type=int, default=20, help="how many in all")
    parser.add_argument("--side-by-side", type=int, default=1, help="on how many disks at a time")
    parser.add_argument("--seed", type=int, default=1, help="of the first disk; the others have those after it")
    parser.add_argument("--careless", action="store_true", help="flush nothing, to see that the oracle notices")
    args = parser.parse_args()
    if args.cuts < 1 or args.side_by_side < 1:
        parser.error("--cuts and --side-by-side take a number from 1 on")
    if os.geteuid() != 0:
        print("a file system of its own takes root", file=sys.stderr)
        return 2
    with_own_mounts()
    side = min(args.side_by_side, args.cuts)
    shares = [args.cuts // side + (number < args.cuts % side) for number in range(side)]
    with concurrent.futures.ThreadPoolExecutor(side) as pool:
        disks = [
            pool.submit(on_one_disk, args.krond.resolve(), args.kind, share, args.seed + number, args.careless)
            for number, share in enumerate(shares)
        ]
        concurrent.futures.wait(disks)
    broken = [f"a disk was given up: {disk.exception()}" for disk in disks if disk.exception()]
    results = [disk.result() for disk in disks if not disk.exception()]
    complaints = broken + [complaint for _, found in results for complaint in found]
    print("\n".join(complaints[:20]), end="\n" if complaints else "")
    executed = sum(executed for executed, _ in results)
    print(f"{args.cuts} power cuts on {side} disks with {args.kind}, seed {args.seed}: {executed} executions, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
