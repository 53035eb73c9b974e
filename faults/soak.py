#!/usr/bin/env python3
"""krond for hours, hurt every minute: its memory, descriptors, threads and children stay flat, and nothing runs twice.

Jobs of every policy are due all the time, some of which fail, hang or leave children behind. Every so many seconds
something happens: a state file is damaged or lost, the spawner is killed, krond is stopped for a while, reloaded,
asked nonsense over its socket, asked to run everything by hand; now and then krond itself is killed, and begins a new
life. What it uses is looked at throughout, and each life is judged by its second half beside its first.
"""

import argparse
import collections
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import time

from world import World, binary, wait_until

# Kinds of jobs, each due so often that something always happens.
KINDS = (
    ("@every 10s", 'shell=true command="echo $KRON_RUN {name} $$ >> {log}"'),
    ("@every 10s @win(after,20s) @policy(concurrency=allow,deadline=30s)", 'shell=true command="echo $KRON_RUN {name} $$ >> {log}"'),
    ("@every 20s @policy(concurrency=replace)", 'shell=true command="echo $KRON_RUN {name} $$ >> {log}; exec sleep 60"'),
    ("@every 15s", 'timeout=2s shell=true command="echo $KRON_RUN {name} $$ >> {log}; sleep 60 & sleep 60"'),
    ("@every 15s", 'shell=true command="echo $KRON_RUN {name} $$ >> {log}; exit 7"'),
    ("@every 30s", "command=/no/such/program"),
)

# What may grow from the first half of a life to its second: memory by a tenth and 2 MB, and the others by a few.
GROWTH, MEMORY_SLACK, COUNT_SLACK = 1.1, 2 << 20, 8


class Soaked(World):
    """A world with so many jobs of every kind."""

    def __init__(self, krond, jobs):
        super().__init__(krond)
        self.jobs = jobs
        self.write(0)

    def write(self, edition):
        """The table, of which a few jobs are others in every edition."""
        with open(self.config, "w") as krontab:
            for number in range(self.jobs):
                schedule, command = KINDS[number % len(KINDS)]
                name = f"j{number}" if number % 50 else f"j{number}-{edition}"
                krontab.write(f"{schedule} name={name} stdout=discard stderr=discard {command.format(name=name, log=self.log)}\n")

    def sample(self, pid):
        """What krond uses: bytes, descriptors, threads and zombies among its children."""
        process = pathlib.Path(f"/proc/{pid}")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        children = subprocess.run(["ps", "--ppid", str(pid), "-o", "stat="], capture_output=True, text=True).stdout.split()
        return {
            "memory": int(status["VmRSS"].split()[0]) * 1024,
            "descriptors": len(list((process / "fd").iterdir())),
            "threads": int(status["Threads"]),
            "zombies": sum(child.startswith("Z") for child in children),
        }


def spawner_of(pid):
    """The process that krond starts jobs from."""
    found = subprocess.run(["pgrep", "-P", str(pid), "-x", "krond"], capture_output=True, text=True).stdout.split()
    return int(found[0]) if found else None


def damage(world, pid, rng):
    path = rng.choice([*world.state.glob("*.json")] or [None])
    if path:
        text = bytearray(path.read_bytes())
        text[rng.randrange(len(text))] ^= 1 << rng.randrange(8)
        path.write_bytes(text)


def lose(world, pid, rng):
    path = rng.choice([*world.state.glob("*.json")] or [None])
    if path:
        path.unlink()


def kill_spawner(world, pid, rng):
    spawner = spawner_of(pid)
    if spawner:
        subprocess.run(["kill", "-9", str(spawner)])


def stop_and_go(world, pid, rng):
    subprocess.run(["kill", "-STOP", str(pid)])
    time.sleep(rng.uniform(1, 8))
    subprocess.run(["kill", "-CONT", str(pid)])


def reload(world, pid, rng):
    world.write(rng.randrange(1000))
    world.ask("reload")


def bad_reload(world, pid, rng):
    good = world.config.read_text()
    world.config.write_text(good + "61 * * * * name=bad command=/bin/true\n")
    world.ask("reload")
    world.config.write_text(good)


def nonsense(world, pid, rng):
    for path in world.state.glob("*.sock"):
        for _ in range(50):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(1)
                try:
                    client.connect(str(path))
                    client.send(rng.randbytes(rng.randrange(1, 5000)))
                except OSError:
                    pass


def ask_much(world, pid, rng):
    for words in (["status"], ["jobs"], ["metrics"], *(["run", f"j{number}"] for number in range(1, 40))):
        world.ask(*words)


HURTS = (damage, lose, kill_spawner, stop_and_go, reload, bad_reload, nonsense, ask_much)


def grown(life):
    """What the second half of a life used more of than the first. The first fifth is left out: things fill up once."""
    life = life[len(life) // 5 :]
    if len(life) < 8:
        return []
    complaints = []
    for what in life[0]:
        values = [sample[what] for sample in life]
        first, second = (statistics.median(half) for half in (values[: len(values) // 2], values[len(values) // 2 :]))
        most = first * GROWTH + MEMORY_SLACK if what == "memory" else first + COUNT_SLACK
        if second > most:
            complaints.append(f"{what} grew from {first:,.0f} to {second:,.0f}")
    return complaints


def main():
    """Hurts it for so long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krond", type=binary, help="the binary")
    parser.add_argument("--hours", type=float, default=4.0)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two hurts")
    parser.add_argument("--life", type=int, default=60, help="hurts until krond itself is killed")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    world = Soaked(args.krond.resolve(), args.jobs)
    complaints, done, life, lives = [], collections.Counter(), [], 1
    process = world.start()
    end = time.monotonic() + args.hours * 3600
    while time.monotonic() < end:
        wait_until(lambda: process.poll() is not None, args.every)
        if process.poll() is not None:
            complaints.append(f"krond ended by itself with {process.returncode} after {dict(done)}")
            break
        life.append(world.sample(process.pid))
        if len(life) % 10 == 1:
            print(f"{sum(done.values()):>5} hurts, life {lives}: {life[-1]}", flush=True)
        if len(life) >= args.life:
            complaints += [f"life {lives}: {complaint}" for complaint in grown(life)]
            process.send_signal(signal.SIGKILL)
            process.wait()
            process, life, lives = world.start(), [], lives + 1
            done["kill"] += 1
        else:
            hurt = rng.choice(HURTS)
            hurt(world, process.pid, rng)
            done[hurt.__name__] += 1
    complaints += [f"life {lives}: {complaint}" for complaint in grown(life)]
    before = len(world.executions())
    if not wait_until(lambda: len(world.executions()) > before, 60):
        complaints.append("nothing is executed any more")
    world.end(process)
    executions = world.executions()
    twice = [run for run, times in collections.Counter((job, period) for job, period, _ in executions).items() if times > 1]
    complaints += [f"{job} {period} was executed twice" for job, period in twice]
    for complaint in complaints[:50]:
        print(complaint)
    print(f"{args.hours} hours, {args.jobs} jobs, {lives} lives, {dict(done)}: {len(executions)} executions, {len(complaints)} complaints")
    if complaints:
        print(f"kept in {world.base}")
        return 1
    world.forget()
    return 0


if __name__ == "__main__":
    sys.exit(main())
