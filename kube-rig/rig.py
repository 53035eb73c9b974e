"""A real control plane for tests: etcd, kube-apiserver and kube-controller-manager on loopback, with nothing mocked.

There is no kubelet. A thread stands in for one: it lets every pod succeed, unless the pod is annotated `rig/hold` (it stays) or
`rig/fail` (it fails). The verdicts come from etcd's own history, in which no creation can be missing, and from the audit log.
"""

import base64
import http.client
import json
import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ADMIN = "rig-admin-token"
OPERATOR = "rig-operator-token"
# Service accounts, by their tokens: of deploy/operator.yaml, of deploy/namespaced.yaml, and of the chart.
ACCOUNTS = {
    OPERATOR: ("kron-system", "kron-operator"),
    "rig-namespaced-token": ("namespaced", "kron-operator"),
    "rig-chart-token": ("chart", "kron"),
}
PATIENCE = 90  # seconds: a loaded machine is slow, and not wrong

AUDIT = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  verbs: [create]
  resources: [{group: batch, resources: [jobs]}]
- level: Metadata
  resources: [{group: batch, resources: ["*"]}, {group: kron.io, resources: ["*"]}, {group: events.k8s.io, resources: ["*"]}]
- level: None
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def token_of(namespace, name):
    return next(token for token, account in ACCOUNTS.items() if account == (namespace, name))


