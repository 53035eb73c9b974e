"""A krond to be hurt, and the oracle that judges it.

Nothing here is product code. Jobs append what they are to a log outside the state directory; the oracle reads that
log and the state files, and knows nothing else.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

# One job for each policy that matters, and one whose windows overlap. Everything is due every second or two.
JOBS = {
    "plain": "@every 1s",
    "late": "@every 1s @policy(deadline=30s)",
    "allow": "@every 1s @policy(concurrency=allow,deadline=10s)",
    "replace": "@every 2s @policy(concurrency=replace,deadline=10s)",
    "spread": "@every 1s @win(after,3s) @policy(concurrency=allow,deadline=10s)",
    "around": "@every 2s @win(around,4s) @policy(concurrency=allow,deadline=10s)",
}


class World:
    """A directory with a krontab, a state directory and the log outside it."""

    def __init__(self, krond, base=None, state=None):
        self.krond = str(krond)
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="kron-faults-", dir=base))
        self.state = pathlib.Path(state) if state else self.base / "state"
        self.log = self.base / "executed"
        self.log.touch()
        self.config = self.base / "jobs.kron"
        line = '{schedule} name={name} shell=true command="echo $KRON_RUN {name} $$ >> {log}{tail}"\n'
        with open(self.config, "w") as krontab:
            for name, schedule in JOBS.items():
                tail = "; exec sleep 5" if name == "replace" else ""
                krontab.write(line.format(schedule=schedule, name=name, log=self.log, tail=tail))
        self.output = open(self.base / "krond.log", "ab")

    def start(self, wrapper=()):
        """Starts krond, under a wrapper such as strace."""
        command = [self.krond, "start", "--foreground", "--config", self.config, "--state-dir", self.state]
        return subprocess.Popen([*wrapper, *command], stderr=self.output, stdin=subprocess.DEVNULL)

    def ask(self, *words):
        """Asks krond something; returns its exit code and what it said."""
        command = [self.krond, *words, "--state-dir", self.state]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def is_up(self):
        """Whether krond listens. It costs no process to find out."""
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(self.state / "control.sock"))
            except OSError:
                return False
        return True

    def end(self, process):
        """Ends krond and everything that it has started."""
        if process.poll() is None:
            self.ask("stop", "--end-runs")
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self, process):
        """Kills krond, the wrapper it runs under and its jobs, at once."""
        subprocess.run(["pkill", "-9", "-f", str(self.base)], capture_output=True)
        process.kill()
        process.wait()

    def executions(self):
        """What was executed, in order: (job, period, pid)."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            words = line.split()
            # A line that was cut short by a kill proves no second execution; its job is gone, too.
            if len(words) == 3 and not words[0].startswith("manual:"):
                found.append((words[1], words[0], words[2]))
        return found

    def watermarks(self):
        """What the state files say is handled, by job."""
        found = {}
        for name in JOBS:
            identity = f"{self.config}:{name}"
            path = self.state / (hashlib.sha256(identity.encode()).hexdigest() + ".json")
            try:
                found[name] = json.loads(path.read_text())["LastHandledPeriodID"]
            except (FileNotFoundError, ValueError, KeyError):
                found[name] = None
        return found

    def judge(self, complaints, label):
        """No period twice, and none without a claim. Returns how many executions there were."""
        seen = {}
        marks = self.watermarks()
        executions = self.executions()
        for job, period, pid in executions:
            if (job, period) in seen:
                complaints.append(f"{label}: {job} {period} was executed twice: {seen[job, period]} and {pid}")
            seen[job, period] = pid
            # Both are RFC 3339 in UTC and whole seconds, so they compare as text.
            if marks[job] is None or period > marks[job]:
                complaints.append(f"{label}: {job} {period} was executed, and its state says {marks[job]}")
        return len(executions)

    def forget(self):
        """Removes the world, unless something was wrong in it."""
        self.output.close()
        shutil.rmtree(self.base, ignore_errors=True)


def binary(text):
    """A program that is given on the command line."""
    path = pathlib.Path(text)
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise argparse.ArgumentTypeError(f"there is no program at {text}: build it with cargo build")
    return path


def positive(text):
    """A number of things to do that is given on the command line: with none of them nothing would be shown."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, but found {text!r}")
    return int(text)


def wait_until(condition, seconds):
    """Whether the condition came true within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False
