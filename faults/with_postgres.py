#!/usr/bin/env python3
"""Runs a command with a PostgreSQL of its own: KRON_TEST_POSTGRES says where it is.

    faults/with_postgres.py [--durable] COMMAND [ARGUMENT...]

Nothing of it outlives the command, so it does not wait for the disk, unless --durable says so.
"""

import os
import shutil
import subprocess
import sys
import tempfile

from cluster import Database


def main():
    """Starts the database, runs the command, and cleans up."""
    command = sys.argv[1:]
    durable = command[:1] == ["--durable"]
    base = tempfile.mkdtemp(prefix="kron-postgres-", dir=os.environ.get("KRON_BENCH_DIR", "/tmp"))
    database = Database(base, durable)
    try:
        place = f"postgres://kron@127.0.0.1:{database.port}"
        pid = (database.data / "postmaster.pid").read_text().split()[0]
        world = {**os.environ, "KRON_TEST_POSTGRES": place, "KRON_TEST_POSTGRES_PID": pid}
        status = subprocess.run(command[durable:], env=world).returncode
    finally:
        database.stop("immediate")
        shutil.rmtree(base, ignore_errors=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
