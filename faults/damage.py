#!/usr/bin/env python3
"""State files with every bit flipped, one at a time, and cut off at every byte.

So many jobs as there are damages run until each has a state file of its own; krond is stopped, every file is damaged in
its own way, and krond is started again. The oracle judges: every damage was noticed and kept aside, no period was
executed twice, and every job runs again.
"""

import argparse
import collections
import hashlib
import os
import sys
import time

from world import World, binary, positive, wait_until

# How many starts there are in a second, and after how many seconds a job is due again at the least. With its deadline,
# a period that was forgotten would be made up for at once.
STARTS, PERIOD_MIN, DEADLINE = 200, 6, 3600

# Jobs in one krontab, which may have a megabyte.
TABLE_JOBS = 2000

# How long a phase may take on a machine with other things to do.
PHASE_MAX = 900


class Damaged(World):
    """A world with one job for each damage."""

    def __init__(self, krond, count):
        super().__init__(krond)
        self.names = [f"j{number}" for number in range(count)]
        period = max(PERIOD_MIN, count // STARTS)
        line = f"@every {period}s @win(after,{period - 1}s) @policy(deadline={DEADLINE}s,concurrency=allow)"
        self.config = self.base / "krontabs"
        self.config.mkdir()
        self.files = {}
        for first in range(0, count, TABLE_JOBS):
            table = self.config / f"{first}.kron"
            with open(table, "w") as krontab:
                for name in self.names[first : first + TABLE_JOBS]:
                    krontab.write(f'{line} name={name} shell=true command="echo $KRON_RUN {name} $$ >> {self.log}"\n')
                    self.files[name] = self.state / (hashlib.sha256(f"{table}:{name}".encode()).hexdigest() + ".json")

    def file(self, name):
        """The state file of a job."""
        return self.files[name]

    def runs(self):
        """How often each job was executed."""
        return collections.Counter(job for job, _, _ in self.executions())

    def run_until(self, is_enough):
        """Lets krond run until every job has been executed as often as it shall be, and ends it."""
        process = self.start()
        done = wait_until(lambda: process.poll() is not None or self.has(is_enough), PHASE_MAX)
        self.end(process)
        return done and self.has(is_enough)

    def has(self, is_enough):
        time.sleep(0.5)
        runs = self.runs()
        return all(is_enough(name, runs[name]) for name in self.names)


def damages(size):
    """Every way to damage a file of so many bytes: its name, and what it makes of the content."""

    def flip(bit):
        return lambda text: text[: bit // 8] + bytes([text[bit // 8] ^ 1 << bit % 8]) + text[bit // 8 + 1 :]

    def cut(length):
        return lambda text: text[:length]

    for bit in range(size * 8):
        yield f"bit {bit}", flip(bit)
    for length in range(size):
        yield f"cut at {length}", cut(length)


def main():
    """Damages them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krond", type=binary, help="the binary")
    parser.add_argument("--step", type=positive, default=1, help="try every step-th of all")
    parser.add_argument("--careless", action="store_true", help="put older files back instead, to see that it is noticed")
    args = parser.parse_args()
    krond = args.krond.resolve()

    # How long a file is. Files of other jobs may be a few bytes longer: damage beyond that repeats the last.
    probe = Damaged(krond, 3)
    probe.run_until(lambda _, runs: runs >= 1)
    size = max(probe.file(name).stat().st_size for name in probe.names) + 4
    probe.forget()
    chosen = list(damages(size))[:: args.step]
    print(f"{len(chosen)} damages of files of up to {size} bytes", flush=True)

    complaints = []
    world = Damaged(krond, len(chosen))
    if not world.run_until(lambda _, runs: runs >= 1):
        complaints.append("not every job was executed before anything was damaged")
    older = {name: world.file(name).read_bytes() for name in world.names}
    if args.careless:
        before = world.runs()
        world.run_until(lambda name, runs: runs > before[name])
    before = world.runs()
    damaged = {}
    for name, (what, damage) in zip(world.names, chosen):
        path = world.file(name)
        status = path.stat()
        text = path.read_bytes()
        bad = older[name] if args.careless else damage(text) if what.startswith("cut") or len(text) * 8 > int(what[4:]) else text[:-1]
        if bad == text:
            bad = text[:-1]
        path.write_bytes(bad)
        if what.startswith("bit"):
            # What rots on a disk changes no date.
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        damaged[name] = what
    if not world.run_until(lambda name, runs: runs > before[name]):
        runs = world.runs()
        silent = [damaged[name] for name in world.names if runs[name] <= before[name]]
        complaints.append(f"these were never executed again: {silent}")
    executions = collections.Counter((job, period) for job, period, _ in world.executions())
    for (job, period), times in executions.items():
        if times > 1:
            complaints.append(f"{damaged[job]}: {job} {period} was executed {times} times")
    for name in world.names:
        if not list(world.state.glob(world.file(name).name + ".corrupt.*")):
            complaints.append(f"{damaged[name]}: not noticed")
    for complaint in complaints[:50]:
        print(complaint)
    print(f"{len(chosen)} damages, {sum(executions.values())} executions, {len(complaints)} complaints")
    if not complaints:
        world.forget()
    else:
        print(f"kept in {world.base}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
