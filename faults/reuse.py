#!/usr/bin/env python3
"""A stranger gets the process id of a run that krond remembers, and nothing may happen to it.

In a PID namespace of its own, krond starts a run and is killed, the run dies, and `ns_last_pid` gives its id to a
process that krond never started. krond is started again, is to replace the run, and is told to end all runs. The
oracle judges: the stranger was sent no signal, and the job is executed again.
"""

import argparse
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import time

from world import World, binary, positive, wait_until

# How often a process id is asked for again when something else was faster.
TRIES_MAX = 200


class Replaced(World):
    """A world with one job that never ends by itself and is replaced."""

    def __init__(self, krond):
        super().__init__(krond)
        self.config.write_text(
            "@every 2s @policy(concurrency=replace,deadline=10s) name=long shell=true "
            f'command="echo $KRON_RUN long $$ >> {self.log}; exec sleep 1000"\n'
        )

    def wait_for_run(self, more_than):
        """The process id of the newest run, once there are more of them."""
        if not wait_until(lambda: len(self.executions()) > more_than, 60):
            return None
        return int(self.executions()[-1][2])


def reap():
    """Takes leave of everything that has ended: process 1 inherits it."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def is_there(pid):
    """Whether a process has this id, and is not only a zombie."""
    reap()
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_free(pid):
    """Whether nobody has this id, not even as a zombie."""
    reap()
    return not pathlib.Path(f"/proc/{pid}").exists()


def stranger_with(pid):
    """A process that has this id, which must be free."""
    for _ in range(TRIES_MAX):
        pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        child = os.fork()
        if child == 0:
            os.setsid()
            # Whatever it is sent, it can tell of.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
            os.execvp("sleep", ["sleep", "1000"])
        if child == pid:
            return True
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return False


def was_signalled(pid):
    """Whether a process is gone, or has a signal pending."""
    if not is_there(pid):
        return True
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return any(int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd")))


def inside(krond, cases, careless):
    """As process 1 of a namespace: one case after another."""
    failed = 0
    for number in range(cases):
        complaints = case(krond, careless)
        failed += bool(complaints)
        for complaint in complaints:
            print(f"case {number}: {complaint}", flush=True)
    return failed


def case(krond, careless):
    """One run whose id is given away."""
    world = Replaced(krond)
    process = world.start()
    pid = world.wait_for_run(0)
    if pid is None:
        world.kill(process)
        return ["nothing was executed"]
    if careless:
        # The run itself in the stranger's place, so that what is done to it must be noticed.
        process.kill()
        process.wait()
        time.sleep(0.3)
    else:
        world.kill(process)
        if is_there(pid):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: is_free(pid), 10)
        if not stranger_with(pid):
            world.forget()
            return [f"no process could be given the id {pid}"]
    complaints = []
    before = len(world.executions())
    process = world.start()
    if world.wait_for_run(before) is None:
        complaints.append("the job was never executed again")
    world.end(process)
    if was_signalled(pid):
        complaints.append(f"the process with the id {pid} was sent a signal, or is gone")
    elif is_there(pid):
        os.kill(pid, signal.SIGKILL)
    seen = [period for _, period, _ in world.executions()]
    if len(seen) != len(set(seen)):
        complaints.append(f"a period was executed twice: {seen}")
    world.forget()
    return complaints


def main():
    """Shares the cases among namespaces."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krond", type=binary, help="the binary")
    parser.add_argument("--cases", type=positive, default=1000)
    parser.add_argument("--side-by-side", type=positive, default=8, help="how many namespaces")
    parser.add_argument("--careless", action="store_true", help="let the run itself be the stranger, to see that it is noticed")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return 1 if inside(args.krond, args.cases, args.careless) else 0
    if os.geteuid() != 0:
        print("a PID namespace takes root", file=sys.stderr)
        return 2
    side = min(args.side_by_side, args.cases)
    shares = [args.cases // side + (number < args.cases % side) for number in range(side)]

    def namespace(share):
        words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, __file__, str(args.krond.resolve())]
        options = ["--inside", "--cases", str(share), *(["--careless"] if args.careless else [])]
        return subprocess.run([*words, *options], capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(side) as pool:
        results = list(pool.map(namespace, shares))
    for result in results:
        sys.stdout.write(result.stdout)
        sys.stderr.write(result.stderr)
    failed = sum(result.returncode != 0 for result in results)
    print(f"{args.cases} process ids given to strangers in {side} namespaces, {failed} of them with complaints")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
