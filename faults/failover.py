#!/usr/bin/env python3
"""Three kron-servers on one PostgreSQL, of which the leader is hurt again and again.

The leader is killed, ended, stopped and let go on, cut off both ways or one way, left with a connection that nobody
answers, or has its commits cut off after they were sent; the database is restarted, stopped as in a crash, or ends
all connections. Two of the servers hear each other, the third looks. Meanwhile jobs are pushed, fetched and acknowledged at
all of them. The oracle then judges: no occurrence twice, every second accounted for with one catch-up after what nobody
saw, epochs in order, no job lost that was answered for, every job completed once and none handed out after its
acknowledgement was answered, nobody without a leader
for more than 30 s (3 s where the leader was asked to end), and a webhook that was told of every fire, in order, and
again only where a fault came in between.
"""

import argparse
import collections
import concurrent.futures
import http.server
import json
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time
import uuid

import cluster as cluster_module
from cluster import Cluster, failovers, judge, wait_until
from world import binary

# What makes another node lead, and the longest that it may take.
HURTS = {"kill": 30, "term": 3, "stop": 30, "cut": 30, "deaf-back": 30, "deaf-there": 30, "half-open": 30}

# What may or may not.
SHAKES = ("commits", "terminate", "restart", "crash", "blink")

# How long a leader that only blinks is stopped: up to the end of its lease, or just not.
BLINK_MAX = 14

# So many ports has each of those that run side by side, from this one on.
SHARD_PORTS, FIRST_PORT = 40, 21000

# How long nobody may lead while the database itself is away for a moment as well.
SHAKEN_MAX = 60


# Where the jobs are that are pushed and worked on.
QUEUE = "work"

# For how long a worker may have a job, in milliseconds. What was handed out and never arrived comes back after that.
VISIBILITY = 20_000

# How long it may take until all jobs are done once nothing is hurt any more.
DRAIN_MAX = 120

# What a node may answer while it is hurt. Whether something was done is then unknown.
HURT = (0, 503)


class Client(threading.Thread):
    """Asks any node again and again, until it is told to end. What goes wrong is kept."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.ending, self.wrong = cluster, threading.Event(), []

    def run(self):
        try:
            while not self.ending.wait(0.05):
                self.work(random.choice(self.cluster.nodes))
        except Exception as error:  # pylint: disable=broad-except
            self.wrong.append(f"a client ended by itself: {error!r}")

    def end(self):
        """Lets it end, and says what went wrong."""
        self.ending.set()
        self.join(timeout=60)
        return self.wrong + (["a client did not end"] if self.is_alive() else [])


class Pusher(Client):
    """Pushes jobs, and remembers which were answered for."""

    def __init__(self, cluster):
        super().__init__(cluster)
        self.kept, self.tried = [], 0

    def work(self, node):
        """Pushes one."""
        job = str(uuid.UUID(int=(int(time.time() * 1000) << 80) | 7 << 76 | 2 << 62 | random.getrandbits(62)))
        self.tried += 1
        options = {"queue": QUEUE, "retry": {"max_attempts": 100}}
        status, answer = node.ask("POST", "/ojs/v1/jobs", {"id": job, "type": "test.push", "args": [], "options": options})
        if status == 201:
            self.kept.append(job)
        elif status not in HURT:
            self.wrong.append(f"a job was refused: {status} {answer}")


class Books:
    """What workers were handed, and which acknowledgements were answered with 200."""

    def __init__(self):
        self.lock, self.handed, self.acked = threading.Lock(), [], []

    def misdone(self):
        """What is wrong about it. The fence of a job grows whenever it is handed out."""
        done, wrong = {}, []
        for job, fence in self.acked:
            if job in done:
                wrong.append(f"a job was acknowledged twice: {job}")
            done[job] = fence
        handed = collections.Counter(self.handed)
        wrong += [f"a job was handed to two at once: {named}" for named, times in handed.items() if times > 1]
        again = [job for job, fence in self.handed if job in done and fence > done[job]]
        return wrong + [f"a job was handed out after its acknowledgement was answered: {job}" for job in again]


class Worker(Client):
    """Fetches jobs and acknowledges them."""

    def __init__(self, cluster, number, books):
        super().__init__(cluster)
        self.id, self.books = f"worker-{number}", books

    def work(self, node):
        """Fetches some, and acknowledges each at any node."""
        wanted = {"queues": [QUEUE], "count": 10, "worker_id": self.id, "visibility_timeout_ms": VISIBILITY}
        status, answer = node.ask("POST", "/ojs/v1/workers/fetch", wanted, timeout=8)
        if status not in (200, *HURT):
            self.wrong.append(f"a fetch was refused: {status} {answer}")
        for job in answer.get("jobs", []):
            named = (job["id"], job["fence"])
            with self.books.lock:
                self.books.handed.append(named)
            node = random.choice(self.cluster.nodes)
            body = {"job_id": named[0], "fence": named[1], "worker_id": self.id}
            status, answer = node.ask("POST", "/ojs/v1/workers/ack", body, timeout=8)
            if status == 200:
                with self.books.lock:
                    self.books.acked.append(named)
            elif status not in (409, *HURT):
                self.wrong.append(f"an acknowledgement was refused: {status} {answer}")


def undone(cluster):
    """Waits until every job is done, and says which are not, or were more than once."""
    left = f"SELECT id, state FROM jobs WHERE queue = '{QUEUE}' AND state <> 'completed'"
    wait_until(lambda: not cluster.database.sql(left), DRAIN_MAX, every=1)
    wrong = [f"a job was not done: {job} is {state}" for job, state in cluster.database.sql(left)]
    told = (
        f"SELECT jobs.id, count(events.subject) FROM jobs LEFT JOIN events ON subject = jobs.id AND events.type = 'job.completed' "
        f"WHERE jobs.queue = '{QUEUE}' GROUP BY jobs.id HAVING count(events.subject) <> 1"
    )
    return wrong + [f"a job was completed {count} times: {job}" for job, count in cluster.database.sql(told)]


class Receiver(http.server.ThreadingHTTPServer):
    """Is told of events by a webhook, and remembers in which order."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Hook)
        self.told, self.lock, self.since = [], threading.Lock(), "0"
        self.address = f"127.0.0.1:{self.server_address[1]}"
        # What allows a server to call it.
        self.settings = pathlib.Path(tempfile.mkstemp(prefix="kron-hook-", suffix=".toml")[1])
        self.settings.write_text(f'[webhooks]\nhttp = true\nallow = ["{self.address}"]\n')
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def subscribe(self, cluster):
        """Lets a node tell it of every fire from now on."""
        body = {"url": f"http://{self.address}/hook", "types": ["cron.triggered"]}
        status, answer = cluster.nodes[0].ask("POST", "/kron/v1/webhooks", body)
        if status != 201:
            raise RuntimeError(f"could not make a webhook: {status} {answer}")
        self.since = cluster.database.sql("SELECT coalesce(max(seq), 0) FROM events")[0][0]

    def end(self):
        """Takes no more."""
        self.shutdown()
        self.server_close()
        self.settings.unlink()


