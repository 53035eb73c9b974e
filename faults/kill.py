#!/usr/bin/env python3
"""kill -9 at the k-th system call, for every k, or an error there instead.

For every system call that krond makes, and every k up to --most, krond is started under strace, which kills it (or its
spawner, or a child) at the k-th such call of a thread, or lets the call fail. krond is started again, and the oracle
judges: no period twice, none without a claim, and every job runs again.

Where that is allowed, each try has a PID namespace of its own: krond looks at all processes when it ends a run, and would look at those of
all the other tries as well.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

from world import JOBS, World, binary, positive, wait_until

# What krond does to files, processes, sockets and clocks. `read`, `futex` and `mmap` are left out: a death there is a
# death at the call before.
CALLS = (
    "openat mkdirat mkdir flock ftruncate write utimensat fsync syncfs renameat renameat2 linkat unlinkat fstat statx "
    "getdents64 clone3 clone vfork execve pidfd_open pidfd_send_signal wait4 waitid sendto recvfrom socketpair bind "
    "accept4 epoll_ctl epoll_pwait timerfd_settime close_range setsid dup2 dup3 prlimit64 setrlimit exit_group"
).split()

# Errors that can happen to these calls, for --errors.
ERRORS = {
    "openat": ["EIO", "ENOSPC", "EMFILE", "ENOMEM", "EROFS"],
    "write": ["EIO", "ENOSPC", "EINTR"],
    "ftruncate": ["EIO", "ENOSPC"],
    "utimensat": ["EIO", "EROFS"],
    "fsync": ["EIO", "ENOSPC"],
    "syncfs": ["EIO", "ENOSPC"],
    "renameat": ["EIO", "ENOSPC", "EROFS"],
    "renameat2": ["EIO", "ENOSPC", "EROFS", "EINVAL"],
    "clone3": ["EAGAIN", "ENOMEM"],
    "execve": ["EIO", "ENOMEM"],
    "sendto": ["EINTR"],
    "recvfrom": ["EINTR"],
    "wait4": ["EINTR"],
    "epoll_pwait": ["EINTR"],
}

# What strace tells where it has done it. It would be quicker with `--seccomp-bpf`, and would then kill nobody: the kernel forgets a signal
# that is given to somebody who stands where the filter has stopped him.
DONE = {"signal": "+++ killed by SIGKILL +++", "error": "(INJECTED)"}

# Of those that are tried so many must have happened: k is the most that was counted once, and another run may be shorter.
HAPPENED_MIN = 0.5

# Calls that jobs make as well. strace counts for each process anew, so every job fails there, and not only krond.
OF_JOBS = ["openat", "write", "execve", "wait4", "clone3"]


def count(krond, seconds):
    """How often a thread makes each call in a run of so many seconds."""
    world = World(krond)
    trace = world.base / "trace"
    process = world.start(["strace", "-ff", "-qq", "-e", "trace=" + ",".join("?" + call for call in CALLS), "-o", trace])
    time.sleep(seconds)
    stop(world, process)
    world.kill(process)
    most = collections.Counter()
    for path in world.base.glob("trace.*"):
        calls = collections.Counter(re.findall(r"^(\w+)\(", path.read_text(errors="replace"), re.M))
        for call, number in calls.items():
            most[call] = max(most[call], number)
    world.forget()
    return most


def stop(world, process):
    """Asks krond to end, and leaves its runs alone."""
    world.ask("stop")
    wait_until(lambda: process.poll() is not None, 5)


def hurt(krond, injection, hurt_seconds, heal_seconds):
    """One krond hurt once, and then left alone. Returns whether it was hurt, the number of executions, and complaints."""
    complaints = []
    world = World(krond)
    call, fault, _ = injection.split(":")
    trace = world.base / "trace"
    wrapper = ["strace", "-f", "-q", "-o", trace, "-e", f"trace=?{call}", "-e", f"inject=?{injection}"]
    process = world.start(wrapper)
    wait_until(lambda: process.poll() is not None, hurt_seconds)
    alive = process.poll() is None
    if alive and "error=" in injection and call not in OF_JOBS:
        # It must go on as if nothing had happened, once the one error is over.
        before = len(world.executions())
        if not wait_until(lambda: len(world.executions()) >= before + len(JOBS), 20):
            complaints.append(f"{injection}: nothing runs any more, and krond is still there")
        world.judge(complaints, injection)
    if alive:
        stop(world, process)
    happened = DONE[fault.split("=")[0]] in trace.read_text(errors="replace")
    world.kill(process)
    wait_until(lambda: not world.is_up(), 5)
    second = world.start()
    before = len(world.executions())
    time.sleep(heal_seconds)
    ran = {job for job, _, _ in world.executions()[before:]}
    if not wait_until(lambda: {job for job, _, _ in world.executions()[before:]} == set(JOBS), 20):
        complaints.append(f"{injection}: after the restart only {sorted(ran)} ran again")
    world.end(second)
    executed = world.judge(complaints, injection)
    if complaints:
        complaints.append(f"  what is left is in {world.base}")
    else:
        world.forget()
    return happened, executed, complaints


def namespace():
    """The words that give a command a PID namespace, or none where that is refused."""
    words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    return words if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode == 0 else []


def apart(namespace, words):
    """The same script for one task, in that namespace. Returns what it has printed, read as JSON."""
    done = subprocess.run([*namespace, sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def leave_to_a_child():
    """As the first process of a namespace: waits for all that has lost its parent, and does nothing else."""
    child = os.fork()
    if child == 0:
        return
    while True:
        ended, status = os.wait()
        if ended == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def main():
    """Counts the calls, makes the list of hurts, and carries them out side by side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krond", type=binary, help="the binary")
    parser.add_argument("--errors", action="store_true", help="let the call fail instead of killing")
    parser.add_argument("--most", type=positive, default=10**9, help="try no k above this")
    parser.add_argument("--step", type=positive, default=1, help="try every step-th of all")
    parser.add_argument("--passes", type=positive, default=1, help="try all of them so many times")
    parser.add_argument("--limit", type=positive, default=10**9, help="try no more than so many")
    parser.add_argument("--side-by-side", type=positive, default=8, help="how many at a time")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a krond is hurt, and then healed")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        if os.getpid() == 1:
            leave_to_a_child()
        task = hurt(args.krond, args.one, args.seconds, args.seconds / 2) if args.one else count(args.krond, args.seconds)
        print(json.dumps(task))
        return 0
    words = [str(args.krond.resolve()), "--seconds", str(args.seconds), "--one"]
    own = namespace()
    most = collections.Counter(apart(own, [*words, ""]))
    injections = []
    for call in CALLS:
        for k in range(1, min(most[call], args.most) + 1):
            faults = [f"error={error}" for error in ERRORS.get(call, [])] if args.errors else ["signal=KILL"]
            injections += [f"{call}:{fault}:when={k}" for fault in faults]
    total = len(injections)
    injections = (injections[:: args.step] * args.passes)[: args.limit]
    if not injections:
        parser.error(f"of {total} points none would be tried")
    print(f"{total} points, {len(injections)} tries: {dict(sorted(most.items()))}", flush=True)
    executions, failed, done, happened = 0, [], 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.side_by_side) as pool:
        tries = [pool.submit(apart, own, [*words, injection]) for injection in injections]
        for attempt in concurrent.futures.as_completed(tries):
            has_happened, executed, complaints = attempt.result()
            happened += has_happened
            executions += executed
            done += 1
            if complaints:
                failed.append(complaints)
                print("\n".join(complaints), flush=True)
            if sys.stdout.isatty():
                print(f"\r{done} of {len(injections)}", end="", flush=True)
    kind = "errors" if args.errors else "kills"
    print(f"{len(injections)} {kind} tried, {happened} of them happened, {executions} executions, {len(failed)} with complaints")
    if happened < HAPPENED_MIN * len(injections):
        print(f"expected that at least {HAPPENED_MIN:.0%} of them happen: strace does not do what it was asked for")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
