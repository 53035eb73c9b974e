"""croniter and APScheduler on the questions of kron-bench: `peer|question|nanoseconds` for each that they answer as Kron does."""

import sys
import time
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger
from croniter import croniter

# The best of so many rounds, in processor time of the thread.
ROUNDS = 3


def by_croniter(expression, zone):
    if len(expression.split()) == 6:
        # It has seconds last.
        first, *rest = expression.split()
        expression = " ".join([*rest, first])
    asked = croniter(expression, datetime.now(zone))

    def ask(start):
        asked.set_current(start, force=True)
        return asked.get_next(datetime)

    return ask


def by_apscheduler(expression, zone):
    trigger = CronTrigger.from_crontab(expression, timezone=zone)
    return lambda start: trigger.get_next_fire_time(None, start)


def main():
    questions = [line.rstrip("\n").split("|") for line in sys.stdin]
    for peer, make in (("croniter", by_croniter), ("APScheduler", by_apscheduler)):
        for number, (expression, zone_name, pairs) in enumerate(questions):
            zone = ZoneInfo(zone_name)
            try:
                ask = make(expression, zone)
            except Exception:
                continue
            pairs = [tuple(map(int, pair.split(":"))) for pair in pairs.split()]
            starts = [datetime.fromtimestamp(start, timezone.utc).astimezone(zone) for start, _ in pairs]
            best = None
            for _ in range(ROUNDS):
                began = time.thread_time_ns()
                try:
                    answers = [ask(start) for start in starts]
                except Exception:
                    best = None
                    break
                took = time.thread_time_ns() - began
                if any(answer is None or int(answer.timestamp()) != right for answer, (_, right) in zip(answers, pairs)):
                    best = None
                    break
                best = min(best or took, took)
            if best:
                print(f"{peer}|{number}|{best / len(pairs)}", flush=True)


main()