def processor_time(pid):
    """Seconds of processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait(what, condition, patience=PATIENCE):
    """Waits until the condition has a value, and returns it."""
    end = time.monotonic() + patience
    while True:
        try:
            value = condition()
        except Answer as answer:
            if not answer.passing():
                raise
            value, last = None, answer
        except (OSError, http.client.HTTPException) as error:
            value, last = None, error
        else:
            last = value
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {patience} s for {what}; last: {last!r}")
        time.sleep(0.1)


def mounted(account):
    """What a command is begun with that is to find the files of a service account where a pod has them, and nobody else."""
    script = 'mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && cp -r "$0" /run/secrets/kubernetes.io/serviceaccount && exec "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(account)]


class Answer(Exception):
    """An answer that is not a success."""

    def __init__(self, code, body):
        super().__init__(f"{code}: {body.get('message', body)}")
        self.code, self.body = code, body

    def passing(self):
        """An API server that is busy or starting says so, and is asked again."""
        return self.code == 429 or self.code >= 500


class Rig:
    def __init__(self, binary, directory=None):
        self.dir = Path(directory or tempfile.mkdtemp(prefix="kube-rig-"))
        self.binary = binary  # a program with parts, or a directory with a program for each
        self.parts = {}
        self.etcd_port, self.peer_port, self.port = free_port(), free_port(), free_port()
        self.context = ssl._create_unverified_context()
        self.stopping = threading.Event()
        tokens = [f'{ADMIN},admin,admin,"system:masters"']
        for token, (namespace, name) in ACCOUNTS.items():
            groups = f"system:serviceaccounts,system:serviceaccounts:{namespace}"
            tokens.append(f'{token},system:serviceaccount:{namespace}:{name},{namespace}-{name},"{groups}"')
        (self.dir / "tokens.csv").write_text("\n".join(tokens) + "\n")
        (self.dir / "audit.yaml").write_text(AUDIT)
        subprocess.run(["openssl", "genrsa", "-out", self.dir / "sa.key", "2048"], check=True, capture_output=True)
        self.kubeconfig("admin.conf", f"https://127.0.0.1:{self.port}", ADMIN)

    def kubeconfig(self, name, server, token):
        path = self.dir / name
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "rig",
            "clusters": [{"name": "rig", "cluster": {"server": server, **(
                {"insecure-skip-tls-verify": True} if server.startswith("https") else {})}}],
            "users": [{"name": "rig", "user": {"token": token}}],
            "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "rig", "namespace": "default"}}],
        }))
        return path

    def account(self, token):
        """The files that a pod of a service account has."""
        path = self.dir / "account"
        path.mkdir(exist_ok=True)
        (path / "token").write_text(token)
        (path / "namespace").write_text(ACCOUNTS[token][0])
        (path / "ca.crt").write_text((self.dir / "certs/apiserver.crt").read_text())
        return path

    def command(self, part):
        path = Path(self.binary)
        return [str(path / part)] if path.is_dir() else [str(path), part]

    def spawn(self, part, *flags):
        log = open(self.dir / f"{part}.log", "ab")
        self.parts[part] = subprocess.Popen([*self.command(part), *flags], stdout=log, stderr=log, cwd=self.dir)
        return self.parts[part]

    def programs(self, **others):
        """A directory for the PATH, with kubectl and other programs."""
        directory = self.dir / "bin"
        directory.mkdir()
        kubectl = directory / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec {shlex.join(self.command("kubectl"))} "$@"\n')
        kubectl.chmod(0o755)
        for name, path in others.items():
            (directory / name.replace("_", "-")).symlink_to(path.resolve())
        return directory

    def start(self):
        self.start_etcd()
        self.start_apiserver()
        threading.Thread(target=self.kubelet, daemon=True).start()

    def start_controllers(self):
        """The garbage collector asks which resources there are when it starts, and then every 30 s: it starts when all are there."""
        self.spawn(
            "kube-controller-manager", f"--kubeconfig={self.dir}/admin.conf", "--leader-elect=false",
            "--controllers=job-controller,garbage-collector-controller,namespace-controller,ttl-after-finished-controller,"
            "clusterrole-aggregation-controller",
            "--use-service-account-credentials=false", "--secure-port=0", "--concurrent-job-syncs=20",
            "--kube-api-qps=500", "--kube-api-burst=1000",
        )

    def start_etcd(self):
        self.spawn(
            "etcd", f"--data-dir={self.dir}/etcd", f"--listen-client-urls=http://127.0.0.1:{self.etcd_port}",
            f"--advertise-client-urls=http://127.0.0.1:{self.etcd_port}",
            f"--listen-peer-urls=http://127.0.0.1:{self.peer_port}", "--log-level=warn",
        )

    def start_apiserver(self, ready=True):
        self.spawn(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", f"--secure-port={self.port}",
            "--bind-address=127.0.0.1", f"--cert-dir={self.dir}/certs", f"--token-auth-file={self.dir}/tokens.csv",
            "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://rig.test", f"--service-account-key-file={self.dir}/sa.key",
            f"--service-account-signing-key-file={self.dir}/sa.key", "--disable-admission-plugins=ServiceAccount",
            f"--audit-policy-file={self.dir}/audit.yaml", f"--audit-log-path={self.dir}/audit.log",
            "--etcd-compaction-interval=0", "--storage-media-type=application/json", "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
        )
        if ready:
            wait("the API server", lambda: self.raw("GET", "/readyz")[0] == 200)

    def kill(self, part):
        process = self.parts[part]
        process.kill()
        process.wait()

    def stop(self):
        self.stopping.set()
        for process in self.parts.values():
            process.kill()
        for process in self.parts.values():
            process.wait()

    # requests

    def raw(self, method, path, body=None, token=ADMIN, kind="application/json", timeout=30):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=timeout)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def call(self, method, path, body=None, **more):
        code, text = self.raw(method, path, body, **more)
        value = json.loads(text) if text[:1] == b"{" else {"message": text.decode()}
        if code >= 300:
            raise Answer(code, value)
        return value

    def get(self, path):
        try:
            return self.call("GET", path)
        except Answer as answer:
            if answer.code == 404:
                return None
            raise

    def patch(self, path, body):
        return self.call("PATCH", path, body, kind="application/merge-patch+json")

    def apply(self, *objects):
        """Creates objects of manifests, as `kubectl apply` would the first time."""
        paths = {
            "Namespace": "/api/v1/namespaces", "ServiceAccount": "/api/v1/namespaces/{ns}/serviceaccounts",
            "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
            "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
            "Deployment": "/apis/apps/v1/namespaces/{ns}/deployments",
            "Service": "/api/v1/namespaces/{ns}/services",
            "PodDisruptionBudget": "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
            "KronJob": "/apis/kron.io/v1alpha1/namespaces/{ns}/kronjobs",
        }
        for thing in objects:
            namespace = thing["metadata"].get("namespace", "default")
            try:
                self.call("POST", paths[thing["kind"]].format(ns=namespace), thing)
            except Answer as answer:
                if answer.code != 409:
                    raise

    # the stand-in for a kubelet

    def kubelet(self):
        while not self.stopping.wait(0.1):
            try:
                pods = self.call("GET", "/api/v1/pods?fieldSelector=status.phase%3DPending&limit=500")["items"]
            except (Answer, OSError, http.client.HTTPException):
                continue
            for pod in pods:
                meta = pod["metadata"]
                marks = meta.get("annotations", {})
                path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
                try:
                    if "rig/hold" in marks:
                        if meta.get("deletionTimestamp"):
                            self.call("DELETE", path, {"gracePeriodSeconds": 0})
                        continue
                    phase = "Failed" if "rig/fail" in marks else "Succeeded"
                    self.patch(path + "/status", {"status": {"phase": phase}})
                except (Answer, OSError, http.client.HTTPException):
                    continue

    # verdicts

    def creations(self):
        """Every Job that was ever created for a period, as (owner's UID, period, name), from etcd's history."""
        found = []
        for key, value in self.etcd_events("/registry/jobs/"):
            job = json.loads(value)
            period = job["metadata"].get("annotations", {}).get("kron.io/period-id")
            if period:
                owner = job["metadata"]["ownerReferences"][0]["uid"]
                found.append((owner, period, key.decode().removeprefix("/registry/jobs/")))
        return found

    def etcd_events(self, prefix):
        """The first version of everything that was ever created below a key. A mark is set behind it, so that where the mark comes nothing is missing."""
        behind = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        key = lambda text: base64.b64encode(text.encode()).decode()
        until = int(self.etcd("/v3/kv/put", {"key": key(behind + "mark"), "value": ""})["header"]["revision"])
        body = json.dumps({"create_request": {"key": key(prefix), "range_end": key(behind + "n"), "start_revision": "1"}})
        connection = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=PATIENCE)
        try:
            connection.request("POST", "/v3/watch", body)
            answer = connection.getresponse()
            events, seen = [], 0
            while seen < until:
                for event in json.loads(answer.readline())["result"].get("events", []):
                    kv = event["kv"]
                    seen = max(seen, int(kv["mod_revision"]))
                    name = base64.b64decode(kv["key"])
                    if event.get("type", "PUT") == "PUT" and kv.get("version") == "1" and name.startswith(prefix.encode()):
                        events.append((name, base64.b64decode(kv["value"])))
            return events
        finally:
            connection.close()

    def etcd(self, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=30)
        connection.request("POST", path, json.dumps(body))
        return json.loads(connection.getresponse().read())

    def audited(self):
        """Successful creations of Jobs for a period in the audit log, as (owner's UID, period)."""
        found = []
        for path in sorted(self.dir.glob("audit*.log")):
            for line in path.read_text().splitlines():
                event = json.loads(line)
                ref = event.get("objectRef", {})
                if event["verb"] != "create" or ref.get("resource") != "jobs" or event["responseStatus"]["code"] != 201:
                    continue
                meta = event["responseObject"]["metadata"]
                period = meta.get("annotations", {}).get("kron.io/period-id")
                if period:
                    found.append((meta["ownerReferences"][0]["uid"], period))
        return found


class Operator:
    """A kron-operator process, which finds the API server by a kubeconfig, or the way that it does in a pod."""

    def __init__(self, rig, binary, server=None, lease="kron-operator", name="operator", token=OPERATOR, flags=(), in_pod=False):
        self.rig, self.port = rig, free_port()
        self.log = rig.dir / f"{name}.log"
        command = [binary, *flags, f"--listen=127.0.0.1:{self.port}", f"--lease-name={lease}", f"--instance={name}"]
        if in_pod:
            env = {"PATH": os.environ["PATH"], "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(rig.port)}
            command = [*mounted(rig.account(token)), *command]
        else:
            config = rig.kubeconfig(f"{name}.conf", server or f"https://127.0.0.1:{rig.port}", token)
            env = {**os.environ, "KUBECONFIG": str(config)}
        self.process = subprocess.Popen(command, env=env, stderr=open(self.log, "ab"))
        self.pid = self.process.pid

    def wait_leading(self):
        wait("the operator to lead", lambda: "kron_operator_leader 1" in self.metrics())
        return self

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def writes(self):
        """How often it has written, by kind."""
        return {kind: int(count) for kind, count in re.findall(r'writes_total\{kind="(.*?)"\} (\d+)', self.metrics())}

    def histogram(self, name):
        """How often something took at most so many seconds."""
        return {le: int(count) for le, count in re.findall(rf'operator_{name}_seconds_bucket{{le="(.*?)"}} (\d+)', self.metrics())}

    def executed(self):
        """How many periods it has recorded as executed."""
        return int(re.search(r'outcome="executed",reason="started"} (\d+)', self.metrics())[1])

    def counted(self, kind):
        return self.writes().get(kind, 0)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def signal(self, number):
        os.kill(self.pid, number)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


class Proxy:
    """Stands between an operator and the API server, and does to requests what the test says.

    `meddle(method, path, body)`, the path without its query, returns None, or one of: "drop" (it never arrives), "mute" (it arrives,
    its answer does not), a status code (which is answered in the server's place), another body (bytes), a function to be called before it is passed on, or a
    pair of functions for before and after. While `stale` is set, nothing that happens is told to whoever watches.
    """

    def __init__(self, rig, meddle=lambda *_: None):
        self.rig, self.meddle, self.stale = rig, meddle, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def close(self):
        self.listener.close()

    def serve(self, client):
        upstream = None
        try:
            data = b""
            while b"\r\n\r\n" not in data:
                more = client.recv(65536)
                if not more:
                    return
                data += more
            head, body = data.split(b"\r\n\r\n", 1)
            lines = head.decode().split("\r\n")
            method, path, _ = lines[0].split(" ")
            headers = [line for line in lines[1:] if not line.lower().startswith(("connection:", "host:"))]
            length = next((int(h.split(":")[1]) for h in headers if h.lower().startswith("content-length:")), 0)
            while len(body) < length:
                body += client.recv(65536)
            path, _, query = path.partition("?")
            action = self.meddle(method, path, body)
            if isinstance(action, int):
                status = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": action, "message": "the test says so"})
                head = f"HTTP/1.1 {action} No\r\nContent-Type: application/json\r\nContent-Length: {len(status)}\r\nConnection: close\r\n\r\n"
                client.sendall((head + status).encode())
                return
            if isinstance(action, bytes):
                body, action = action, None
                headers = [h for h in headers if not h.lower().startswith("content-length:")] + [f"Content-Length: {len(body)}"]
            before, after = action if isinstance(action, tuple) else (action, None)
            if before == "drop":
                return
            if callable(before) and before() == "drop":
                return
            head = "\r\n".join([lines[0], "Host: 127.0.0.1", "Connection: close", *headers]) + "\r\n\r\n"
            plain = socket.create_connection(("127.0.0.1", self.rig.port))
            upstream = self.rig.context.wrap_socket(plain)
            upstream.sendall(head.encode() + body)
            first = True
            while True:
                answer = upstream.recv(65536)
                if first:
                    if callable(after):
                        after()
                    if before == "mute":
                        return
                    first = False
                while "watch=" in query and self.stale.is_set():
                    time.sleep(0.05)
                if not answer:
                    return
                client.sendall(answer)
        except OSError:
            pass
        finally:
            for end in (client, upstream):
                if end:
                    try:
                        end.close()
                    except OSError:
                        pass
