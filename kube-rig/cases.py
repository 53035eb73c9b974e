#!/usr/bin/env python3
"""kron-operator against a real API server: what it promises, and what it does when things break.

    cases.py KUBE_RIG OPERATOR KRONCTL [CASE...]

KUBE_RIG is the program built from this directory, or a directory with etcd, kube-apiserver, kube-controller-manager and kubectl. After every case the
history of etcd and the audit log are asked: no period of a KronJob may have had two Jobs.
"""

import argparse
import calendar
import collections
import concurrent.futures
import copy
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

import yaml

from rig import ACCOUNTS, OPERATOR, PATIENCE, Answer, Operator, Proxy, Rig, processor_time, token_of, wait

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parent / "deploy"
PAIRS = 8  # of operators, at once
# The Leases of operators that each have one.
LEASES = ["one", "two", *(f"pair-{number}-{which}" for number in range(PAIRS) for which in ("one", "two"))]


def alone(case):
    """Marks a case that needs the operator, or the control plane, for itself. The others run side by side."""
    case.alone = True
    return case


def long(case):
    """Marks a case that a short run leaves out."""
    case.long = True
    return case


def template(hold=False, fail=False, ttl=None, bad=False, asleep=False):
    marks = {"rig/hold": "1"} if hold else {"rig/fail": "1"} if fail else {}
    container = {"name": "main", "image": "example.test/job:1", "env": [{"name": "OWN", "value": "1"}]}
    if bad:
        container["imagePullPolicy"] = "Sometimes"
    job = {"backoffLimit": 0, "template": {
        "metadata": {"annotations": marks},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }}
    if asleep:
        job["suspend"] = True
    if ttl is not None:
        job["ttlSecondsAfterFinished"] = ttl
    return {"metadata": {"labels": {"team": "a"}}, "spec": job}


def kronjob(name, schedule="@every 2s", policy=None, namespace=None, **spec):
    spec.setdefault("jobTemplate", template())
    body = {"schedule": schedule, "policy": {"deadline": "60s", **(policy or {})}, **spec}
    return {"apiVersion": "kron.io/v1alpha1", "kind": "KronJob", "metadata": {"name": name, "namespace": namespace}, "spec": body}


