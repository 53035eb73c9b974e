//! The `kron-server` program.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use kron_server::cron::Counting;
use kron_server::settings::{LogFormat, REFERENCE, Settings};
use kron_server::{demo, openapi, serve};
use tracing_subscriber::EnvFilter;

/// An Open Job Spec server: cron jobs, jobs, workers and events over HTTP.
#[derive(Debug, Parser)]
#[command(name = "kron-server", version, after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The settings file; `kron-server settings` prints one with every default.
    #[arg(long, value_name = "FILE", env = "KRON_CONFIG")]
    config: Option<PathBuf>,
    /// Where to listen [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDRESS", env = "KRON_LISTEN")]
    listen: Option<SocketAddr>,
    /// Where the database is; made if there is none [default: kron-data].
    #[arg(long, value_name = "DIR", env = "KRON_DATA")]
    data: Option<PathBuf>,
    /// The database: `sqlite:DIR`, which is the same as --data DIR.
    #[arg(long, value_name = "URL", env = "KRON_DATABASE", conflicts_with = "data", value_parser = database)]
    database: Option<PathBuf>,
    /// Show what the server does: a database in a temporary directory, lively cron jobs and a worker.
    #[arg(long, conflicts_with_all = ["data", "database", "test_mode"])]
    demo: bool,
    /// Let tests reset the server and set its clock. Never for anything else.
    #[arg(long)]
    test_mode: bool,
    /// Which jobs of a cron job stand in the way of its next: those that are active, or all that have not ended
    /// [default: active].
    #[arg(long, value_name = "WHICH", value_enum)]
    overlap_counts: Option<OverlapCounts>,
    /// How to write the log, to standard error [default: text].
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Command {
    /// Print the OpenAPI document of everything that the server answers.
    Openapi,
    /// Print a settings file with every setting and its default.
    Settings,
}

const EXAMPLES: &str = "\
Examples:
  kron-server --demo
  kron-server --listen 127.0.0.1:9000 --data /var/lib/kron-server
  curl -s localhost:8080/ojs/v1/cron -H 'Content-Type: application/json' \\
    -d '{\"name\":\"hello\",\"cron\":\"* * * * *\",\"type\":\"hello.world\"}'

Exit codes: 0 ended as asked; 1 could not start; 2 wrong usage.";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverlapCounts {
    Active,
    Unfinished,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match args.command {
        Some(Command::Openapi) => {
            println!("{:#}", openapi::document());
            return ExitCode::SUCCESS;
        }
        Some(Command::Settings) => {
            print!("{REFERENCE}");
            return ExitCode::SUCCESS;
        }
        None => {}
    }
    let demo = args.demo;
    let settings = match settings(args) {
        Ok(settings) => settings,
        Err(message) => return failed(&message),
    };
    log(settings.log_format, demo);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("could not start: {error}")),
    };
    let served = runtime.block_on(async {
        if demo { demo::run(settings).await } else { serve::serve(settings, serve::announce).await }
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => failed(&message),
    }
}

fn settings(args: Args) -> Result<Settings, String> {
    let mut settings = Settings::load(args.config.as_deref())?;
    settings.listen = args.listen.unwrap_or(settings.listen);
    settings.data = args.data.or(args.database).unwrap_or(settings.data);
    settings.test_mode = args.test_mode;
    settings.log_format = args.log_format.unwrap_or(settings.log_format);
    settings.counting = match args.overlap_counts {
        Some(OverlapCounts::Active) => Counting::Active,
        Some(OverlapCounts::Unfinished) => Counting::Unfinished,
        None => settings.counting,
    };
    Ok(settings)
}

fn database(url: &str) -> Result<PathBuf, String> {
    match url.strip_prefix("sqlite:") {
        Some(directory) if !directory.is_empty() => Ok(directory.into()),
        _ => Err("expected sqlite:DIR, since this server keeps everything in SQLite".into()),
    }
}

fn failed(message: &str) -> ExitCode {
    eprintln!("kron-server: {message}");
    ExitCode::FAILURE
}

fn log(format: LogFormat, demo: bool) {
    // The demonstration speaks for itself.
    let usual = if demo { "warn" } else { "info" };
    let filter = EnvFilter::try_from_env("KRON_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Json => log.json().init(),
        LogFormat::Text => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
    }
}
