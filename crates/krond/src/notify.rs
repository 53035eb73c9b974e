//! Telling systemd how krond is, if systemd asked for it: `sd_notify(3)`.

use std::env;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The jobs are loaded, and the first look was taken.
pub(crate) const READY: &str = "READY=1";

/// No more runs are started.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Says something to whoever started krond, if they listen. Nobody depends on it.
pub(crate) fn notify(state: &str) {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return };
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&path),
    };
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        let _ = socket.send_to_addr(state.as_bytes(), &address);
    }
}
