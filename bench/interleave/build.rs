//! The locks are shuttle's.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(kron_shuttle)");
    println!("cargo::rustc-cfg=kron_shuttle");
}
