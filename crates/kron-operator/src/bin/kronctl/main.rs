//! `kronctl`: asks about KronJobs, checks and converts manifests, and starts, suspends and resumes. Installed as
//! `kubectl-kron` it is `kubectl kron`.
#![allow(clippy::doc_markdown, reason = "the help shows these texts as they are")]

mod act;
mod ask;
mod cluster;
mod file;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use jiff::Timestamp;
use kron_operator::fault::told;
use serde::Serialize;

use self::cluster::Cluster;

/// Ask about KronJobs, check and convert manifests, and start, suspend and resume.
#[derive(Parser)]
#[command(name = "kronctl", version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Args {
    /// The namespace; that of the kubeconfig's context if absent.
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// The kubeconfig's context; the current one if absent.
    #[arg(long, global = true, value_name = "CONTEXT")]
    context: Option<String>,
    /// The kubeconfig; that of $KUBECONFIG, or ~/.kube/config, if absent.
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what a KronJob's next run depends on, and how its moment was chosen.
    Explain(ask::Explain),
    /// List the next runs.
    Next(ask::Next),
    /// Say what became of a period, or what will, and why.
    Why(ask::Why),
    /// Check manifests without a cluster.
    Validate(file::Validate),
    /// Make KronJobs of CronJobs, and say when they would fire differently.
    Convert(file::Convert),
    /// Start no more Jobs, until it is resumed.
    Suspend(act::Named),
    /// Start Jobs again, from the next period on.
    Resume(act::Named),
    /// Start a Job now, whatever the schedule says.
    Run(act::Named),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page.
    Man,
}

const EXAMPLES: &str = "\
Examples:
  kronctl next report -n ops
  kronctl why report --at 2026-03-01T02:30:00Z
  kronctl validate -f kronjob.yaml
  kubectl get cronjobs -o yaml | kronctl convert -f - > kronjobs.yaml

Exit codes: 0 answered, or done; 1 the answer is no: invalid, not found, or it would fire differently; 2 anything else.";

/// A time on the command line.
fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| format!("expected a time such as `2026-03-01T02:30:00Z`, but found `{text}`"))
}

/// Why a command could not answer, and its exit code.
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    fn no(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 1 }
    }

    fn usage(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 2 }
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Failure {
        match error {
            kube::Error::Api(status) if status.code == 404 && status.details.is_some() => {
                Failure::no(status.message.clone())
            }
            error => Failure::usage(told(&error)),
        }
    }
}

/// What is printed, and whether the answer is no.
struct Answer {
    text: String,
    is_no: bool,
}

impl Answer {
    fn of<T: Serialize>(args: &Args, value: &T, text: String) -> Answer {
        let json = || serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
        Answer { text: if args.json { json() } else { text }, is_no: false }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    match answer(&args) {
        Ok(answer) => {
            // A reader that has gone away has read enough.
            let _ = std::io::stdout().write_all(answer.text.as_bytes());
            ExitCode::from(u8::from(answer.is_no))
        }
        Err(failure) => {
            eprintln!("error: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

fn answer(args: &Args) -> Result<Answer, Failure> {
    match &args.command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "kronctl", &mut script);
            Ok(Answer { text: String::from_utf8_lossy(&script).into_owned(), is_no: false })
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Args::command())
                .render(&mut page)
                .map_err(|error| Failure::usage(error.to_string()))?;
            Ok(Answer { text: String::from_utf8_lossy(&page).into_owned(), is_no: false })
        }
        Command::Validate(command) => command.run(args),
        Command::Convert(command) => command.run(args),
        _ => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| Failure::usage(error.to_string()))?;
            runtime.block_on(asked(args))
        }
    }
}

async fn asked(args: &Args) -> Result<Answer, Failure> {
    let cluster = Cluster::find(args).await?;
    match &args.command {
        Command::Explain(command) => command.run(args, &cluster).await,
        Command::Next(command) => command.run(args, &cluster).await,
        Command::Why(command) => command.run(args, &cluster).await,
        Command::Suspend(command) => command.suspend(args, &cluster, true).await,
        Command::Resume(command) => command.suspend(args, &cluster, false).await,
        Command::Run(command) => command.start(args, &cluster).await,
        _ => Err(Failure::usage("that needs no cluster")),
    }
}
