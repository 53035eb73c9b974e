//! The `kron-server` program.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use kron_server::cron::Counting;
use kron_server::job::Defaults;
use kron_server::serve::{Settings, serve};
use kron_server::store::Retention;
use tracing_subscriber::EnvFilter;

/// An Open Job Spec server: cron jobs, jobs, workers and events over HTTP.
#[derive(Debug, Parser)]
#[command(name = "kron-server", version, after_help = EXAMPLES)]
struct Args {
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", env = "KRON_LISTEN")]
    listen: SocketAddr,
    /// Where the database is; made if there is none.
    #[arg(long, value_name = "DIR", default_value = "kron-data", env = "KRON_DATA")]
    data: PathBuf,
    /// Let tests reset the server and set its clock. Never for anything else.
    #[arg(long)]
    test_mode: bool,
    /// Which jobs of a cron job stand in the way of its next: those that are active, or all that have not ended.
    #[arg(long, value_name = "WHICH", value_enum, default_value = "active")]
    overlap_counts: OverlapCounts,
    /// How to write the log, to standard error.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    log_format: LogFormat,
}

const EXAMPLES: &str = "\
Examples:
  kron-server
  kron-server --listen 127.0.0.1:9000 --data /var/lib/kron-server
  curl -s localhost:8080/ojs/v1/cron -H 'Content-Type: application/json' \\
    -d '{\"name\":\"hello\",\"cron\":\"* * * * *\",\"type\":\"hello.world\"}'

Exit codes: 0 ended as asked; 1 could not start; 2 wrong usage.";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverlapCounts {
    Active,
    Unfinished,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    Json,
    Text,
}

fn main() -> ExitCode {
    let args = Args::parse();
    log(args.log_format);
    let settings = Settings {
        listen: args.listen,
        data: args.data,
        test_mode: args.test_mode,
        counting: match args.overlap_counts {
            OverlapCounts::Active => Counting::Active,
            OverlapCounts::Unfinished => Counting::Unfinished,
        },
        defaults: Defaults::default(),
        retention: Retention::default(),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("could not start: {error}")),
    };
    match runtime.block_on(serve(settings)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => failed(&message),
    }
}

fn failed(message: &str) -> ExitCode {
    eprintln!("kron-server: {message}");
    ExitCode::FAILURE
}

fn log(format: LogFormat) {
    let filter = EnvFilter::try_from_env("KRON_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Json => log.json().init(),
        LogFormat::Text => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
    }
}
