//! The `kron-server` program.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use kron_server::cron::Counting;
use kron_server::settings::{CONNECTIONS, LogFormat, REFERENCE, Settings, is_postgres};
use kron_server::store::PostgresPlace;
use kron_server::token_command::{self, TokenCommand};
use kron_server::{demo, hosts, openapi, serve, tls};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// An Open Job Spec server: cron jobs, jobs, workers and events over HTTP.
#[derive(Debug, Parser)]
#[command(name = "kron-server", version, after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The settings file; `kron-server settings` prints one with every default.
    #[arg(long, value_name = "FILE", env = "KRON_CONFIG", global = true)]
    config: Option<PathBuf>,
    /// Where to listen [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDRESS", env = "KRON_LISTEN")]
    listen: Option<SocketAddr>,
    /// A name by which clients may call the server, as they send it in Host; several may be given.
    #[arg(long = "host", value_name = "NAME", value_parser = host)]
    hosts: Vec<String>,
    /// The server's certificate and those that vouch for it, in the PEM form. With --tls-key the server speaks TLS.
    #[arg(long, value_name = "FILE", env = "KRON_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, in the PEM form. A SIGHUP has both read again.
    #[arg(long, value_name = "FILE", env = "KRON_TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Where the database is; made if there is none [default: kron-data].
    #[arg(long, value_name = "DIR", env = "KRON_DATA", global = true)]
    data: Option<PathBuf>,
    /// The database: `postgres://…`, which many servers can share, or `sqlite:DIR`, the same as --data DIR.
    #[arg(long, value_name = "URL", env = "KRON_DATABASE", hide_env_values = true, conflicts_with = "data",
        value_parser = database, global = true)]
    database: Option<Database>,
    /// The PostgreSQL database around a pooler, to hear at once what other servers do.
    #[arg(long, value_name = "URL", env = "KRON_DATABASE_DIRECT", hide_env_values = true, value_parser = direct)]
    database_direct: Option<String>,
    /// A transaction pooler such as pgbouncer stands before PostgreSQL.
    #[arg(long)]
    database_pooler: bool,
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

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the OpenAPI document of everything that the server answers.
    Openapi,
    /// Print a settings file with every setting and its default.
    Settings,
    /// Make, list and revoke the tokens of a server, whether it runs or not.
    #[command(subcommand)]
    Token(TokenCommand),
}

const EXAMPLES: &str = "\
Examples:
  kron-server --demo
  kron-server --listen 127.0.0.1:9000 --data /var/lib/kron-server
  kron-server token create --name worker-1 --scope work --expires 90d --data /var/lib/kron-server
  kron-server --listen 0.0.0.0:8443 --host kron.example.org:8443 --tls-cert server.pem --tls-key server.key
  kron-server --database postgres://kron@localhost/kron
  curl -s localhost:8080/ojs/v1/cron -H 'Content-Type: application/json' \\
    -d '{\"name\":\"hello\",\"cron\":\"* * * * *\",\"type\":\"hello.world\"}'

Exit codes: 0 ended as asked; 1 could not start; 2 wrong usage.";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverlapCounts {
    Active,
    Unfinished,
}

fn main() -> ExitCode {
    let mut args = Args::parse();
    match args.command.take() {
        Some(Command::Openapi) => {
            println!("{:#}", openapi::document());
            return ExitCode::SUCCESS;
        }
        Some(Command::Settings) => {
            print!("{REFERENCE}");
            return ExitCode::SUCCESS;
        }
        Some(Command::Token(command)) => {
            let done = settings(args).and_then(|settings| token_command::run(&command, &settings));
            return match done {
                Ok(()) => ExitCode::SUCCESS,
                Err(message) => failed(&message),
            };
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
    settings.hosts.extend(args.hosts);
    if let (Some(cert), Some(key)) = (args.tls_cert, args.tls_key) {
        settings.tls = Some(tls::Files { cert, key });
    }
    match (args.data, args.database) {
        (Some(data), _) | (None, Some(Database::Sqlite(data))) => {
            (settings.data, settings.postgres) = (data, None);
        }
        (None, Some(Database::Postgres(url))) => {
            let usual =
                PostgresPlace { url: String::new(), direct: None, pooler: false, connections: CONNECTIONS };
            settings.postgres = Some(PostgresPlace { url, ..settings.postgres.unwrap_or(usual) });
        }
        (None, None) => {}
    }
    match &mut settings.postgres {
        Some(place) => {
            place.direct = args.database_direct.or(place.direct.take());
            place.pooler |= args.database_pooler;
        }
        None if args.database_direct.is_some() || args.database_pooler => {
            return Err("--database-direct and --database-pooler are for --database postgres://…".into());
        }
        None => {}
    }
    settings.test_mode = args.test_mode;
    settings.log_format = args.log_format.unwrap_or(settings.log_format);
    settings.counting = match args.overlap_counts {
        Some(OverlapCounts::Active) => Counting::Active,
        Some(OverlapCounts::Unfinished) => Counting::Unfinished,
        None => settings.counting,
    };
    Ok(settings)
}

fn host(name: &str) -> Result<String, String> {
    hosts::check_name(name).map(|()| name.to_owned())
}

/// What --database names.
#[derive(Clone, Debug)]
enum Database {
    Postgres(String),
    Sqlite(PathBuf),
}

fn database(url: &str) -> Result<Database, String> {
    match url.strip_prefix("sqlite:") {
        Some(directory) if !directory.is_empty() => Ok(Database::Sqlite(directory.into())),
        _ => direct(url).map(Database::Postgres).map_err(|_| "expected sqlite:DIR or postgres://…".into()),
    }
}

fn direct(url: &str) -> Result<String, String> {
    if is_postgres(url) { Ok(url.to_owned()) } else { Err("expected postgres://…".into()) }
}

fn failed(message: &str) -> ExitCode {
    eprintln!("kron-server: {message}");
    ExitCode::FAILURE
}

fn log(format: LogFormat, demo: bool) {
    // The demonstration speaks for itself.
    // Spans are for collectors of traces.
    let usual = if demo { "warn" } else { "info,kron::span=off" };
    let filter = EnvFilter::try_from_env("KRON_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Json => lines.json().boxed(),
        LogFormat::Text => lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
    };
    let log = tracing_subscriber::registry().with(lines.with_filter(filter));
    #[cfg(feature = "otel")]
    let log = log.with(kron_server::otel::Traces::from_environment());
    log.init();
}
