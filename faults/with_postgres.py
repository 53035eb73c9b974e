#!/usr/bin/env python3
"""Runs a command with a PostgreSQL of its own: KRON_TEST_POSTGRES says where it is.

    faults/with_postgres.py COMMAND [ARGUMENT...]
"""

import os
import shutil
import subprocess
import sys
import tempfile

from cluster import Database


def main():
    """Starts the database, runs the command, and cleans up."""
    base = tempfile.mkdtemp(prefix="kron-postgres-", dir="/tmp")
    database = Database(base)
    try:
        place = f"postgres://kron@127.0.0.1:{database.port}"
        status = subprocess.run(sys.argv[1:], env={**os.environ, "KRON_TEST_POSTGRES": place}).returncode
    finally:
        database.stop("immediate")
        shutil.rmtree(base, ignore_errors=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
