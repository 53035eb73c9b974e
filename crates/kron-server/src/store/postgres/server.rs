//! A PostgreSQL server for tests: started once, with a database for each.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Place;

/// One server for all tests of a process. It ends with the process that waits for a pipe to be closed.
struct Server {
    socket: PathBuf,
    port: u16,
}

/// A new database on it. None where PostgreSQL is not installed.
pub(in crate::store) fn database() -> Option<Place> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = SERVER.get_or_init(start).as_ref()?;
    let name = format!("kron_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let Server { socket, port } = server;
    // What comes after the question mark leads to the socket; without that it is reached by TCP.
    let url = |name: &str| format!("postgres://kron@127.0.0.1:{port}/{name}?host={}", socket.display());
    let made = Command::new(tool("psql")?)
        .args(["-qX", "-h"])
        .arg(socket)
        .args(["-U", "kron", "-d", "postgres", "-p", &port.to_string()])
        .args(["-c", &format!("CREATE DATABASE {name}")])
        .status()
        .unwrap();
    assert!(made.success(), "no database could be made");
    Some(Place { url: url(&name), direct: Some(url(&name)), pooler: false, connections: 8 })
}

/// Where a program of PostgreSQL is.
fn tool(name: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions
        .flatten()
        .map(|version| version.path().join("bin").join(name))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found.pop()
}

#[expect(clippy::disallowed_methods, reason = "a test waits for a process")]
fn start() -> Option<Server> {
    let (initdb, postgres) = (tool("initdb")?, tool("postgres")?);
    let home = tempfile::Builder::new().prefix("kron-pg").tempdir_in("/tmp").unwrap().keep();
    let (data, socket) = (home.join("data"), home.join("socket"));
    std::fs::create_dir_all(&socket).unwrap();
    if rustix::process::geteuid().is_root() {
        let owned = Command::new("chown").args(["-R", "postgres"]).arg(&home).status().unwrap();
        assert!(owned.success());
    }
    let made = as_postgres(&initdb)
        .args(["-A", "trust", "-U", "kron", "-E", "UTF8", "--no-sync", "-D"])
        .arg(&data)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success(), "initdb failed");
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).unwrap().port();
    // The shell outlives the tests by a moment: when the pipe to it is closed, it stops the server and cleans up.
    let script = format!(
        "{} -D {data} -k {socket} -c listen_addresses=127.0.0.1 -c port={port} -c fsync=off -c max_connections=300 >{home}/log 2>&1 & \
         cat >/dev/null; kill -INT $!; wait; rm -rf {home}",
        postgres.display(),
        data = data.display(),
        socket = socket.display(),
        home = home.display(),
    );
    let keeper =
        as_postgres(Path::new("/bin/sh")).arg("-c").arg(script).stdin(Stdio::piped()).spawn().unwrap();
    std::mem::forget(keeper);
    for _ in 0..600 {
        let ready = Command::new(tool("pg_isready")?)
            .arg("-qh")
            .arg(&socket)
            .args(["-p", &port.to_string()])
            .status()
            .unwrap();
        if ready.success() {
            return Some(Server { socket, port });
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("PostgreSQL did not start: {}", std::fs::read_to_string(home.join("log")).unwrap_or_default());
}

/// PostgreSQL refuses to run as root.
fn as_postgres(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"]).arg(program);
    command.current_dir("/tmp");
    command
}
