//! TLS: the server's certificate, its renewal, and a worker that asks for it.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use serde_json::json;

use super::process::ended;
use super::server::{Home, MEDIA, Server, pause};

/// A certificate for this host, and where it is.
struct Certificate {
    made: CertifiedKey<KeyPair>,
    cert: PathBuf,
    key: PathBuf,
}

impl Certificate {
    fn new(home: &Home) -> Certificate {
        let made = generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let place = |name: &str| home.data().with_file_name(name);
        let certificate = Certificate { made, cert: place("cert.pem"), key: place("key.pem") };
        certificate.write();
        certificate
    }

    fn write(&self) {
        fs::write(&self.cert, self.made.cert.pem()).unwrap();
        fs::write(&self.key, self.made.signing_key.serialize_pem()).unwrap();
    }

    fn arguments(&self) -> [&str; 4] {
        ["--tls-cert", self.cert.to_str().unwrap(), "--tls-key", self.key.to_str().unwrap()]
    }

    /// The status of an answer to somebody who trusts this certificate and no other.
    fn ask(&self, server: &Server, path: &str, authorization: Option<&str>) -> Result<u16, ureq::Error> {
        drop(rustls::crypto::ring::default_provider().install_default());
        let root = ureq::tls::Certificate::from_der(self.made.cert.der()).to_owned();
        let roots = ureq::tls::RootCerts::new_with_certs(&[root]);
        let agent = ureq::Agent::config_builder()
            .tls_config(ureq::tls::TlsConfig::builder().root_certs(roots).build())
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(30)))
            .build()
            .new_agent();
        let mut request = agent.get(format!("{}{path}", server.url));
        if let Some(value) = authorization {
            request = request.header("Authorization", value);
        }
        request.call().map(|answer| answer.status().as_u16())
    }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        pause(100);
    }
    panic!("waited in vain: {what}");
}

#[test]
fn a_certificate_is_renewed_without_a_restart_and_a_bad_one_changes_nothing() {
    let home = Home::new();
    let first = Certificate::new(&home);
    let settings = home.settings("[limits]\ntls_handshake = \"1s\"");
    let server = home.start(&[&["--config", &settings][..], &first.arguments()].concat());
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
    assert_eq!(first.ask(&server, "/ojs/v1/health", None).unwrap(), 200);

    // Whoever speaks no TLS, or nothing at all, is not answered.
    let plain = server.raw(b"GET /ojs/v1/health HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(!plain.starts_with("HTTP"), "{plain}");
    let mut silent = server.connect();
    silent.write_all(b"\x16\x03\x01").unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    drop(
        silent.read(&mut [0; 16]).map(|count| assert_eq!(count, 0, "a handshake that never ends is cut off")),
    );

    let second = Certificate::new(&home);
    assert!(
        second.ask(&server, "/ojs/v1/health", None).is_err(),
        "the new one counts only when it is asked for"
    );
    server.hang_up();
    eventually("the new certificate is used", || second.ask(&server, "/ojs/v1/health", None).is_ok());
    assert!(first.ask(&server, "/ojs/v1/health", None).is_err(), "and the old one is not");

    fs::write(&second.key, first.made.signing_key.serialize_pem()).unwrap();
    server.hang_up();
    eventually("it is told", || server.said().contains("the certificate stays as it was"));
    assert!(server.said().contains("is not that of the first certificate in"), "{}", server.said());
    assert_eq!(second.ask(&server, "/ojs/v1/health", None).unwrap(), 200);

    let (home, status) = server.stop();
    assert_eq!(status.code(), Some(0));
    let output = ended(home.command(&second.arguments()));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "but nothing begins with it: {said}");
    assert!(said.contains("is not that of the first certificate in"), "{said}");
    let output = ended(home.command(&second.arguments()[..2]));
    assert_eq!(output.status.code(), Some(2), "a certificate needs its key");
}

#[test]
fn without_tls_a_hangup_changes_nothing() {
    let server = Server::new();
    server.hang_up();
    eventually("it is told", || server.said().contains("there is nothing to read again"));
    server.get("/ojs/v1/health").is(200, "and it lives");
}

#[test]
fn a_worker_works_over_tls_with_a_token() {
    let home = Home::new();
    let certificate = Certificate::new(&home);
    let work = home.token("worker-1", &["work"], &[]);
    let all = home.token("admin", &["admin"], &[]);
    let server = home.start(&certificate.arguments());
    let ca = certificate.cert.to_str().unwrap();
    let worker = |more: &[&str], token: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kron-worker"));
        command.args(["--url", &server.url, "--drain"]).args(more).args(["--", "sh", "-c", "echo done"]);
        command.env_remove("KRON_TOKEN").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        token.map(|token| command.env("KRON_TOKEN", token));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let authorization = format!("Bearer {all}");
    let agent = {
        drop(rustls::crypto::ring::default_provider().install_default());
        let root = ureq::tls::Certificate::from_der(certificate.made.cert.der()).to_owned();
        let tls =
            ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::new_with_certs(&[root])).build();
        ureq::Agent::config_builder().tls_config(tls).build().new_agent()
    };
    let push = || {
        let request = agent.post(format!("{}/ojs/v1/jobs", server.url));
        let request = request.header("Authorization", &authorization).header("Content-Type", MEDIA);
        let mut answer = request.send(json!({"type": "a.b", "args": []}).to_string()).unwrap();
        let job: serde_json::Value =
            serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        job["job"]["id"].as_str().unwrap().to_owned()
    };
    let state = |id: &str| {
        let request = agent.get(format!("{}/ojs/v1/jobs/{id}", server.url));
        let mut answer = request.header("Authorization", &authorization).call().unwrap();
        let job: serde_json::Value =
            serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        job["job"]["state"].as_str().unwrap().to_owned()
    };

    let id = push();
    let (code, said) = worker(&["--ca", ca, "--token", &work], None);
    assert_eq!((code, state(&id).as_str()), (Some(0), "completed"), "{said}");
    let id = push();
    let (code, said) = worker(&["--ca", ca], Some(&work));
    assert_eq!((code, state(&id).as_str()), (Some(0), "completed"), "{said}");

    let (code, said) = worker(&["--ca", ca], None);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("expected a token with the scope `work`"), "{said}");
    let (code, said) = worker(&["--ca", certificate.key.to_str().unwrap()], Some(&work));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("expected certificates in") && said.contains("but found none"), "{said}");
    assert!(!said.contains(&work[5..]), "no secret is told");
    let output = Command::new(env!("CARGO_BIN_EXE_kron-worker"))
        .env("KRON_TOKEN", &work)
        .arg("--help")
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains(&work[5..]), "nor by --help");
}
