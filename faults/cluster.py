"""A PostgreSQL, and kron-servers that share it, each behind a link of its own that can be cut.

Nothing here is product code. Triggers in the database write down who fired what, under which epoch, and the oracle
reads that, the record of occurrences and the jobs, and knows nothing else.
"""

import glob
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

# Fires every second: what is missing shows at once.
CRONS = {"each": "* * * * * *", "other": "* * * * * *", "third": "* * * * * *"}

COMMIT = b"COMMIT\x00"

# What the oracle wants to know, written by the database itself.
WATCH = """
CREATE SCHEMA watch;
CREATE TABLE watch.fires (cron text, scheduled bigint, epoch bigint, transaction xid, at timestamptz);
CREATE TABLE watch.reigns (epoch bigint, holder text, at timestamptz);
CREATE FUNCTION watch.fire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.kind = 'one' AND NEW.body::json->>'job_id' IS NOT NULL THEN
    INSERT INTO watch.fires VALUES (NEW.cron, NEW.scheduled, NEW.epoch, pg_current_xact_id()::xid, clock_timestamp());
  END IF; RETURN NULL; END $$;
CREATE FUNCTION watch.reign() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO watch.reigns VALUES (NEW.epoch, NEW.holder, clock_timestamp()); RETURN NULL; END $$;
CREATE TRIGGER fire AFTER INSERT ON occurrences FOR EACH ROW EXECUTE FUNCTION watch.fire();
CREATE TRIGGER reign AFTER UPDATE OF epoch ON leader FOR EACH ROW WHEN (NEW.epoch <> OLD.epoch)
  EXECUTE FUNCTION watch.reign();
"""


def tool(name):
    """Where a program of PostgreSQL is: the newest that is installed."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return found[-1] if found else name


# Where ports are looked for. Those that run side by side have ranges of their own, below the ports that the host gives
# to connections: one that is free now is still free when its server starts.
PORTS = iter(())


def free_port():
    """A port that nobody listens on just now."""
    for port in PORTS:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(is_so, seconds, every=0.1):
    """Waits for something to be so; says whether it is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(every)
    return is_so()


class Database:
    """A PostgreSQL of its own, in a directory of its own. It does not run as root."""

    def __init__(self, base, durable=False):
        self.base = pathlib.Path(base)
        self.port = free_port()
        self.data = self.base / "data"
        self.log = self.base / "postgres.log"
        self.wrapper = []
        if os.geteuid() == 0:
            shutil.chown(self.base, "postgres")
            self.wrapper = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"]
        self.run("initdb", "-A", "trust", "-U", "kron", "-E", "UTF8", "--no-sync", "-D", self.data)
        with open(self.data / "postgresql.conf", "a") as conf:
            conf.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{self.base}'\n"
                "track_commit_timestamp = on\nmax_connections = 200\nlog_min_messages = warning\n"
                f"fsync = {'on' if durable else 'off'}\n"
            )
        self.start()
        self.sql("CREATE DATABASE kron", database="postgres")

    def run(self, name, *arguments):
        """Runs a program of PostgreSQL to its end."""
        command = [*self.wrapper, tool(name), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=self.base)
        if done.returncode:
            raise RuntimeError(f"{name} failed: {done.stdout}{done.stderr}")

    def start(self):
        """Starts it and waits until it answers."""
        command = [*self.wrapper, tool("pg_ctl"), "-D", str(self.data), "-l", str(self.log), "-w", "-t", "60", "start"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120, cwd=self.base)

    def stop(self, mode="fast"):
        """Stops it: `fast`, or `immediate` as in a crash."""
        self.run("pg_ctl", "-D", self.data, "-w", "-t", "60", "-m", mode, "stop")

    def sql(self, text, database="kron"):
        """Rows of a query, as lists of text."""
        command = [tool("psql"), "-AtqX", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port)]
        command += ["-U", "kron", "-d", database, "-c", text]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return [line.split("\t") for line in done.stdout.splitlines()]


