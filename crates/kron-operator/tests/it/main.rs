//! Tests of the operator that need no cluster. Those that do are in `kube-rig/`.

mod simulated;
