#!/usr/bin/env python3
"""Many kronds started at once on one state directory: one serves, the others end with 3, and nothing runs twice."""

import argparse
import concurrent.futures
import sys
import time

from world import World, binary, positive, wait_until


def race(krond, contenders):
    """One race. Returns the number of executions, and complaints."""
    complaints = []
    world = World(krond)
    processes = [world.start() for _ in range(contenders)]
    wait_until(lambda: sum(process.poll() is None for process in processes) == 1, 30)
    codes = [process.poll() for process in processes]
    if codes.count(None) != 1 or codes.count(3) != contenders - 1:
        complaints.append(f"of {contenders} kronds these ended: {codes}")
    time.sleep(1.5)
    if not wait_until(world.executions, 30):
        complaints.append("nothing was executed")
    for process in processes:
        world.end(process)
    executed = world.judge(complaints, "race")
    if not complaints:
        world.forget()
    return executed, complaints


def main():
    """Runs so many races."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("krond", type=binary, help="the binary")
    parser.add_argument("--races", type=positive, default=100)
    parser.add_argument("--contenders", type=positive, default=4)
    parser.add_argument("--side-by-side", type=positive, default=1, help="how many at a time")
    args = parser.parse_args()
    executions, failed = 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.side_by_side) as pool:
        races = [pool.submit(race, args.krond.resolve(), args.contenders) for _ in range(args.races)]
        for number, one in enumerate(races):
            executed, complaints = (0, [f"it was given up: {one.exception()}"]) if one.exception() else one.result()
            executions += executed
            failed += bool(complaints)
            for complaint in complaints:
                print(f"race {number}: {complaint}", flush=True)
    print(f"{args.races} races of {args.contenders} kronds, {executions} executions, {failed} with complaints")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
