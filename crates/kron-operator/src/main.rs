//! The operator's process: settings, leadership, signals.
#![allow(clippy::doc_markdown, reason = "the help shows these texts as they are")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use kron_operator::controller::Controller;
use kron_operator::fault::causes;
use kron_operator::lease::Leadership;
use kron_operator::metrics::Metrics;
use kron_operator::{manifests, serve};
use kube::{Client, Config};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// Looks after the KronJobs of a cluster.
///
/// At most one Job is ever created for a period of a KronJob, however many operators run and whatever stops them. Several may
/// run: one works, and another takes over within 30 seconds.
#[derive(Parser)]
#[command(name = "kron-operator", version, about, long_about)]
struct Args {
    /// Look only at this namespace, instead of all of them.
    #[arg(long, env = "KRON_NAMESPACE", value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// The namespace of the Lease, which is the operator's own.
    #[arg(long, env = "KRON_LEASE_NAMESPACE", value_name = "NAMESPACE", default_value = "kron-system")]
    lease_namespace: String,
    /// The name of the Lease.
    #[arg(long, env = "KRON_LEASE_NAME", value_name = "NAME", default_value = "kron-operator")]
    lease_name: String,
    /// The name of this process, such as its pod's; a random part is added.
    #[arg(long, env = "KRON_INSTANCE", value_name = "NAME", default_value = "kron-operator")]
    instance: String,
    /// Where /healthz, /readyz and /metrics are.
    #[arg(long, env = "KRON_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// A file with the token that /metrics asks for. Without one, only the host itself may read them.
    #[arg(long, env = "KRON_METRICS_TOKEN_FILE", value_name = "FILE")]
    metrics_token_file: Option<PathBuf>,
    /// How the log is written: json or text.
    #[arg(long, env = "KRON_LOG_FORMAT", value_name = "FORMAT", default_value = "json", value_parser = ["json", "text"])]
    log_format: String,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Print the CRD.
    Crd,
}

/// How long what is under way has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(25);

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(Command::Crd) = args.command {
        print!("{}", manifests::crd());
        return ExitCode::SUCCESS;
    }
    log(&args.log_format);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("no threads can be started: {error}")),
    };
    match runtime.block_on(run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    }
}

fn fail(message: &str) -> ExitCode {
    tracing::error!(event = "stopped", error = message);
    eprintln!("kron-operator: {message}");
    ExitCode::FAILURE
}

fn log(format: &str) {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info,kube=warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        "json" => builder.json().flatten_event(true).init(),
        _ => builder.init(),
    }
}

async fn run(args: Args) -> Result<(), String> {
    let token = match &args.metrics_token_file {
        None => None,
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("the file {} cannot be read: {error}", path.display()))?;
            let token = text.trim().to_owned();
            if token.is_empty() {
                return Err(format!("the file {} is empty: expected a token", path.display()));
            }
            Some(token)
        }
    };
    let client = client().await.map_err(|why| format!("no cluster can be found: {why}"))?;
    let holder = format!("{}-{:016x}", args.instance, random()?);
    let metrics = Arc::new(Metrics::default());
    let probes = tokio::spawn(serve::serve(args.listen, token, Arc::clone(&metrics)));
    // A port that is taken is told at once, not found out by a probe.
    tokio::time::sleep(Duration::from_millis(50)).await;
    if probes.is_finished() {
        let error = probes.await.map_or_else(
            |error| error.to_string(),
            |end| end.map_or_else(|e| e.to_string(), |()| String::new()),
        );
        return Err(format!("{} cannot be listened on: {error}", args.listen));
    }
    metrics.set_ready(true);
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let mut stopped = std::pin::pin!(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    });

    let mut leadership = Leadership::new(client.clone(), &args.lease_namespace, &args.lease_name, &holder);
    tracing::info!(event = "waiting", holder, lease = args.lease_name);
    tokio::select! {
        () = leadership.acquire() => {}
        () = &mut stopped => return Ok(()),
    }
    tracing::info!(event = "leading", holder);
    metrics.set_leader(true);
    let stop = Arc::new(Notify::new());
    let controller = Controller::new(client, holder, args.namespace, Arc::clone(&metrics));
    let mut working = tokio::spawn(controller.run(Arc::clone(&stop)));
    tokio::select! {
        // Somebody else may work by now. What this process has begun, it must not go on with.
        () = leadership.keep() => return Err("the Lease is lost".to_owned()),
        _ = &mut working => return Err("the controller ended".to_owned()),
        () = &mut stopped => {}
    }
    tracing::info!(event = "stopping");
    metrics.set_ready(false);
    stop.notify_one();
    let _ = tokio::time::timeout(GRACE, working).await;
    leadership.release().await;
    Ok(())
}

/// A client that sends what it is told to send, once: a creation that it would send again by itself could arrive after the Job is
/// recorded, released and gone.
async fn client() -> Result<Client, String> {
    let mut config = Config::infer().await.map_err(|error| causes(&error))?;
    config.default_retry = false;
    Client::try_from(config).map_err(|error| causes(&error))
}

fn random() -> Result<u64, String> {
    getrandom::u64().map_err(|error| format!("no random number can be had: {error}"))
}