class Link:
    """The way from a node to the database: bytes both ways, until it is told to lose them."""

    def __init__(self, port):
        self.target = port
        self.mode = "whole"
        self.commits_to_cut = 0
        self.commits_cut = 0
        self.pairs = set()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        """Takes connections for as long as there is a listener."""
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.mode == "cut":
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self.lock:
                self.pairs.add((client, server))
            threading.Thread(target=self.carry, args=(client, server, "there"), daemon=True).start()
            threading.Thread(target=self.carry, args=(server, client, "back"), daemon=True).start()

    def carry(self, source, sink, way):
        """Carries bytes one way, or loses them."""
        try:
            while data := source.recv(65536):
                if self.mode == "half-open" or self.mode == f"deaf-{way}":
                    continue
                commits = way == "there" and COMMIT in data
                sink.sendall(data)
                if commits and self.takes_commit():
                    # It is on its way to the database, and the answer never comes.
                    source.shutdown(socket.SHUT_RDWR)
                    time.sleep(0.2)
                    break
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def takes_commit(self):
        """Whether this commit is one of those that are to be cut off."""
        with self.lock:
            if self.commits_to_cut <= 0:
                return False
            self.commits_to_cut -= 1
            self.commits_cut += 1
            return True

    def set(self, mode):
        """`whole`, `cut`, `half-open`, `deaf-there` or `deaf-back`. A whole link begins with no connections."""
        self.mode = mode
        if mode in ("cut", "whole"):
            with self.lock:
                pairs, self.pairs = self.pairs, set()
            for pair in pairs:
                for end in pair:
                    try:
                        end.shutdown(socket.SHUT_RDWR)
                        end.close()
                    except OSError:
                        pass


class Node:
    """A kron-server behind its link."""

    def __init__(self, program, base, number, database, options=(), hears=False):
        self.program, self.base, self.number, self.options = program, base, number, options
        # Whether it listens to what the others call, and does not only look.
        self.hears = hears
        self.link = Link(database.port)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        self.start()

    def start(self):
        """Starts the server. It says where it listens once it has its tables."""
        place = f"postgres://kron@127.0.0.1:{self.link.port}/kron"
        command = [self.program, "--listen", f"127.0.0.1:{self.port}", "--database", place, *self.options]
        command += ["--database-direct", place] if self.hears else []
        log = open(self.base / f"node-{self.number}.log", "ab")
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, stdin=subprocess.DEVNULL)

    def signal(self, number):
        """Sends a signal."""
        self.process.send_signal(number)

    def kill(self):
        """Ends it at once."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def ask(self, method, path, body=None, timeout=15):
        """Status and JSON of an answer; status 0 if there is none."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            try:
                return error.code, json.load(error)
            except (OSError, ValueError, http.client.HTTPException):
                return error.code, {}
        # A server that is killed in the middle of its answer has not answered.
        except (OSError, ValueError, http.client.HTTPException):
            return 0, {}

    def is_up(self):
        """Whether it answers."""
        return self.ask("GET", "/ojs/v1/health", timeout=3)[0] == 200


class Cluster:
    """Three nodes, their database, and what the oracle says of them."""

    def __init__(self, program, size=3, options=()):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="kron-cluster-", dir="/tmp"))
        self.database, self.nodes = Database(self.base), []
        try:
            self.begin(program, size, options)
        except BaseException:
            # Nobody else knows what has been started.
            self.end(keep=True)
            raise

    def begin(self, program, size, options):
        """Starts the nodes, and registers what they fire."""
        for number in range(size):
            self.nodes.append(Node(program, self.base, number, self.database, options, number % 2 == 0))
        if not wait_until(lambda: all(node.is_up() for node in self.nodes), 60):
            raise RuntimeError(f"not all nodes are up; their logs are in {self.base}")
        self.database.sql(WATCH)
        for name, cron in CRONS.items():
            body = {"name": name, "cron": cron, "type": "test.fire", "overlap_policy": "allow"}
            status, answer = self.nodes[0].ask("POST", "/ojs/v1/cron", body)
            if status != 201:
                raise RuntimeError(f"could not register {name}: {status} {answer}")

    def leader(self):
        """The node that leads, if one does."""
        try:
            rows = self.database.sql(
                "SELECT address FROM leader JOIN nodes ON nodes.id = holder WHERE expires_at > clock_timestamp()"
            )
        except RuntimeError:
            return None
        ports = {node.port: node for node in self.nodes}
        return ports.get(int(rows[0][0].rsplit(":", 1)[1])) if rows else None

    def fires(self):
        """How many fires there are."""
        return int(self.database.sql("SELECT count(*) FROM watch.fires")[0][0])

    def epoch(self):
        """The current epoch."""
        return int(self.database.sql("SELECT epoch FROM leader")[0][0])

    def end(self, keep=False):
        """Ends everything."""
        for node in self.nodes:
            try:
                node.signal(signal.SIGCONT)
            except OSError:
                pass
            node.kill()
            node.link.listener.close()
        try:
            self.database.stop("immediate")
        except (RuntimeError, subprocess.TimeoutExpired):
            pass
        if not keep:
            shutil.rmtree(self.base, ignore_errors=True)

    def judge(self, pushed=()):
        """What is wrong, in words; nothing is, if all is well."""
        return judge(self.database, pushed)


