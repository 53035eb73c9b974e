"""huey on SQLite, at full durability: enqueue, and dequeue with a stored result, from some threads of one process."""

import sys
import threading
import time

import huey
from huey import SqliteHuey

JOBS = 1600
TEXT = "a message of some length, as applications send them, with a name and an address in it"

queue = SqliteHuey(filename=sys.argv[1], fsync=True, journal_mode="wal")


@queue.task()
def send(address, message):
    return address


def load():
    with open("/proc/loadavg") as file:
        return file.read().split(" ")[0]


def show(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.2f} ms"


def together(what, threads, call):
    times = [[] for _ in range(threads)]

    def one(mine):
        for _ in range(JOBS // threads):
            began = time.perf_counter()
            call()
            mine.append(time.perf_counter() - began)

    began = time.perf_counter()
    running = [threading.Thread(target=one, args=(mine,)) for mine in times]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    took = time.perf_counter() - began
    each = sorted(time for mine in times for time in mine)
    percentiles = [show(each[min(len(each) - 1, int(len(each) * part))]) for part in (0.5, 0.99, 1)]
    rate = len(each) / took
    print(f"{what:<44} {rate:>10.0f} {percentiles[0]:>9} {percentiles[1]:>9} {percentiles[2]:>9}   {load()}", flush=True)


def work():
    task = queue.dequeue()
    queue.execute(task)


title = f"huey {huey.__version__}, SQLite, fsync"
print(f"\n{title:<44} {'a second':>10} {'p50':>9} {'p99':>9} {'max':>9}   load", flush=True)
for threads in (1, 16):
    together(f"enqueue, {threads} threads", threads, lambda: send("somebody@example.org", {"subject": TEXT, "body": TEXT}))
    together(f"dequeue, run and store result, {threads} threads", threads, work)
