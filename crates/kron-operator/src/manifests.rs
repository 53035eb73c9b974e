//! What is installed in a cluster, generated from the types and from one list of rights.

use kube::CustomResourceExt;

use crate::api::KronJob;

/// The CRD, as YAML.
///
/// # Panics
///
/// Never: it is the same every time.
#[must_use]
pub fn crd() -> String {
    let yaml = serde_saphyr::to_string(&KronJob::crd()).expect("a CRD can be written");
    format!("# Generated from crates/kron-operator/src/api.rs by `kron-operator crd`.\n{yaml}")
}
