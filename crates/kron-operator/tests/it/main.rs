//! Tests of the operator that need no cluster. Those that do are in `kube-rig/`.

mod manifests;
mod same_words;
mod simulated;
mod tool;
