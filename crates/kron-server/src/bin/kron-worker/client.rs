//! What a worker says to a server, and what it hears.

use std::path::Path;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The way to a server.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    base: String,
    authorization: Option<String>,
}

/// Why a request came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server understood it and will not do it.
    Refused { status: u16, message: String },
    /// The server could not be reached, or is in trouble; it may be tried again.
    Unreachable(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Refused { status, message } => write!(f, "{message} ({status})"),
            Failure::Unreachable(why) => f.write_str(why),
        }
    }
}

/// A job, as far as a worker needs to know it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Job {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) queue: String,
    pub(crate) args: Box<RawValue>,
    pub(crate) meta: Box<RawValue>,
    pub(crate) attempt: u32,
    /// Which time it was handed out; other servers may not say.
    #[serde(default)]
    pub(crate) fence: Option<u64>,
    #[serde(default)]
    pub(crate) timeout_ms: Option<u64>,
}

impl Job {
    /// What says which attempt of which job is spoken of.
    fn claim(&self, worker_id: &str) -> Value {
        let mut claim = json!({"worker_id": worker_id, "job_id": self.id});
        if let Some(fence) = self.fence {
            claim["fence"] = json!(fence);
        }
        claim
    }

    /// A text in its meta.
    pub(crate) fn meta(&self, name: &str) -> Option<String> {
        let meta: Value = serde_json::from_str(self.meta.get()).ok()?;
        meta[name].as_str().map(str::to_owned)
    }
}

#[derive(Deserialize)]
struct Fetched {
    jobs: Vec<Job>,
}

/// The answer to a heartbeat.
#[derive(Debug, Deserialize)]
pub(crate) struct Beaten {
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) cancelled_jobs: Vec<String>,
    #[serde(default)]
    pub(crate) lost_jobs: Vec<String>,
}

/// How long a fetch waits at the server for work.
const WAIT: Duration = Duration::from_secs(10);

/// How long any answer may take, beyond what was waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The largest answer that is read: a batch of jobs of a mebibyte each.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let place = path.display();
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates =
        read.map_err(|error| format!("could not read the certificates in {place}: {error}"))?;
    if certificates.is_empty() {
        return Err(format!("expected certificates in {place} in the PEM form, but found none"));
    }
    Ok(certificates)
}

impl Client {
    /// The way to the server of a URL, with a token to show it, and certificates to trust beside the host's own.
    pub(crate) fn new(url: &str, token: Option<&str>, ca: Option<&Path>) -> Result<Client, String> {
        let base = url.trim_end_matches('/').to_owned();
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(format!("expected a URL such as http://127.0.0.1:8080, but found `{url}`"));
        }
        // Whoever comes first sets it, and all set the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut roots = rustls_native_certs::load_native_certs().certs;
        if let Some(path) = ca {
            roots.extend(read_certificates(path)?);
        }
        let roots = roots.iter().map(|root| ureq::tls::Certificate::from_der(root).to_owned());
        let roots = ureq::tls::RootCerts::new_with_certs(&roots.collect::<Vec<_>>());
        let config = ureq::Agent::config_builder()
            .tls_config(ureq::tls::TlsConfig::builder().root_certs(roots).build())
            .http_status_as_error(false)
            .timeout_global(Some(WAIT + PATIENCE))
            .max_redirects(0)
            .build();
        Ok(Client { agent: config.into(), base, authorization: token.map(|token| format!("Bearer {token}")) })
    }

    pub(crate) fn fetch(
        &self,
        worker_id: &str,
        queues: &[String],
        count: usize,
        wait: bool,
    ) -> Result<Vec<Job>, Failure> {
        let mut body = json!({"worker_id": worker_id, "queues": queues, "count": count});
        if wait {
            body["wait_ms"] = json!(WAIT.as_millis());
        }
        let fetched: Fetched = self.post("/ojs/v1/workers/fetch", &body)?;
        Ok(fetched.jobs)
    }

    pub(crate) fn ack(&self, worker_id: &str, job: &Job, result: &Value) -> Result<Value, Failure> {
        let mut body = job.claim(worker_id);
        body["result"] = result.clone();
        self.post("/ojs/v1/workers/ack", &body)
    }

    pub(crate) fn nack(&self, worker_id: &str, job: &Job, error: &Value) -> Result<Value, Failure> {
        let mut body = job.claim(worker_id);
        body["error"] = error.clone();
        self.post("/ojs/v1/workers/nack", &body)
    }

    pub(crate) fn give_back(&self, worker_id: &str, job: &Job) -> Result<Value, Failure> {
        let mut body = job.claim(worker_id);
        body["requeue"] = json!(true);
        body["error"] = json!({"code": "shutdown", "message": "the worker was asked to end"});
        self.post("/ojs/v1/workers/nack", &body)
    }

    pub(crate) fn beat(&self, worker_id: &str, jobs: &[String], state: &str) -> Result<Beaten, Failure> {
        let pid = std::process::id();
        let body = json!({"worker_id": worker_id, "active_jobs": jobs, "state": state, "pid": pid});
        self.post("/ojs/v1/workers/heartbeat", &body)
    }

    fn post<T: serde::de::DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Failure> {
        let unreachable =
            |error: &dyn std::fmt::Display| Failure::Unreachable(format!("{}: {error}", self.base));
        let mut request = self
            .agent
            .post(format!("{}{path}", self.base))
            .header("Content-Type", "application/openjobspec+json")
            .header("OJS-Version", "1.0");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let mut answer = request.send(body.to_string()).map_err(|error| unreachable(&error))?;
        let status = answer.status().as_u16();
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        let text = text.map_err(|error| unreachable(&error))?;
        match status {
            200..=299 => serde_json::from_str(&text).map_err(|error| unreachable(&error)),
            429 | 500..=599 => Err(unreachable(&format!("status {status}"))),
            _ => {
                let message = serde_json::from_str(&text)
                    .ok()
                    .and_then(|body: Value| body["error"]["message"].as_str().map(str::to_owned));
                Err(Failure::Refused {
                    status,
                    message: message.unwrap_or_else(|| format!("status {status}")),
                })
            }
        }
    }
}