class Hook(http.server.BaseHTTPRequestHandler):
    """One request of a webhook."""

    def do_POST(self):  # the name is Python's
        """Remembers which event it is about."""
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.told.append(event["id"])
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Says nothing."""


def misheard(events, told, faults):
    """What is wrong about what a webhook was told, of events in their order and after so many faults."""
    place = {event: at for at, event in enumerate(events)}
    first = [place[event] for event in dict.fromkeys(told) if event in place]
    wrong = [f"a webhook was never told of {len(events) - len(first)} fires"] if len(first) < len(events) else []
    if first != sorted(first):
        wrong.append("a webhook was told of fires in another order")
    often = max(collections.Counter(told).values(), default=0)
    if often > 1 + faults:
        wrong.append(f"a webhook was told of one fire {often} times, after {faults} faults")
    return wrong


def hear_out(cluster, receiver, faults):
    """Waits until the webhook has been told of everything up to now. Says what is wrong, and how often it was told again."""
    sql = f"SELECT id FROM events WHERE type = 'cron.triggered' AND seq > {receiver.since} ORDER BY seq"
    events = [event for (event,) in cluster.database.sql(sql)]
    if not events:
        return ["nothing fired that a webhook could have been told of"], 0
    # It is told one after the other, and may be behind. As long as there is more, it is not lost.
    while not set(events) <= set(receiver.told):
        before = len(receiver.told)
        if not wait_until(lambda: len(receiver.told) > before, 60):
            break
    with receiver.lock:
        told = list(receiver.told)
    wrong = misheard(events, told, faults)
    if not misheard(events, [event for event in told if event != events[0]], faults) or not misheard(events, told[::-1], faults):
        wrong.append("the oracle does not see what a webhook was not told, or in another order")
    return wrong, len(told) - len(set(told))


def hurt(cluster, kind, pause, stops):
    """Hurts the leader, waits until another leads and fires, and heals it. Says whether it came to that."""
    node = cluster.leader()
    if node is None:
        return False
    began = time.monotonic()
    epoch, node_is_gone = cluster.epoch(), False
    if kind == "kill":
        node.kill()
        node_is_gone = True
    elif kind == "term":
        node.signal(signal.SIGTERM)
        node_is_gone = True
    elif kind == "stop":
        node.signal(signal.SIGSTOP)
    else:
        node.link.set(kind)

    def another_fires():
        return int(cluster.database.sql(f"SELECT count(*) FROM watch.fires WHERE epoch > {epoch}")[0][0]) > 0

    came = wait_until(another_fires, 90)
    if kind == "stop":
        time.sleep(max(0, began + random.uniform(BLINK_MAX, stops) - time.monotonic()))
    else:
        time.sleep(random.uniform(0, pause))
    if node_is_gone:
        node.process.wait(timeout=30)
        node.start()
    elif kind == "stop":
        node.signal(signal.SIGCONT)
    else:
        node.link.set("whole")
    if not wait_until(node.is_up, 60):
        raise RuntimeError(f"the node did not come back after {kind}; its log is in {cluster.base}")
    return came


def shake(cluster, kind):
    """Something that need not cost the leader its lease."""
    if kind == "commits":
        for node in cluster.nodes:
            node.link.commits_to_cut += 10
        wait_until(lambda: all(node.link.commits_to_cut <= 0 for node in cluster.nodes), 30)
        for node in cluster.nodes:
            node.link.commits_to_cut = 0
    elif kind == "blink":
        node = cluster.leader()
        if node is not None:
            node.signal(signal.SIGSTOP)
            time.sleep(random.uniform(1, BLINK_MAX))
            node.signal(signal.SIGCONT)
    elif kind == "terminate":
        cluster.database.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'kron-server%'"
        )
    else:
        cluster.database.stop("fast" if kind == "restart" else "immediate")
        time.sleep(random.uniform(0, 2))
        cluster.database.start()
    before = cluster.fires()
    if not wait_until(lambda: cluster.fires() > before + 3, 90):
        raise RuntimeError(f"nothing fires any more after {kind}; logs are in {cluster.base}")


def plants(cluster, books):
    """Faults that are planted in what the oracle reads. Each must be found."""
    if not books.acked:
        return ["no job was acknowledged, so nothing tells whether the oracle sees one that is handed out again"]
    planted = {
        "fired twice": "INSERT INTO jobs (SELECT 'planted', state, queue, type, priority, seq, due_at, worker, cron, "
        "serial, blocked, dead_at, ended_at, error_type, body FROM jobs WHERE cron IS NOT NULL LIMIT 1)",
        "recorded twice": "INSERT INTO watch.fires (SELECT * FROM watch.fires LIMIT 1)",
        "was committed after": "INSERT INTO watch.fires VALUES ('planted', 1, 0, pg_current_xact_id()::xid, now())",
        "next in the record": "DELETE FROM occurrences WHERE (cron, scheduled) IN (SELECT cron, scheduled FROM "
        "occurrences WHERE cron = 'each' ORDER BY scheduled OFFSET 2 LIMIT 1)",
        "without its job": "DELETE FROM jobs WHERE id = (SELECT id FROM jobs WHERE cron = 'third' LIMIT 1)",
    }
    unseen = []
    for words, sql in planted.items():
        cluster.database.sql(sql)
        if not any(words in complaint for complaint in judge(cluster.database)):
            unseen.append(f"the oracle does not see what was planted: {words}")
    job, fence = books.acked[0]
    books.handed.append((job, fence + 1))
    if not any("was handed out after" in complaint for complaint in books.misdone()):
        unseen.append("the oracle does not see a job that is handed out after its acknowledgement")
    books.handed.append((job, fence))
    if not any("was handed to two" in complaint for complaint in books.misdone()):
        unseen.append("the oracle does not see a job that is handed to two at once")
    cluster.database.sql(f"DELETE FROM events WHERE subject = '{job}' AND type = 'job.completed'")
    if not any("was completed 0 times" in complaint for complaint in undone(cluster)):
        unseen.append("the oracle does not see a job that was not completed")
    return unseen


def run(program, number, count, pause, stops, seed):
    """One cluster, hurt so many times. Returns failovers by kind, counts and complaints."""
    random.seed(seed + number)
    first = FIRST_PORT + number * SHARD_PORTS
    cluster_module.PORTS = iter(range(first, first + SHARD_PORTS))
    receiver, cluster = Receiver(), None
    complaints, took, counts, shaken = [], [], {}, collections.Counter()
    try:
        cluster = Cluster(program, options=("--config", str(receiver.settings)))
        receiver.subscribe(cluster)
        pusher, books = Pusher(cluster), Books()
        workers = [Worker(cluster, number, books) for number in range(3)]
        for client in (pusher, *workers):
            client.start()
        kinds = []
        faults = []
        while sum(1 for _, kind in faults if kind in HURTS) < count:
            if not kinds:
                kinds = random.sample(list(HURTS), len(HURTS))
            if random.random() < 0.4 or not shaken:
                for kind in SHAKES if not shaken else [random.choice(SHAKES)]:
                    faults.append((time.time(), kind))
                    shake(cluster, kind)
                    shaken[kind] += 1
            wait_until(lambda: cluster.leader() is not None, 60)
            kind = kinds.pop(0)
            faults.append((time.time(), kind))
            if not hurt(cluster, kind, pause, stops):
                complaints.append(f"{kind}: no other node fired within 90 s")
            print(f"cluster {number}: {kind}", flush=True)
        time.sleep(3)
        complaints += pusher.end()
        complaints += undone(cluster)
        for worker in workers:
            complaints += worker.end()
        complaints += books.misdone()
        complaints += cluster.judge(pusher.kept)
        misheard_of, told_again = hear_out(cluster, receiver, len(faults))
        complaints += misheard_of
        for began, seconds in failovers(cluster.database):
            # A reign ends with what came last before the next began.
            causes = [kind for at, kind in faults if at <= began + seconds]
            kind = causes[-1] if causes else "start"
            took.append((kind, seconds))
            limit = HURTS.get(kind, SHAKEN_MAX)
            if seconds > limit + 1:  # what fires every second is up to a second late
                complaints.append(f"{kind}: nobody fired for {seconds:.1f} s, and {limit} s are allowed")
        counts = {
            "fires": cluster.fires(),
            "pushed": len(pusher.kept),
            "tried": pusher.tried,
            "handed out": len(books.handed),
            "acknowledged": len(books.acked),
            "commits cut": sum(node.link.commits_cut for node in cluster.nodes),
            **{f"{kind} of the database": n for kind, n in shaken.items() if kind not in ("commits", "blink")},
            "short stops": shaken["blink"],
            "told a webhook": len(set(receiver.told)),
            "told again": told_again,
        }
        complaints += plants(cluster, books)
    except Exception as error:  # pylint: disable=broad-except
        # Whatever it is, no server is left running, and the other clusters are judged all the same.
        complaints.append(f"it could not go on: {error!r}")
    finally:
        if cluster is not None:
            cluster.end(keep=bool(complaints))
        receiver.end()
    if complaints and cluster is not None:
        complaints.append(f"  what is left is in {cluster.base}")
    return took, counts, complaints


def main():
    """Runs clusters side by side and sums up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", type=binary, help="the kron-server to run")
    parser.add_argument("--failovers", type=int, default=7, help="how many in all")
    parser.add_argument("--shards", type=int, default=1, help="how many clusters at once, each with a database")
    parser.add_argument("--pause", type=float, default=5, help="how long a hurt lasts at most after another leads, in s")
    parser.add_argument("--stops", type=float, default=20, help="how long a leader is stopped at most, in s")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16), help="of the order of things")
    arguments = parser.parse_args()
    if arguments.failovers < 1 or arguments.shards < 1:
        parser.error("--failovers and --shards take a number from 1 on")
    if arguments.pause < 0 or arguments.stops < 1:
        parser.error("--pause takes seconds from 0 on, --stops from 1 on")
    print(f"seed {arguments.seed}", flush=True)
    began, all_took, counts, complaints = time.monotonic(), [], collections.Counter(), []
    each = -(-arguments.failovers // arguments.shards)
    # Processes, so that none of them waits for another's links.
    with concurrent.futures.ProcessPoolExecutor(arguments.shards) as pool:
        runs = [
            pool.submit(run, arguments.server, number, each, arguments.pause, arguments.stops, arguments.seed)
            for number in range(arguments.shards)
        ]
        for done in runs:
            took, counted, wrong = done.result()
            all_took += took
            counts.update(counted)
            complaints += wrong
    by_kind = collections.defaultdict(list)
    for kind, seconds in all_took:
        by_kind[kind].append(seconds)
    for kind, times in sorted(by_kind.items()):
        times.sort()
        middle, last = times[len(times) // 2], times[-1]
        print(f"{kind:>10}: {len(times):4} failovers, median {middle:5.1f} s, longest {last:5.1f} s")
    histogram = collections.Counter(int(seconds // 3) * 3 for _, seconds in all_took)
    for low, number in sorted(histogram.items()):
        print(f"{low:>6} to {low + 3:2} s: {number:4} {'#' * min(number, 60)}")
    print(", ".join(f"{n} {what}" for what, n in counts.items()), f"in {time.monotonic() - began:.0f} s")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    if complaints:
        sys.exit(1)
    print(f"{len(all_took)} failovers: nothing fired twice, nothing lost, epochs in order")


if __name__ == "__main__":
    main()
