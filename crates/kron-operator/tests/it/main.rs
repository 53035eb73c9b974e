//! Tests of the operator that need no cluster. Those that do are in `kube-rig/`.

mod histories;
mod manifests;
mod quiet;
mod same_words;
mod tool;
mod world;
