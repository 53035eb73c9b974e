//! `kron-worker` runs a command for every job of a queue, so that jobs do something without a program of one's own.

mod client;
mod process;
mod work;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use client::Client;
use work::{Manners, work};

/// Run a command for every job of a kron-server's queues.
///
/// The command gets the job's arguments as a JSON array on standard input, and what else is known of the job in its
/// environment: `KRON_JOB_ID`, `KRON_JOB_TYPE`, `KRON_JOB_QUEUE`, `KRON_JOB_ATTEMPT`, `KRON_JOB_META` (JSON), `KRON_FENCE`, and for
/// jobs of cron jobs `KRON_CRON_NAME` and `KRON_CRON_TRIGGERED_AT`. If it ends with 0 the job is done, and what it
/// wrote to standard output is the job's result; any other end is a failure, told with the end of its standard error.
#[derive(Debug, Parser)]
#[command(name = "kron-worker", version, after_help = EXAMPLES)]
struct Args {
    /// Where the server is.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080", env = "KRON_URL")]
    url: String,
    /// A queue to work on; several in order of preference.
    #[arg(long = "queue", value_name = "NAME", default_value = "default")]
    queues: Vec<String>,
    /// How many jobs to work on at once.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    concurrency: u16,
    /// The name of this worker [default: the host, and a number of its own].
    #[arg(long, value_name = "NAME")]
    worker_id: Option<String>,
    /// The token for the server. Others on this host can see it in the list of processes, but not in the environment.
    #[arg(long, value_name = "TOKEN", env = "KRON_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// A file with the token for the server, which counts more than --token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificates in the PEM form that vouch for the server, beside those that the host trusts.
    #[arg(long, value_name = "FILE", env = "KRON_CA")]
    ca: Option<PathBuf>,
    /// Ends of the command that say that trying again is of no use.
    #[arg(long, value_name = "CODE", value_delimiter = ',', default_value = "65")]
    final_exit: Vec<u8>,
    /// How long a command that is asked to end has until it is killed, such as 10s.
    #[arg(long, value_name = "DURATION", default_value = "25s", value_parser = duration)]
    grace: Duration,
    /// End when there is nothing left to do.
    #[arg(long)]
    drain: bool,
    /// The command and its arguments, after `--`. No shell is involved.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  kron-worker --queue reports -- /usr/local/bin/make-report
  kron-worker --queue emails --concurrency 4 --final-exit 65,78 -- python3 send.py
  kron-worker --url https://kron.example.org --token-file token --ca ca.pem -- ./work
  kron-worker --drain -- sh -c 'cat; echo \"$KRON_JOB_TYPE\" >&2'

A first SIGTERM or SIGINT lets what runs end (up to --grace) and gives the rest back; a second ends it at once.

Exit codes: 0 ended as asked; 1 could not start; 2 wrong usage.";

fn main() -> ExitCode {
    let args = Args::parse();
    let filter = EnvFilter::try_from_env("KRON_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(ansi).init();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("kron-worker: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<(), String> {
    let token = match &args.token_file {
        Some(path) => {
            let token = std::fs::read_to_string(path);
            Some(token.map_err(|error| format!("could not read the token in {}: {error}", path.display()))?)
        }
        None => args.token,
    };
    let client = Client::new(&args.url, token.as_deref().map(str::trim), args.ca.as_deref())?;
    let manners = Manners {
        worker_id: args.worker_id.unwrap_or_else(name),
        queues: args.queues,
        concurrency: usize::from(args.concurrency),
        final_exits: args.final_exit,
        grace: args.grace,
        drain: args.drain,
        command: args.command,
    };
    work(client, manners)
}

/// A name that no other worker has.
fn name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}-{}", uuid::Uuid::now_v7().simple())
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration: kron_schedule::Duration = text.parse().map_err(|error| format!("{error}"))?;
    u64::try_from(duration.as_seconds())
        .map(Duration::from_secs)
        .map_err(|_| "expected no less than 0s".into())
}