class Test:
    def __init__(self, args):
        self.args = args
        self.rig = Rig(args.rig)
        self.operator = None  # the one of the cases that need nothing special
        self.operators = []  # all that were ever started
        self.namespace = None
        self.round = 0
        self.figures = {}
        # Over all rounds:
        self.sums = collections.Counter()
        self.times = collections.defaultdict(list)  # in seconds
        self.loads = []
        self.lock = threading.Lock()

    def install(self):
        """Everything as the guide says, with the operator's own rights and no others."""
        started = time.monotonic()
        self.rig.start()
        self.figures["control plane up in"] = f"{time.monotonic() - started:.1f} s"
        for name in ("crd.yaml", "operator.yaml"):
            for thing in yaml.safe_load_all((DEPLOY / name).read_text()):
                self.rig.apply(thing)
        wait("the CRD", lambda: self.rig.get("/apis/kron.io/v1alpha1/kronjobs"))
        self.rig.start_controllers()
        # More than one leader at once is a test's idea: they need Leases of their own.
        leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]}
        meta = {"name": "rig-leases", "namespace": "kron-system"}
        group = "rbac.authorization.k8s.io"
        self.rig.apply(
            {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": [{**leases, "resourceNames": LEASES}]},
            {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": meta,
             "roleRef": {"apiGroup": group, "kind": "Role", "name": "rig-leases"},
             "subjects": [{"kind": "ServiceAccount", "name": "kron-operator", "namespace": "kron-system"}]},
        )

    def run(self, cases):
        """One after another those that are to be alone, after all the others at once."""
        together = [case for case in cases if not hasattr(case, "alone")]
        if together:
            self.lead()
            with concurrent.futures.ThreadPoolExecutor(len(together)) as threads:
                for done in [threads.submit(copy.copy(self).run_one, case) for case in together]:
                    done.result()
            self.judge()
        for case in cases:
            if hasattr(case, "alone"):
                self.run_one(case)
                self.judge()

    def run_one(self, case):
        name = case.__name__.removeprefix("case_")
        # Of its own in every round: what was created in an earlier one is not what a case waits for or counts. An account has one for good.
        self.namespace = name.replace("_", "-")
        if self.round > 1 and self.namespace not in (namespace for namespace, _ in ACCOUNTS.values()):
            self.namespace += f"-{self.round}"
        self.rig.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        started = time.monotonic()
        case(self)
        self.clear()
        print(f"ok   {name} ({time.monotonic() - started:.1f} s)", flush=True)

    def clear(self):
        """What is over costs nothing more."""
        self.rig.call("DELETE", self.path(), timeout=300)

    def count(self, what, number=1):
        with self.lock:
            self.sums[what] += number

    def watch_load(self):
        """The loads of the machine, of a minute each."""
        while not self.rig.stopping.wait(30):
            self.loads.append(os.getloadavg()[0])

    def in_pairs(self, count, case):
        """A case of two operators, so many times, some of them at once: each pair has a namespace and Leases of its own."""
        turns = list(range(count))

        def work(pair):
            while True:
                with self.lock:
                    if not turns:
                        return
                    turn = turns.pop()
                one = copy.copy(self)
                one.namespace = f"{self.namespace}-turn-{turn}"
                one.rig.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one.namespace}})
                try:
                    case(one, f"pair-{pair}-")
                except BaseException:
                    turns.clear()  # the others need not go on
                    raise
                one.clear()

        with concurrent.futures.ThreadPoolExecutor(PAIRS) as threads:
            for done in [threads.submit(work, pair) for pair in range(min(PAIRS, count))]:
                done.result()

    def histories(self):
        audited = self.rig.audited()  # first: an operator may still be at work
        return ("etcd", [c[:2] for c in self.rig.creations()]), ("the audit log", audited)

    def judge(self):
        (_, kept), (_, audited) = self.histories()
        assert set(audited) <= set(kept), f"etcd's history is not complete: {set(audited) - set(kept)}"
        self.figures["Jobs created"] = len(kept)
        assert not self.twice(), f"created twice: {self.twice()}"

    def twice(self):
        """The periods with two Jobs, by either history."""
        return {what: found for what, creations in self.histories()
                if (found := [key for key, count in collections.Counter(creations).items() if count > 1])}

    def judge_the_judge(self):
        """The same as with two leaders, but the Jobs of the one have no finalizer: both histories must tell of two Jobs for one period."""
        self.retire()
        self.namespace = "planted"
        self.rig.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})

        def forget(method, path, body):
            if not STEPS["create"](method, path, body):
                return None
            job = json.loads(body)
            del job["metadata"]["finalizers"]
            return json.dumps(job).encode()

        proxy = Proxy(self.rig, forget)
        [name] = late_creations(self, ["both"], second_server=proxy.url, is_over=lambda job: job is None)
        proxy.close()
        found = self.twice()
        assert set(found) == {"etcd", "the audit log"}, f"not found by both that {name} was created twice: {found}"
        print("ok   a planted bug is found", flush=True)

    # KronJobs

    def path(self, name="", namespace=None):
        return f"/apis/kron.io/v1alpha1/namespaces/{namespace or self.namespace}/kronjobs" + (f"/{name}" if name else "")

    def jobs_path(self, name=""):
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs" + (f"/{name}" if name else "")

    def make(self, name, *more, **keys):
        return self.rig.call("POST", self.path(), kronjob(name, *more, namespace=self.namespace, **keys))

    def status(self, name):
        return (self.rig.get(self.path(name)) or {}).get("status", {})

    def history(self, name, outcome=None):
        history = self.status(name).get("history", [])
        return [entry for entry in history if outcome in (None, entry["outcome"])]

    def jobs(self, name=None):
        items = self.rig.call("GET", self.jobs_path())["items"]
        return [job for job in items if name in (None, job["metadata"]["labels"].get("kron.io/name"))]

    def condition(self, name, kind):
        found = [c for c in self.status(name).get("conditions", []) if c["type"] == kind]
        return found[0] if found else {}

    def events(self, name, reason):
        items = self.rig.call("GET", f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")["items"]
        return [e for e in items if e["regarding"]["name"] == name and e["reason"] == reason]

    def edit(self, name, spec):
        self.rig.patch(self.path(name), {"spec": spec})

    def start(self, **keys):
        self.operators.append(Operator(self.rig, self.args.operator, **keys))
        return self.operators[-1]

    def free_lease(self, *names):
        """Spares the next operators the wait for those that were killed."""
        for name in names or ("kron-operator", "one", "two"):
            self.rig.raw("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/kron-system/leases/{name}")

    def lead(self):
        if self.operator is None:
            self.operator = self.start().wait_leading()

    def retire(self):
        if self.operator is not None:
            self.operator.terminate()
            self.operator = None

    def end(self):
        """Whatever has happened, nothing is left running."""
        for operator in self.operators:
            operator.kill()

    def kronctl(self, *words, code=0, stdin=None):
        env = {**os.environ, "KUBECONFIG": str(self.rig.dir / "admin.conf")}
        done = subprocess.run([self.args.kronctl, *words], env=env, input=stdin, capture_output=True, text=True)
        assert done.returncode == code, f"kronctl {words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


# The life of a KronJob


def case_crd_rejections(t):
    """What the API server itself refuses, by the CRD."""
    good = kronjob("x", namespace=t.namespace)

    def refused(expected, change):
        bad = json.loads(json.dumps(good))
        change(bad)
        try:
            t.rig.call("POST", t.path(), bad)
        except Answer as answer:
            assert answer.code == 422, answer
            assert expected in str(answer), f"expected {expected!r} in {answer}"
        else:
            raise AssertionError(f"not refused: {expected}")

    spec = lambda key, value: lambda bad: bad["spec"].__setitem__(key, value)
    refused("at most 52 characters", lambda bad: bad["metadata"].__setitem__("name", "n" * 53))
    refused("spec.schedule", lambda bad: bad["spec"].pop("schedule"))
    refused("spec.schedule", spec("schedule", ""))
    refused("spec.jobTemplate", lambda bad: bad["spec"].pop("jobTemplate"))
    refused("Unsupported value", spec("window", {"mode": "before", "duration": "1m"}))
    refused("spec.window.duration", spec("window", {"mode": "after"}))
    refused("Unsupported value", lambda bad: bad["spec"]["policy"].__setitem__("concurrency", "queue"))
    refused("Unsupported value", spec("seed", {"strategy": "hourly"}))
    refused("Unsupported value", spec("dst", {"gap": "before"}))
    refused("spec.history.failed", spec("history", {"failed": -1}))
    refused("restartPolicy", lambda bad: bad["spec"]["jobTemplate"]["spec"]["template"]["spec"].__setitem__("restartPolicy", "Always"))
    refused("containers", lambda bad: bad["spec"]["jobTemplate"]["spec"]["template"]["spec"].__setitem__("containers", []))
    kept = t.rig.call("POST", t.path(), {**good, "metadata": {"name": "n" * 52, "namespace": t.namespace}})
    assert kept["spec"]["policy"]["concurrency"] == "forbid" and kept["spec"]["policy"]["suspend"] is False


def case_life(t):
    """From its creation to its deletion."""
    t.lead()
    t.make("life", policy={"concurrency": "allow"}, window={"mode": "after", "duration": "1s"})
    wait("two runs", lambda: len(t.history("life", "executed")) >= 2)
    job = next(j for j in t.jobs("life"))
    meta = job["metadata"]
    owner = meta["ownerReferences"][0]
    assert owner["controller"] and owner["blockOwnerDeletion"] and owner["kind"] == "KronJob", owner
    period = meta["annotations"]["kron.io/period-id"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", period), period
    assert meta["labels"]["kron.io/period-id"] == re.sub("[-:]", "", period) and meta["labels"]["team"] == "a"
    assert re.fullmatch(r"life-\d{10}", meta["name"]), meta["name"]
    env = {e["name"]: e["value"] for e in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["KRON_PERIOD_ID"] == period and env["KRON_IDENTITY"] == f"{t.namespace}/life" and env["OWN"] == "1", env
    status = wait("a result", lambda: (s := t.status("life")).get("lastSuccessTime") and s)
    assert status["lastOutcome"] == "executed" and status["lastReason"] == "started" and len(status["lastSeedHash"]) == 64
    assert status["nextChosenTime"] >= status["nextNominalTime"]
    assert t.condition("life", "Ready")["status"] == "True"
    assert wait("an Event", lambda: t.events("life", "Executed")) and wait("another", lambda: t.events("life", "JobSucceeded"))
    wait("released names", lambda: any("finalizers" not in j["metadata"] for j in t.jobs("life")))
    wait("three Jobs kept", lambda: 3 <= len([j for j in t.jobs("life") if j.get("status", {}).get("succeeded")]) <= 5)
    t.rig.call("DELETE", t.path("life"))
    wait("the Jobs to be collected", lambda: not t.jobs("life"), patience=180)


def case_invalid_spec(t):
    """Deep mistakes are told in the status, in krontab's words, and nothing runs."""
    t.lead()
    t.make("bad", "61 * * * *", window={"duration": "1x"}, timezone="Europe/Pariss")
    message = wait("the condition", lambda: t.condition("bad", "InvalidSpec").get("status") == "True" and t.condition("bad", "InvalidSpec")["message"])
    for part in ("spec.schedule: ", "spec.window.duration: ", "spec.timezone: ", "Europe/Paris"):
        assert part in message, message
    assert t.condition("bad", "Ready")["status"] == "False"
    version = t.rig.get(t.path("bad"))["metadata"]["resourceVersion"]
    time.sleep(3)
    assert t.rig.get(t.path("bad"))["metadata"]["resourceVersion"] == version, "a bad spec is written again and again"
    t.edit("bad", {"schedule": "@every 1s", "window": None, "timezone": "Europe/Paris"})
    wait("it to run", lambda: t.history("bad", "executed"))
    assert t.condition("bad", "InvalidSpec")["status"] == "False"


def case_policies(t):
    """Forbid, allow and replace, while a Job holds on."""
    t.lead()
    for policy in ("forbid", "allow", "replace"):
        t.make(policy, "@every 3s", {"concurrency": policy}, jobTemplate=template(hold=True))
    skipped = wait("a skip", lambda: t.history("forbid", "skipped"))
    assert skipped[0]["reason"] == "still-running", skipped
    assert t.status("forbid")["activeCount"] == 1 and len(t.jobs("forbid")) == 1
    assert wait("its Event", lambda: t.events("forbid", "StillRunning"))
    wait("two at once", lambda: t.status("allow")["activeCount"] >= 2)
    # The history may be full of what was superseded, if the machine is slow.
    wait("a replacement", lambda: len([c for c in t.rig.creations() if c[2].startswith(f"{t.namespace}/replace-")]) >= 2)
    assert wait("its Event", lambda: t.events("replace", "Replaced"))
    wait("one at a time", lambda: len([j for j in t.jobs("replace") if "deletionTimestamp" not in j["metadata"]]) == 1)
    # A run by hand counts.
    t.make("by-hand", "@every 3s", {"concurrency": "forbid", "suspend": True}, jobTemplate=template(hold=True))
    t.kronctl("run", "by-hand", "-n", t.namespace)
    t.kronctl("resume", "by-hand", "-n", t.namespace)
    wait("a skip", lambda: [e for e in t.history("by-hand", "skipped") if e["reason"] == "still-running"])
    assert not t.history("by-hand", "executed")


@alone
def case_outcomes(t):
    """Missed, skipped while away, suspended, unschedulable."""
    t.retire()
    t.make("strict", "@every 2s", {"deadline": "0s"})
    t.make("lenient", "@every 2s", {"deadline": "1h", "concurrency": "allow"})
    t.make("never", "@every 2s", constraints={"only": [{"date": "2020-01-01"}]})
    t.make("asleep", "@every 1s", {"suspend": True})
    t.lead()
    wait("them all to be seen", lambda: all(t.status(n).get("ledger") for n in ("strict", "lenient", "never", "asleep")))
    t.operator.kill()
    time.sleep(9)
    before = {(u, p) for u, p, _ in t.rig.creations()}
    t.free_lease()
    t.operator = t.start().wait_leading()
    missed = wait("the missed", lambda: t.history("strict", "missed"))
    assert missed[0]["reason"] == "deadline-passed"
    passed = wait("the passed over", lambda: [e for e in t.history("lenient", "skipped") if e["reason"] == "superseded"])
    assert int(passed[-1]["count"]) >= 2, passed
    uid = t.rig.get(t.path("lenient"))["metadata"]["uid"]
    gone = sorted(p for u, p, _ in t.rig.creations() if u == uid and (u, p) not in before)
    assert gone, "nothing was caught up with"
    assert wait("unschedulable", lambda: t.history("never", "unschedulable"))
    assert t.condition("never", "Unschedulable")["status"] == "True" and not t.jobs("never")
    assert not t.history("asleep") and not t.jobs("asleep") and "nextChosenTime" not in t.status("asleep")
    t.edit("asleep", {"policy": {"suspend": False}})
    wait("it to wake", lambda: t.history("asleep", "executed"))
    passed = [e for e in t.history("asleep") if e["outcome"] != "executed" and e.get("count")]
    assert passed, "what passed while it was suspended is not told"


def case_refused_creation(t):
    """A Job that the API server refuses is tried until the deadline, and then missed with the reason."""
    t.lead()
    t.make("refused", "@every 5s", {"deadline": "3s"}, jobTemplate=template(bad=True))
    missed = wait("a miss", lambda: t.history("refused", "missed"))
    assert "imagePullPolicy" in missed[0].get("message", ""), missed
    assert "imagePullPolicy" in wait("the condition", lambda: t.condition("refused", "SchedulingError").get("message"))
    assert not t.jobs("refused")


def case_name_conflict(t):
    """Another's Job under the name of a period is left alone."""
    t.lead()
    now = int(time.time())
    for second in range(now - now % 4, now + PATIENCE, 4):
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"taken-{second}"}, "spec": template(hold=True)["spec"]}
        t.rig.call("POST", t.jobs_path(), job)
    t.make("taken", "@every 4s", {"deadline": "2s"})
    missed = wait("a miss", lambda: [e for e in t.history("taken", "missed") if "not this KronJob's" in e.get("message", "")])
    assert missed and all("ownerReferences" not in j["metadata"] for j in t.rig.call("GET", t.jobs_path())["items"])


# Deletions


def case_deletions(t):
    """Jobs that vanish, by their TTL and by hand, are not created again."""
    t.lead()
    enough = 5 if t.args.short else t.args.deletions
    pairs = range(max(1, min(10, enough // 10)))
    for number in pairs:
        t.make(f"ttl-{number}", "@every 2s", jobTemplate=template(ttl=0))
        t.make(f"hand-{number}", "@every 2s", jobTemplate=template(hold=True), policy={"concurrency": "allow"})
    deleted = set()

    def delete():
        there = {job["metadata"]["name"] for job in t.jobs() if job["metadata"]["name"].startswith("hand-")}
        for name in there:
            t.rig.raw("DELETE", t.jobs_path(name), {"propagationPolicy": "Background"})
        deleted.update(there)
        return len(deleted - there) >= enough

    wait("Jobs that were deleted", delete, patience=PATIENCE + 10 * enough)
    # First, for the history of one that goes on is soon full of others.
    wait("their ends to be seen", lambda: [e for e in t.history("hand-0") if e.get("result") == "unknown"])

    def vanished():
        time.sleep(1)
        kept = {f"{t.namespace}/{job['metadata']['name']}" for job in t.jobs()}
        return [c[2] for c in t.rig.creations() if c[2].startswith(f"{t.namespace}/ttl-") and c[2] not in kept][enough - 1:]

    wait("Jobs whose TTL is over", vanished, patience=PATIENCE + 10 * enough)
    # Whoever takes a Job that is gone for one that is missing creates it by then.
    stamp = t.status("hand-0")["lastPeriodID"]
    wait("more periods", lambda: all(t.status(f"{way}-{number}")["lastPeriodID"] > stamp for way in ("ttl", "hand") for number in pairs))
    t.count("Jobs deleted by hand", len(deleted))
    t.count("Jobs gone by their TTL", enough)


def case_recreation(t):
    """A KronJob that is deleted and created anew under its name is another one."""
    t.lead()
    for way in ("Background", "Foreground", "Background", "Foreground"):
        first = t.make("again", "@every 1s", jobTemplate=template(hold=True), policy={"concurrency": "allow"})
        wait("a run", lambda: t.history("again", "executed"))
        t.rig.call("DELETE", t.path("again"), {"propagationPolicy": way})
        wait("its end", lambda: t.rig.get(t.path("again")) is None)
        assert first["metadata"]["uid"]
    t.make("again", "@every 1s")
    wait("a run", lambda: len(t.history("again", "executed")) >= 2)
    wait("the old Jobs to be collected", lambda: all(
        j["metadata"]["ownerReferences"][0]["uid"] == t.rig.get(t.path("again"))["metadata"]["uid"] for j in t.jobs("again")), patience=180)


# Faults

STEPS = {
    "claim": lambda m, p, b: m == "PUT" and p.endswith("/status") and b'"claims"' in b,
    "create": lambda m, p, b: m == "POST" and "/jobs" in p,
    "record": lambda m, p, b: m == "PUT" and p.endswith("/status") and b'"claims"' not in b and b'"executed"' in b,
    "release": lambda m, p, b: m == "PATCH" and "/jobs/" in p,
}


@alone
def case_killed_at_each_step(t):
    """kill -9 of the operator before each request of a period arrives, while it does, and before its answer does."""
    t.retire()
    t.make("killed", "@every 1s", {"deadline": "1h"})
    for step, is_it in STEPS.items():
        for when in ("before", "during", "after"):
            box, hit = {}, threading.Event()
            t.free_lease()

            def die():
                box["operator"].process.kill()
                t.count("kill -9 of the operator, at a step of a period")
                hit.set()
                return "drop" if when == "before" else None  # else it arrives, though its sender is dead

            def meddle(method, path, body):
                if hit.is_set() or not is_it(method, path, body):
                    return None
                return (None, die) if when == "after" else (die, None)

            proxy = Proxy(t.rig, meddle)
            box["operator"] = t.start(server=proxy.url, name="killed")
            assert hit.wait(90), f"no {step} came"
            box["operator"].kill()
            proxy.close()
            print(f"     killed {when} the {step}", flush=True)
    done = len(t.history("killed"))
    t.free_lease()
    t.operator = t.start().wait_leading()
    wait("it to go on", lambda: t.history("killed") and t.status("killed").get("lastOutcome") == "executed" and not t.status("killed")["ledger"].get("claims"))
    assert done


@alone
def case_lost_answers(t):
    """Requests that were carried out and not answered, and requests that never arrived."""
    t.retire()
    count, lost = collections.Counter(), collections.Counter()

    def meddle(method, path, body):
        for step, is_it in STEPS.items():
            if is_it(method, path, body):
                count[step] += 1
                how = ("mute", None, "drop", None)[count[step] % 4]
                lost[how] += 1
                lost[step] += how == "mute"
                return how
        return None

    proxy = Proxy(t.rig, meddle)
    enough = 2 if t.args.short else t.args.losses
    names = [f"lost-{number}" for number in range(max(4, min(60, enough // 8)))]
    for name in names:
        t.make(name, "@every 1s", {"deadline": "1h"})
    operator = t.start(server=proxy.url, name="lost")
    wait("enough of them", lambda: lost["create"] >= enough, patience=180 + 2 * enough)
    wait("a period of each in peace", lambda: all(t.history(name, "executed") for name in names))
    t.count("requests or answers lost", lost["mute"] + lost["drop"])
    t.count("of them answers to creations", lost["create"])
    operator.terminate()
    proxy.close()


def late_creations(t, names, pair="", second_server=None, is_over=lambda job: job and job["metadata"].get("deletionTimestamp")):
    """An operator is stopped with a creation for each of these on its way, all of which arrive after another has created, recorded and lost the
    Jobs. Their names are returned."""
    one, two = f"{pair}one", f"{pair}two"
    here = [f"--namespace={t.namespace}"]
    held, caught, go = {}, threading.Event(), threading.Event()
    box, lock = {}, threading.Lock()

    def hold():
        with lock:
            if len(held) == len(names) and not caught.is_set():
                box["operator"].signal(signal.SIGSTOP)
                caught.set()
        go.wait(120)

    def meddle(method, path, body):
        if caught.is_set() or not STEPS["create"](method, path, body):
            return None
        meta = json.loads(body)["metadata"]
        if meta["labels"]["kron.io/name"] not in names:
            return None
        held[meta["labels"]["kron.io/name"]] = meta["name"]
        return hold

    t.free_lease(one, two)
    proxy = Proxy(t.rig, meddle)
    for name in names:
        t.make(name, "@every 5s", {"deadline": "1h"}, jobTemplate=template(ttl=0))
    box["operator"] = t.start(server=proxy.url, lease=one, name=one, flags=here)
    assert caught.wait(90), f"only {sorted(held)} came"
    second = t.start(server=second_server, lease=two, name=two, flags=here).wait_leading()
    for name, job in held.items():
        wait("the other to record it", lambda: [e for e in t.history(name, "executed") if e.get("jobName") == job])
        wait("its TTL to be over", lambda: is_over(t.rig.get(t.jobs_path(job))))
    go.set()  # the creations arrive
    time.sleep(2)
    box["operator"].signal(signal.SIGCONT)
    time.sleep(3)
    for name in names:
        wait("more periods", lambda: len(t.history(name, "executed")) >= 3)
    for operator in (box["operator"], second):
        operator.kill()
    proxy.close()
    return list(held.values())


@alone
def case_two_leaders(t):
    """Two operators, each sure to lead. What is on its way from the one finds the name taken, however late it is."""
    t.retire()

    def stop(t, pair):
        late = late_creations(t, [f"both-{number}" for number in range(3 if t.args.short else 10)], pair)
        for job in late:
            assert t.rig.get(t.jobs_path(job))["metadata"]["finalizers"] == ["kron.io/record"]
        t.count("leaders stopped with creations on their way")
        t.count("creations that arrived after their Jobs were gone", len(late))

    t.in_pairs(1 if t.args.short else t.args.stops, stop)


@alone
def case_stopped_leader(t):
    """A leader is stopped at any moment, another takes over by the Lease, and the first goes on until it sees that it does not lead."""
    t.retire()

    def stop(t, pair):
        lease, here = f"{pair}one", [f"--namespace={t.namespace}"]
        t.free_lease(lease)
        for number in range(3):
            t.make(f"stopped-{number}", "@every 1s", {"deadline": "1h", "concurrency": "allow"}, jobTemplate=template(ttl=0))
        first = t.start(lease=lease, name=f"{pair}first", flags=here).wait_leading()
        second = t.start(lease=lease, name=f"{pair}second", flags=here)
        wait("a run", lambda: t.history("stopped-0", "executed"))
        time.sleep(random.random() * 2)
        first.signal(signal.SIGSTOP)
        stopped = time.monotonic()
        second.wait_leading()
        t.times["another leads after the leader was stopped"].append(time.monotonic() - stopped)
        stamp = t.status("stopped-0")["lastPeriodID"]
        wait("a run of the other", lambda: t.status("stopped-0")["lastPeriodID"] > stamp)
        first.signal(signal.SIGCONT)
        assert first.process.wait(PATIENCE) == 1, "it does not lead any more, and has to say so"
        wait("more runs", lambda: len(t.history("stopped-0", "executed")) >= 5)
        second.kill()
        t.count("leaders stopped until another led")

    t.in_pairs(1 if t.args.short else t.args.stops, stop)


@alone
def case_stale_watch(t):
    """An operator that is not told what happens works beside one that is; each writes what the other does not know of."""
    t.retire()
    t.free_lease()
    proxy = Proxy(t.rig)
    t.make("stale", "@every 1s", {"deadline": "1h", "concurrency": "allow"}, jobTemplate=template(ttl=0))
    behind = t.start(server=proxy.url, lease="one", name="behind").wait_leading()
    wait("a run", lambda: t.history("stale", "executed"))
    proxy.stale.set()
    ahead = t.start(lease="two", name="ahead").wait_leading()
    wait("conflicts of the one that is behind", lambda: behind.counted("status-conflict") >= 3)
    t.rig.call("DELETE", t.path("stale"))
    t.make("stale", "@every 1s", {"deadline": "1h", "concurrency": "allow"}, jobTemplate=template(ttl=0))
    wait("a run of the new one", lambda: len(t.history("stale", "executed")) >= 2)
    proxy.stale.clear()
    wait("more runs", lambda: len(t.history("stale", "executed")) >= 5)
    t.figures["conflicts of an operator that was told nothing"] = behind.counted("status-conflict")
    for operator in (behind, ahead):
        operator.terminate()
    proxy.close()


def case_conflicts(t):
    """Somebody writes the KronJob all the time: what is due runs all the same."""
    t.lead()
    t.make("busy", "@every 1s", {"deadline": "1h", "concurrency": "allow"}, jobTemplate=template(ttl=0))
    stop = threading.Event()

    def meddle():
        while not stop.is_set():
            t.rig.patch(t.path("busy"), {"metadata": {"annotations": {"rig/written": str(time.monotonic_ns())}}})

    thread = threading.Thread(target=meddle)
    thread.start()
    try:
        wait("runs", lambda: len(t.history("busy", "executed")) >= 5)
    finally:
        stop.set()
        thread.join()


@alone
def case_busy_server(t):
    """The API server says that it is busy, or broken, for a while: it is not asked all the time, and what is due runs once it answers."""
    t.retire()
    asked, busy = [], threading.Event()
    codes = itertools.cycle((429, 500, 503, 504))
    busy.set()

    def meddle(method, path, body):
        if method == "GET" or "/leases" in path or "/events" in path or not busy.is_set():
            return None
        asked.append(time.monotonic())
        return next(codes)

    proxy = Proxy(t.rig, meddle)
    for number in range(5):
        t.make(f"busy-{number}", "@every 1s", {"deadline": "1h"})
    operator = t.start(server=proxy.url, name="busy").wait_leading()
    wait("it to be tried", lambda: len(asked) >= 10)
    time.sleep(10)
    # Each of the five is tried after 1 s, 2 s, 4 s and so on, and nothing sends a request again by itself.
    tries = len([at for at in asked if at > time.monotonic() - 10])
    assert tries <= 25, f"{tries} requests in 10 s"
    t.figures["requests in 10 s for 5 KronJobs, of which none is answered"] = tries
    busy.clear()
    wait("them to run", lambda: all(t.history(f"busy-{number}", "executed") for number in range(5)))
    operator.terminate()
    proxy.close()


@alone
def case_outage(t):
    """The API server and etcd are killed and come back; what fell due meanwhile is caught up with once."""
    t.lead()
    for number in range(5):
        t.make(f"outage-{number}", "@every 1s", {"deadline": "1h", "concurrency": "allow"})
    outages = 2 if t.args.short else t.args.outages
    down = []
    for part in itertools.islice(itertools.cycle(("kube-apiserver", "etcd", "kube-apiserver", "kube-apiserver")), outages):
        wait("a run", lambda: t.history("outage-0", "executed"))
        time.sleep(random.random())  # at any moment of a period
        t.rig.kill(part)
        t.count(f"kill -9 of {part}")
        killed = time.time()
        time.sleep(random.choice((0, 0, 0, 4)))
        if part == "etcd":  # what waits for it in the API server may yet be in time
            t.rig.start_etcd()
        else:
            down.append((killed, time.time()))
            t.rig.start_apiserver()
        back = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(back))

        def ran():
            if t.operator.process.poll() is not None:  # without a Lease for ten seconds it must end, and a kubelet starts it again
                t.operator = t.start()
                t.count("operators that lost their Lease by it")
            return [e for e in t.history("outage-0", "executed") if e["recordedAt"] > stamp]

        wait("a run after it", ran)
        t.times[f"running again after {part} came back"].append(time.time() - back)
    t.operator.wait_leading()
    made = collections.Counter()
    for owner, period, name in t.rig.creations():
        at = calendar.timegm(time.strptime(period, "%Y-%m-%dT%H:%M:%SZ"))
        if name.startswith(t.namespace + "/"):
            made.update((owner, since) for since, until in down if since < at < until)
    assert max(made.values(), default=0) <= 1, f"more than one run was made up for: {made.most_common(5)}"
    t.count("kills after which it was away for four seconds", len([since for since, until in down if until - since > 3]))
    t.count("periods of them that were made up for", made.total())


@alone
def case_failover(t):
    """The leader dies, or leaves; another takes over."""
    t.retire()
    t.make("failover", "@every 1s", {"deadline": "1h"})
    first = t.start(name="first").wait_leading()
    second = t.start(name="second")
    wait("a run", lambda: t.history("failover", "executed"))
    first.kill()
    dead = time.monotonic()
    second.wait_leading()
    t.times["failover after kill -9"].append(time.monotonic() - dead)
    assert time.monotonic() - dead < 60
    third = t.start(name="third")
    wait("a follower", lambda: "kron_operator_leader 0" in third.metrics())
    left = time.monotonic()
    assert second.terminate() == 0
    third.wait_leading()
    t.times["failover after SIGTERM"].append(time.monotonic() - left)
    third.terminate()


def may(t, token, verb, group, resource, namespace, name=""):
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {
        "verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name}}}
    return t.rig.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, token=token)["status"]["allowed"]


def case_rights(t):
    """The operator has the rights it needs, and no others."""
    def it_may(verb, group, resource, namespace="kron-system", name=""):
        return may(t, OPERATOR, verb, group, resource, namespace, name)

    assert it_may("create", "batch", "jobs") and it_may("update", "kron.io", "kronjobs/status")
    for verb, group, resource in (
        ("get", "", "secrets"), ("list", "", "pods"), ("create", "", "pods"), ("update", "kron.io", "kronjobs"),
        ("delete", "kron.io", "kronjobs"), ("create", "batch", "cronjobs"), ("get", "", "configmaps"), ("list", "events.k8s.io", "events"),
        ("create", "", "serviceaccounts/token"), ("update", "batch", "jobs"), ("deletecollection", "batch", "jobs"),
    ):
        assert not it_may(verb, group, resource), f"it may {verb} {resource}"
    assert it_may("update", "coordination.k8s.io", "leases", name="kron-operator")
    assert not it_may("update", "coordination.k8s.io", "leases", name="another")
    assert not it_may("get", "coordination.k8s.io", "leases", namespace="default", name="kron-operator")


def as_installed(t, things, everywhere):
    """Applies manifests, and runs the operator as their Deployment says, with the rights of its account and no others."""
    t.rig.apply(*things)
    pod = next(thing for thing in things if thing["kind"] == "Deployment")["spec"]["template"]
    token = token_of(t.namespace, pod["spec"]["serviceAccountName"])
    # What its pod may be, the API server says: nothing is restricted more than this.
    strict = f"{t.namespace}-restricted"
    t.rig.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": strict, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    t.rig.call("POST", f"/api/v1/namespaces/{strict}/pods?dryRun=All", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod["spec"]})
    flags = [flag for flag in pod["spec"]["containers"][0]["args"] if not flag.startswith("--listen")]
    operator = t.start(token=token, flags=flags, name=t.namespace).wait_leading()
    t.make("installed", "@every 1s", {"deadline": "1h"})
    t.rig.apply(kronjob("elsewhere", "@every 1s", {"deadline": "1h"}, "default"))
    wait("a run", lambda: t.history("installed", "executed"))
    wait("its Event", lambda: t.events("installed", "Executed"))
    elsewhere = lambda: (t.rig.get(t.path("elsewhere", "default")) or {}).get("status", {})
    if everywhere:
        wait("a run elsewhere", elsewhere)
    else:
        assert not elsewhere() and not may(t, token, "list", "kron.io", "kronjobs", "default")
    assert not may(t, token, "get", "", "secrets", t.namespace)
    assert operator.terminate() == 0
    t.rig.call("DELETE", t.path("elsewhere", "default"))
    t.rig.call("DELETE", t.path("installed"))


@alone
def case_in_pod(t):
    """Without a kubeconfig, by the files of its service account, as in a pod; the certificate of the API server is checked."""
    t.retire()
    operator = t.start(in_pod=True).wait_leading()
    t.make("pod", "@every 1s", {"deadline": "1h"})
    wait("a run", lambda: t.history("pod", "executed"))
    assert operator.terminate() == 0
    assert "cert bypassed" not in operator.log.read_text().rpartition('"waiting"')[2]


@alone
def case_namespaced(t):
    """deploy/namespaced.yaml, for a namespace of one's own, as it says."""
    t.retire()
    text = (DEPLOY / "namespaced.yaml").read_text().replace("kron-jobs", t.namespace)
    as_installed(t, list(yaml.safe_load_all(text)), everywhere=False)


@long
@alone
def case_chart(t):
    """The chart, installed by Helm with the values that change most, upgraded, and uninstalled."""
    assert t.args.helm, "it needs --helm"
    t.retire()

    def helm(*words, code=0):
        env = {**os.environ, "KUBECONFIG": str(t.rig.dir / "admin.conf")}
        done = subprocess.run([t.args.helm, *words, "--namespace", t.namespace], env=env, capture_output=True, text=True)
        assert done.returncode == code, f"helm {words}: {done.stdout}{done.stderr}"
        return done.stdout if code == 0 else done.stderr

    chart = str(HERE.parent / "charts/kron-operator")
    helm("lint", "--strict", chart)
    helm("template", "kron", chart, "--kube-version", "1.30.0")
    assert "incompatible with Kubernetes v1.29.9" in helm("template", "kron", chart, "--kube-version", "1.29.9", code=1)
    for values, everywhere in (("clusterWide=false,podLabels.team=a,replicas=1", False), ("clusterWide=true,logFormat=text", True)):
        helm("upgrade", "--install", "kron", chart, "--set", values)
        things = [thing for thing in yaml.safe_load_all(helm("get", "manifest", "kron")) if thing]
        as_installed(t, things, everywhere)
    # What else the values can say.
    values = {"metricsTokenSecret": "token", "imagePullSecrets": [{"name": "s"}], "nodeSelector": {"a": "b"}, "podAnnotations": {"a": "b"},
              "tolerations": [{"key": "a", "operator": "Exists"}], "image": {"repository": "example.test/x", "tag": "2"}}
    path = t.rig.dir / "values.json"
    path.write_text(json.dumps(values))
    helm("install", "other", chart, "--values", str(path))
    pod = t.rig.get(f"/apis/apps/v1/namespaces/{t.namespace}/deployments/other")["spec"]["template"]
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert container["image"] == "example.test/x:2" and "--metrics-token-file=/var/run/kron/token" in container["args"]
    assert spec["volumes"][0]["secret"]["secretName"] == "token" and container["volumeMounts"][0]["mountPath"] == "/var/run/kron"
    assert spec["nodeSelector"] == {"a": "b"} and spec["tolerations"][0]["key"] == "a" and spec["imagePullSecrets"] == [{"name": "s"}]
    assert pod["metadata"]["annotations"] == {"a": "b"}
    for wrong, told in (("replica=1", "replica"), ("clusterWide=fales", "clusterWide"), ("replicas=-1", "replicas"), ("logFormat=xml", "logFormat"),
                        ("image.tga=2", "tga"), ("metricsTokenSecret.name=a", "metricsTokenSecret")):
        refusal = helm("template", "kron", chart, "--set", wrong, code=1)
        assert told in refusal and "values don't meet the specifications" in refusal, refusal
    for release in ("kron", "other"):
        helm("uninstall", release)
        assert t.rig.get(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{release}") is None
    assert t.rig.get("/apis/kron.io/v1alpha1/kronjobs") is not None, "the KronJobs of a cluster outlive a release"


def case_kronctl(t):
    """The tool, against the cluster."""
    t.lead()
    t.make("tool", "0 3 * * *", timezone="Europe/Paris", window={"duration": "1h"})
    wait("its status", lambda: t.status("tool").get("nextChosenTime"))
    in_namespace = ("-n", t.namespace)
    explained = json.loads(t.kronctl("explain", "tool", "--json", *in_namespace))
    assert explained["identity"] == f"{t.namespace}/tool" and explained["timezone"] == "Europe/Paris"
    following = json.loads(t.kronctl("next", "tool", "--count", "3", "--json", *in_namespace))
    assert following["runs"][0]["chosenTime"] == t.status("tool")["nextChosenTime"], "the tool and the operator disagree"
    assert f"it is to run at {t.status('tool')['nextChosenTime']}" in t.kronctl("why", "tool", *in_namespace), "before its first period"
    assert "it is to run at" in t.kronctl("why", "tool", "--at", t.status("tool")["nextNominalTime"], *in_namespace)
    assert "has no period" in t.kronctl("why", "tool", "--at", "2026-01-01T12:34:00Z", code=1, *in_namespace)
    assert "2027-03-28T02:30" in t.kronctl("why", "gap", "--at", "2027-03-28T01:30:00Z", code=1, *in_namespace) if t.make("gap", "30 2 * * *", timezone="Europe/Paris") else False
    t.kronctl("suspend", "tool", *in_namespace)
    wait("no next run", lambda: "nextChosenTime" not in t.status("tool"))
    t.kronctl("resume", "tool", *in_namespace)
    wait("a next run", lambda: t.status("tool").get("nextChosenTime"))
    started = json.loads(t.kronctl("run", "tool", "--json", *in_namespace))["name"]
    wait("its success", lambda: (t.rig.get(t.jobs_path(started)) or {}).get("status", {}).get("succeeded"))
    assert not t.history("tool"), "a run by hand is no period's"
    assert "not found" in t.kronctl("why", "nothing", code=1, *in_namespace)
    assert "has no run after" in t.kronctl("next", "tool", "--from", "9999-12-30T12:00:00Z", code=1, *in_namespace)


# What a guide's commands begin with that cannot be run here: there is no container engine and no node, and nothing is installed.
NOT_HERE = ("podman", "cargo", "ln", "kubectl rollout")


@alone
def case_guide(t):
    """The guide, command by command, as a stranger would follow it: with kubectl, on an API server that has nothing yet."""
    rig = Rig(t.args.rig)
    others = {"kronctl": t.args.kronctl, "kubectl_kron": t.args.kronctl, **({"helm": t.args.helm} if t.args.helm else {})}
    path = f"{rig.programs(**others)}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "KUBECONFIG": str(rig.dir / "admin.conf"), "HOME": str(rig.dir)}
    desk = rig.dir / "desk"
    desk.mkdir()
    for name in ("deploy", "charts"):
        (desk / name).symlink_to(HERE.parent / name)

    def shell(line):
        done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=desk, env=env, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"$ {line}\n{done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def operator():
        """Runs as the Deployment that was applied says, in the place of a kubelet."""
        args = json.loads(shell("kubectl get deployment -n kron-system kron-operator -o jsonpath='{.spec.template.spec.containers[0].args}'"))
        return Operator(rig, t.args.operator, name="guide", flags=[flag for flag in args if not flag.startswith("--listen")])

    def seen(line, output):
        """What a reader would look for."""
        if line.startswith("kubectl get kronjobs"):
            header, row = output.splitlines()
            assert header.split() == ["NAME", "SCHEDULE", "SUSPEND", "ACTIVE", "LAST", "NEXT", "READY", "AGE"], output
            assert row.startswith("report") and "True" in row, output
        elif "| kubectl apply" in line:
            namespace = "team-a" if "namespaced" in line else "kron-system"
            text = shell(f"kubectl get deployment -n {namespace} kron-operator -o jsonpath='{{.spec.template.spec.containers[0]}}'")
            assert json.loads(text)["image"] == "registry.example/kron-operator:0.1.0", text
            assert ("--namespace=team-a" in text) == (namespace == "team-a") and "kron-jobs" not in text, text
        elif line.startswith("kubectl label clusterrole"):
            shell("kubectl create rolebinding editor --clusterrole=edit --user=editor")
            allowed = lambda user: shell(f"kubectl auth can-i create kronjobs.kron.io --as={user} || true").startswith("yes")
            wait("the right", lambda: allowed("editor"))
            assert not allowed("another")
        elif line.startswith("kronctl why report"):
            assert "it is to run at 20" in output, output
        elif line.startswith("kubectl kron run report"):
            shell("kubectl wait --for=condition=Complete job --all --timeout=60s")
        elif line.startswith("kubectl kron suspend report"):
            shell("kubectl wait --for=jsonpath='{.spec.policy.suspend}'=true kj/report")
        elif line.startswith("kubectl get lease"):
            assert "guide" in output, output
        elif line.startswith("kubectl get kj -A"):
            assert {row.split()[1] for row in output.splitlines()[1:]} == {"report", "nightly"}, output

    running, commands = [], 0
    try:
        rig.start()
        rig.start_controllers()
        text = (HERE.parent / "docs/guides/kubernetes.md").read_text()
        for kind, block in re.findall(r"```(yaml|sh)\n(.*?)```", text, re.S):
            if kind == "yaml":
                thing = yaml.safe_load(block)
                (desk / f"{thing['metadata']['name']}.yaml").write_text(block)
                if thing["kind"] == "CronJob":  # which its reader has
                    shell(f"kubectl apply -f {thing['metadata']['name']}.yaml")
                continue
            for line in block.splitlines():
                if line.startswith(NOT_HERE) or (line.startswith("helm") and not t.args.helm):
                    continue
                commands += 1
                if line.startswith("kubectl delete -f deploy/operator.yaml"):
                    running.pop().terminate()
                seen(line, shell(line))
                if "deploy/operator.yaml | kubectl apply" in line:
                    running.append(operator().wait_leading())
        left = shell("kubectl get crd,namespace,clusterrole,job -A -o name").split()
        left = [name for name in left if "kron" in name or name == "namespace/team-a"]
        assert not left, left
    finally:
        for process in running:
            process.kill()
        rig.stop()
    assert commands >= 20, f"only {commands} commands were found in the guide"
    t.figures["commands of the guide"] = commands
    shutil.rmtree(rig.dir)


@long
@alone
def case_thousand(t):
    """So many KronJobs due in one second."""
    t.retire()
    t.lead()
    count = t.args.many
    due = int(time.time()) // 60 * 60 + 60 * (2 + count // 600)
    at = time.gmtime(due)
    schedule = f"{at.tm_min} {at.tm_hour} {at.tm_mday} {at.tm_mon} *"
    # Without pods: they are no business of the operator's, and 1,000 of them are much of a machine's.
    asleep = template(asleep=True)
    bodies = [kronjob(f"many-{n:04}", schedule, {"deadline": "10m"}, t.namespace, jobTemplate=asleep) for n in range(count)]

    def make(part):
        for body in part:
            t.rig.call("POST", t.path(), body)

    threads = [threading.Thread(target=make, args=(bodies[n::8],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The operator counts what it does, so that looking on costs next to nothing.
    operator = t.operator
    wait("all to be seen", lambda: operator.counted("status") >= count, patience=300)
    assert time.time() < due - 2, "the machine was too slow to make them in time"
    spent = lambda since: {kind: n - since.get(kind, 0) for kind, n in operator.writes().items() if n != since.get(kind, 0)}
    before, idle = operator.writes(), time.time()
    time.sleep(max(0, due - 2 - time.time()))
    t.figures[f"idle writes of {count} KronJobs in {time.time() - idle:.0f} s"] = sum(spent(before).values())
    before, looks = operator.writes(), {"look": operator.histogram("look")}
    processes = {"the operator": operator.pid, **{part: process.pid for part, process in t.rig.parts.items()}}
    begun = {what: processor_time(pid) for what, pid in processes.items()}
    wait("all to be executed", lambda: operator.executed() == count, patience=300)
    t.figures[f"{count} due in one second, all recorded after"] = f"{time.time() - due:.1f} s"
    wait("all released and told", lambda: spent(before).get("release") == spent(before).get("event") == count, patience=300)
    t.figures["writes per period"] = json.dumps({kind: n / count for kind, n in spent(before).items()})
    t.figures["processor time of it"] = ", ".join(f"{what} {processor_time(pid) - begun[what]:.1f} s" for what, pid in processes.items())
    t.figures["load of the machine"] = " ".join(f"{load:.0f}" for load in os.getloadavg())
    for name, what in (("start_lateness", "lateness of starts"), ("look", "time of one look")):
        now, then = t.operator.histogram(name), looks.get(name, {})
        t.figures[f"{what} (s: so many of all)"] = ", ".join(f"{le}: {n - then.get(le, 0)}" for le, n in now.items())
    assert len([c for c in t.rig.creations() if c[2].startswith(t.namespace + "/")]) == count


CASES = [value for name, value in list(globals().items()) if name.startswith("case_")]


def some(text):
    """A number of faults. With none of them a case would pass, and have shown nothing."""
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1 on")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rig", type=pathlib.Path)
    parser.add_argument("operator", type=pathlib.Path)
    parser.add_argument("kronctl", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", help="only these")
    parser.add_argument("--many", type=some, default=200, help="KronJobs that are due in one second (200)")
    parser.add_argument("--outages", type=some, default=3, help="kills of the API server, and one of etcd for three of them, in a round that is not short (3)")
    parser.add_argument("--stops", type=some, default=2, help="leaders that are stopped, in each of the two ways, in a round that is not short (2)")
    parser.add_argument("--losses", type=some, default=6, help="answers to creations that are lost in a round that is not short (6)")
    parser.add_argument("--deletions", type=some, default=10, help="Jobs deleted by hand, and by their TTL, in a round that is not short (10)")
    parser.add_argument("--helm", type=pathlib.Path, help="the program that renders the chart")
    parser.add_argument("--short", action="store_true", help="leave out what takes longest")
    parser.add_argument("--rounds", type=some, default=1, help="how often the cases are repeated (1)")
    args = parser.parse_intermixed_args()  # an option may come before the cases
    known = {case.__name__.removeprefix("case_"): case for case in CASES}
    wrong = [name for name in args.cases if name not in known]
    if wrong:
        parser.error(f"there is no case {wrong[0]}; there are {', '.join(known)}")
    chosen = [case for case in CASES if not (args.short and hasattr(case, "long"))]
    cases = [known[name] for name in args.cases] or [case for case in chosen if args.helm or case is not case_chart]
    # Whoever ends this ends the control plane with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    test = Test(args)
    print(f"rig in {test.rig.dir}", flush=True)
    status = 1
    threading.Thread(target=test.watch_load, daemon=True).start()
    try:
        test.install()
        for test.round in range(1, args.rounds + 1):
            test.run(cases)
        test.judge_the_judge()
        status = 0
    finally:
        test.end()
        test.rig.stop()
        for what, figure in {**test.figures, **test.sums}.items():
            print(f"     {what}: {figure}", flush=True)
        for what, times in test.times.items():
            print(f"     {what}: {len(times)} times, median {statistics.median(times):.1f} s, longest {max(times):.1f} s", flush=True)
        if test.loads:
            print(f"     load of the machine: {min(test.loads):.1f} to {max(test.loads):.1f}, mean {statistics.mean(test.loads):.1f}", flush=True)
    shutil.rmtree(test.rig.dir)  # kept if anything failed
    print(f"{len(cases)} cases passed, 0 periods with two Jobs", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
