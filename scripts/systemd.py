"""Compares what `krontab import` says of OnCalendar= with what systemd itself says.

    python3 scripts/systemd.py KRONTAB [--cases N] [--seed N]

Random calendars in zones whose clocks change, each asked of `systemd-analyze calendar` for its next times. The
imported line must fire at the same ones, and what systemd refuses must be refused.
"""

import argparse
import datetime
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Tokyo",
         "America/Santiago", "Africa/Cairo", "Asia/Kathmandu"]
DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
WORDS = ["minutely", "hourly", "daily", "weekly", "monthly", "quarterly", "semiannually", "yearly", "annually"]
# What is asked of systemd at once: enough for a few hours around a change of clocks, and for years of months.
ITERATIONS = 40
# The most periods that are asked of krontab.
PERIODS_MAX = 10080
# How many calendars one file has.
BATCH = 50


def part(rng, low, high):
    """One part of a date or of a time."""
    first = rng.randint(low, high)
    last = rng.randint(first, high)
    return rng.choice([
        "*", "*", f"{first:02}", str(first), f"{first},{last}", f"{first}..{last}",
        f"{first}/{rng.randint(1, max(1, high - low))}", f"{low}/{rng.choice([2, 3, 5])}",
    ])


def weekdays(rng):
    item = lambda: rng.choice([rng.choice(DAYS), "..".join(rng.sample(DAYS, 2)), rng.choice(["Monday", "friday"])])
    return ",".join(item() for _ in range(rng.randint(1, 2)))


def calendar(rng):
    """An expression of the kind that cron fields can say, and now and then one that systemd refuses."""
    if rng.random() < 0.1:
        text = rng.choice(WORDS)
    else:
        words = [weekdays(rng)] if rng.random() < 0.3 else []
        if rng.random() < 0.6:
            year = rng.choice(["*-", ""])
            words.append(f"{year}{part(rng, 1, 12)}-{part(rng, 1, 31)}")
        if rng.random() < 0.8 or not words:
            hour = rng.choice(["*", "0", "1", "2", "3", "23", part(rng, 0, 23)])
            words.append(f"{hour}:{part(rng, 0, 59)}" + rng.choice(["", ":00"]))
        text = " ".join(words)
    return text + (f" {rng.choice(ZONES)}" if rng.random() < 0.3 else "")


def systemd(text, zone, at):
    """The next times by systemd, None if it refuses, and none if it cannot find them: it gives up at times."""
    answer = subprocess.run(
        ["systemd-analyze", "calendar", f"--iterations={ITERATIONS}", f"--base-time={at:%Y-%m-%d %H:%M:%S} UTC", text],
        env=os.environ | {"TZ": zone, "LC_ALL": "C"}, capture_output=True, text=True)
    if answer.returncode != 0:
        return None if "Failed to parse" in answer.stderr else []
    lines = answer.stdout.splitlines()
    # Where the zone is UTC, there is no line that says so.
    times = [line for line in lines if "(in UTC)" in line] or \
            [line for line in lines if re.search(r"(Next elapse|Iter. #\d+): .* UTC$", line)]
    return [datetime.datetime.strptime(line.split(": ", 1)[1][4:], "%Y-%m-%d %H:%M:%S UTC") for line in times]


def kron(krontab, arguments, stdin=""):
    answer = subprocess.run([krontab, *arguments, "--format", "json"], input=stdin, capture_output=True, text=True)
    if answer.returncode > 1:
        sys.exit(f"krontab {' '.join(arguments)}: {answer.stderr}")
    return json.loads(answer.stdout)


def fires(krontab, entry, at):
    """The next times of an imported line."""
    wanted, count = [], ITERATIONS
    while True:
        name = entry["name"]
        asked = ["next", name, "--file", "-", "--count", str(count), "--at", f"{at:%Y-%m-%dT%H:%M:%SZ}"]
        periods = kron(krontab, asked, entry["krontab"] + "\n")["decisions"]
        wanted = [datetime.datetime.fromisoformat(period["chosenTime"].removesuffix("Z"))
                  for period in periods if not period["unschedulable"]]
        # A weekday beside a day of the month is a constraint: many periods have no time.
        if len(wanted) >= ITERATIONS or count == PERIODS_MAX:
            return wanted[:ITERATIONS]
        count = min(8 * count, PERIODS_MAX)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("krontab")
    options.add_argument("--cases", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    rng = random.Random(options.seed)
    version = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    same = refused = times = done = 0
    while done < options.cases:
        zone = rng.choice(ZONES)
        at = datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=rng.randrange(365 * 24), seconds=-1)
        texts = [calendar(rng) for _ in range(min(BATCH, options.cases - done))]
        done += len(texts)
        with tempfile.TemporaryDirectory() as directory:
            path = f"{directory}/x.timer"
            with open(path, "w") as file:
                file.write("[Timer]\n" + "".join(f"OnCalendar={text}\n" for text in texts))
            asked = ["import", path, "--from", "systemd", "--tz", zone, "--at", f"{at:%Y-%m-%dT%H:%M:%SZ}"]
            entries = kron(options.krontab, asked)["entries"]
        for text, entry in zip(texts, entries, strict=True):
            place = f"seed {options.seed}: `{text}` in {zone} from {at}"
            there = systemd(text, zone, at)
            if entry["krontab"] is None:
                # A date that never comes is no mistake to systemd.
                if there:
                    sys.exit(f"{place}: systemd fires at {there[0]}, and it was not imported: {entry['reason']}")
                refused += 1
                continue
            if there is None:
                sys.exit(f"{place}: systemd refuses it, and it was imported as {entry['krontab']}")
            firing = entry["firing"]
            if firing["onlyThere"] or firing["onlyHere"]:
                sys.exit(f"{place}: {entry['krontab']} is said to differ: {firing}")
            here = fires(options.krontab, entry, at)[:len(there)]
            # systemd 252 leaves days out after a step at the end of a year: `*-*-7/20` has no 7 January 2027.
            if re.search(r"-\S*/", text):
                same_year = lambda times: [time for time in times if time.year == at.year]
                here, there = same_year(here), same_year(there)
            # With a constraint, as far as krontab has looked.
            is_whole = len(here) == len(there) or "@only" in entry["krontab"]
            if here != there[:len(here)] or not is_whole:
                first = next((pair for pair in zip(there, here) if pair[0] != pair[1]), (len(there), len(here)))
                sys.exit(f"{place}: {entry['krontab']}: systemd and Kron differ: {first[0]} and {first[1]}")
            same += 1
            times += len(here)
    print(f"{done} calendars from seed {options.seed}, {version}: {same} fire at the same {times} times, {refused} refused")


main()
