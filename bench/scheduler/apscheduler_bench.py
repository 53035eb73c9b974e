"""APScheduler with many jobs that are due together, or that wait: one line as kron-bench-scheduler prints it."""

import sys
import threading
import time
from datetime import datetime, timedelta, timezone

from apscheduler.schedulers.background import BackgroundScheduler

lock, starts = threading.Lock(), []


def note():
    with lock:
        starts.append(time.time())


def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))


def registered(tasks, due):
    scheduler = BackgroundScheduler(timezone=timezone.utc, job_defaults={"misfire_grace_time": None})
    scheduler.start(paused=True)
    for _ in range(tasks):
        scheduler.add_job(note, "cron", year=due.year, month=due.month, day=due.day, hour=due.hour, minute=due.minute)
    scheduler.resume()
    return scheduler


def burst(tasks, lead):
    due = (datetime.now(timezone.utc) + timedelta(seconds=60 + lead)).replace(second=0, microsecond=0)
    kept = registered(tasks, due)
    if datetime.now(timezone.utc) > due:
        print(f"{'APScheduler':<22} {tasks:>9} too late to register")
        return
    time.sleep((due - datetime.now(timezone.utc)).total_seconds())
    seen, still = 0, 0
    while seen < tasks and still < 100:
        time.sleep(0.05)
        still = still + 1 if len(starts) == seen else 0
        seen = len(starts)
    first, last = ((at - due.timestamp()) * 1e3 for at in (min(starts), max(starts)))
    print(f"{'APScheduler':<22} {tasks:>9} {first:>10.1f} ms {last:>10.1f} ms {tasks - seen:>9}")
    kept.shutdown(wait=False)


def idle(tasks):
    before, began = resident(), time.time()
    kept = registered(tasks, datetime.now(timezone.utc) + timedelta(days=100))
    took = time.time() - began
    time.sleep(2)
    memory = (resident() - before) / tasks
    spent = time.process_time()
    time.sleep(61)
    share = (time.process_time() - spent) / 61 * 100
    print(f"{'APScheduler':<22} {tasks:>9} {took:>11.2f} s {memory:>11.0f} B {share:>7.3f} %")
    kept.shutdown(wait=False)


if sys.argv[1] == "burst":
    burst(int(sys.argv[2]), int(sys.argv[3]))
else:
    idle(int(sys.argv[2]))