def judge(database, pushed=()):
    """The oracle. It reads tables and believes nobody."""
    wrong = []
    rows = database.sql(
        "SELECT cron, body::json->'cron'->>'scheduled', count(*) FROM jobs WHERE cron IS NOT NULL "
        "GROUP BY 1, 2 HAVING count(*) > 1"
    )
    wrong += [f"fired twice: {cron} of {scheduled}, {count} jobs" for cron, scheduled, count in rows]
    rows = database.sql("SELECT cron, scheduled, count(*) FROM watch.fires GROUP BY 1, 2 HAVING count(*) > 1")
    wrong += [f"recorded twice: {cron} of {scheduled}" for cron, scheduled, _ in rows]
    rows = database.sql(
        "SELECT o.cron, o.scheduled FROM occurrences o LEFT JOIN jobs j ON j.id = o.body::json->>'job_id' "
        "WHERE o.body::json->>'job_id' IS NOT NULL AND j.id IS NULL"
    )
    wrong += [f"an occurrence without its job: {cron} of {scheduled}" for cron, scheduled in rows]
    wrong += unaccounted(database)
    rows = database.sql(
        "SELECT epoch, before FROM (SELECT epoch, lag(epoch) OVER (ORDER BY pg_xact_commit_timestamp(transaction), "
        "epoch) AS before FROM watch.fires) AS fires WHERE epoch < before"
    )
    wrong += [f"a fire of epoch {epoch} was committed after one of epoch {before}" for epoch, before in rows]
    rows = database.sql("SELECT epoch FROM watch.reigns GROUP BY epoch HAVING count(DISTINCT holder) > 1")
    wrong += [f"epoch {epoch} had two holders" for (epoch,) in rows]
    if pushed:
        kept = {row[0] for row in database.sql("SELECT id FROM jobs WHERE cron IS NULL")}
        wrong += [f"a job that was answered with 201 is gone: {job}" for job in sorted(set(pushed) - kept)]
    return wrong


def unaccounted(database):
    """Every second has its outcome, and after those that nobody saw one was caught up with."""
    wrong = []
    for cron in CRONS:
        rows = database.sql(
            "SELECT scheduled, last, kind, body::json->>'outcome', body::json->>'count' FROM occurrences "
            f"WHERE cron = '{cron}' ORDER BY scheduled, kind"
        )
        expected = None
        missed = False
        for scheduled, last, kind, outcome, count in rows:
            first, last = int(scheduled), int(last)
            if expected is not None and first != expected:
                wrong.append(f"{cron}: expected {expected} next in the record, but found {first}")
            if kind == "range" and int(count) != last - first + 1:
                wrong.append(f"{cron}: {count} outcomes for the seconds from {first} to {last}")
            if missed and outcome == "missed":
                wrong.append(f"{cron}: after what was missed before {first} nothing was caught up with")
            missed = outcome == "missed"
            expected = last + 1
        if not rows:
            wrong.append(f"{cron}: nothing in the record")
    return wrong


def failovers(database):
    """From the last fire of each epoch to the first of the next: when it began, and how many seconds it took."""
    rows = database.sql(
        "SELECT extract(epoch FROM last), extract(epoch FROM next - last) FROM (SELECT max(t) AS last, "
        "lead(min(t)) OVER (ORDER BY epoch) AS next FROM (SELECT epoch, pg_xact_commit_timestamp(transaction) AS t "
        "FROM watch.fires) AS fires GROUP BY epoch) AS reigns WHERE next IS NOT NULL ORDER BY 1"
    )
    return [(float(began), float(took)) for began, took in rows]
