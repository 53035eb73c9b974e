//! What is installed is what the types say, and no right more than the operator uses.

use std::path::{Path, PathBuf};

use kron_operator::manifests;
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_default()
}

fn documents(path: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&read(path)).unwrap()
}

/// Run with `KRON_WRITE=1` to write them.
#[test]
fn the_crd_is_up_to_date() {
    for path in ["deploy/crd.yaml", "charts/kron-operator/crds/kronjobs.yaml"] {
        if std::env::var_os("KRON_WRITE").is_some() {
            std::fs::write(root().join(path), manifests::crd()).unwrap();
        }
        assert_eq!(
            read(path),
            manifests::crd(),
            "{path} is not up to date: KRON_WRITE=1 cargo test -p kron-operator writes it"
        );
    }
    // A client-side apply keeps the whole in an annotation of at most 256 KiB.
    assert!(manifests::crd().len() < 100_000);
}

fn rules(path: &str, kinds: [&str; 2]) -> Vec<Value> {
    let documents = documents(path);
    let roles =
        documents.iter().filter(|document| kinds.contains(&document["kind"].as_str().unwrap_or_default()));
    roles.flat_map(|role| role["rules"].as_array().unwrap().clone()).collect()
}

#[test]
fn rights_are_these_and_no_others() {
    let golden = json!([
        {"apiGroups": ["kron.io"], "resources": ["kronjobs"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["kron.io"], "resources": ["kronjobs/status"], "verbs": ["update"]},
        {"apiGroups": ["kron.io"], "resources": ["kronjobs/finalizers"], "verbs": ["update"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "delete", "get", "list", "patch", "watch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["kron-operator"], "verbs": ["get", "update"]},
    ]);
    for path in ["deploy/operator.yaml", "deploy/namespaced.yaml"] {
        assert_eq!(Value::Array(rules(path, ["ClusterRole", "Role"])), golden, "{path}");
    }
    let namespaced = documents("deploy/namespaced.yaml");
    assert!(namespaced.iter().all(|document| !document["kind"].as_str().unwrap().starts_with("Cluster")));
    // The chart has the same, between its braces.
    let chart = read("charts/kron-operator/templates/rbac.yaml");
    let blocks = |text: &str| -> Vec<String> {
        let part = |block: &str| block.split("\n---\n").next().unwrap().trim_end().to_owned();
        text.split("\nrules:\n").skip(1).map(part).collect()
    };
    assert_eq!(blocks(&chart), blocks(&read("deploy/operator.yaml")));
}

#[test]
fn pods_are_restricted() {
    for path in ["deploy/operator.yaml", "deploy/namespaced.yaml"] {
        let documents = documents(path);
        let deployment = documents.iter().find(|document| document["kind"] == "Deployment").unwrap();
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(
            container["securityContext"],
            json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true})
        );
    }
}
