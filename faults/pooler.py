#!/usr/bin/env python3
"""kron-servers behind pgbouncer, which hands every transaction to another connection.

Two servers share two connections. Jobs are pushed, fetched and acknowledged at both, cron jobs fire, and nothing may
be refused: whatever needs a session would be.
"""

import argparse
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from cluster import CRONS, WATCH, Database, Node, free_port, judge, wait_until


class Pooler:
    """A pgbouncer in transaction mode, with fewer connections than those that use it."""

    def __init__(self, database, base):
        self.port = free_port()
        (base / "users").write_text('"kron" ""\n')
        config = base / "pgbouncer.ini"
        config.write_text(
            f"[databases]\nkron = host=127.0.0.1 port={database.port} user=kron\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nauth_type = trust\nauth_file = {base}/users\n"
            "pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 200\nunix_socket_dir =\n"
            f"logfile = {base}/pgbouncer.log\n"
        )
        for path in (base / "users", config):
            if database.wrapper:
                shutil.chown(path, "postgres")
        program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        self.process = subprocess.Popen([*database.wrapper, program, "-q", str(config)], cwd=base)
        if not wait_until(self.listens, 30):
            raise RuntimeError("pgbouncer does not listen")

    def listens(self):
        """Whether it can be reached."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def work(node, number, done, complaints):
    """Pushes jobs at a node, fetches and acknowledges them, and says what was refused."""
    for _ in range(number):
        for path, body in (
            ("/ojs/v1/jobs", {"type": "test.job", "args": []}),
            ("/ojs/v1/workers/fetch", {"queues": ["default"], "worker_id": f"w{threading.get_ident()}"}),
        ):
            status, answer = node.ask("POST", path, body)
            if status not in (200, 201):
                complaints.append(f"{path}: {status} {answer}")
        for job in answer.get("jobs", []):
            status, answer = node.ask("POST", "/ojs/v1/workers/ack", {"job_id": job["id"]})
            if status == 200:
                done.append(job["id"])
            else:
                complaints.append(f"ack: {status} {answer}")


def main():
    """Starts everything, works, judges and cleans up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", help="the kron-server to run")
    parser.add_argument("--jobs", type=int, default=25, help="how many jobs each of eight workers pushes")
    arguments = parser.parse_args()
    base = pathlib.Path(tempfile.mkdtemp(prefix="kron-pooler-", dir="/tmp"))
    database = Database(base)
    pooler = Pooler(database, base)
    nodes, complaints, done = [], [], []
    try:
        nodes += [Node(arguments.server, base, number, pooler, ("--database-pooler",)) for number in range(2)]
        if not wait_until(lambda: all(node.is_up() for node in nodes), 60):
            raise RuntimeError(f"the nodes are not up: {(base / 'node-0.log').read_text()}")
        database.sql(WATCH)
        for name, cron in CRONS.items():
            body = {"name": name, "cron": cron, "type": "test.fire", "overlap_policy": "allow"}
            status, answer = nodes[1].ask("POST", "/ojs/v1/cron", body)
            if status != 201:
                complaints.append(f"could not register {name}: {status} {answer}")
        workers = [
            threading.Thread(target=work, args=(nodes[n % 2], arguments.jobs, done, complaints)) for n in range(8)
        ]
        began = time.monotonic()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        took = time.monotonic() - began
        fires = "SELECT count(*) FROM watch.fires"
        if not wait_until(lambda: int(database.sql(fires)[0][0]) >= 9, 60):
            complaints.append("cron jobs do not fire")
        complaints += judge(database)
        if len(done) != len(set(done)):
            complaints.append("a job was handed out twice")
    except RuntimeError as error:
        complaints.append(str(error))
    for node in nodes:
        node.kill()
    pooler.process.terminate()
    pooler.process.wait()
    database.stop("immediate")
    for complaint in complaints[:20]:
        print(complaint, file=sys.stderr)
    if complaints:
        print(f"what is left is in {base}", file=sys.stderr)
        sys.exit(1)
    shutil.rmtree(base, ignore_errors=True)
    print(f"behind a pooler with 2 connections: {len(done)} jobs in {took:.1f} s at 2 servers, and nothing was refused")


if __name__ == "__main__":
    main()
