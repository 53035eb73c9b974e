//! The reference of all commands in Markdown, from the same definitions as the help.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use super::Cli;

/// docs/reference/krond-cli.md
pub(crate) fn markdown() -> String {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut out = String::from(HEAD);
    let commands = || command.get_subcommands().filter(|command| !command.is_hide_set());
    out.push_str("| command | what it does |\n| --- | --- |\n");
    for command in commands() {
        let name = command.get_name();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(out, "| [`krond {name}`](#krond-{name}) | {} |", cell(&about));
    }
    for command in commands() {
        section(&mut out, command);
    }
    out
}

const HEAD: &str = "\
# The krond daemon

<!-- Generated from the definitions of the flags by `krond reference`. Do not edit: a test compares. -->

Every command takes `--help`. An answer is on standard output, as text or, with `--format json`, as one JSON value. Errors are on
standard error and begin with `error: `. Times are RFC 3339, with any offset when they are read and in UTC when they are written.

Root has one krond for the system, with `/etc/krond.d` and `/var/lib/krond`. Anybody else can have one of their own, with
`~/.config/krond` and `~/.local/state/krond`, or where `XDG_CONFIG_HOME` and `XDG_STATE_HOME` say. A command speaks to the krond that
has its state in `--state-dir`.

| exit code | meaning |
| --- | --- |
| 0 | done; of `status`: it runs |
| 1 | no: not running, job not found, refused, or an error in a krontab |
| 2 | wrong arguments or settings, or a state that cannot be used: another version, another job, open to others, on a network file system |
| 3 | another krond has the state directory |
| 4 | the system does not work: the state directory cannot be opened or written at all |

";

fn section(out: &mut String, command: &Command) {
    let _ = writeln!(out, "\n## krond {}\n", command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let _ = writeln!(out, "{}.\n", about.unwrap_or_default().trim_end_matches('.'));
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(out, "```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    let arguments: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    let arguments: Vec<&Arg> = arguments.into_iter().filter(|arg| arg.get_id() != "help").collect();
    if !arguments.is_empty() {
        out.push_str("| argument | meaning | default |\n| --- | --- | --- |\n");
        for argument in arguments {
            row(out, argument);
        }
        out.push('\n');
    }
    if let Some(after) = command.get_after_help() {
        examples(out, &after.to_string());
    }
}

fn row(out: &mut String, argument: &Arg) {
    let value = argument.get_value_names().unwrap_or_default().first().map(ToString::to_string);
    let takes_value = argument.get_action().takes_values();
    let name = match (argument.get_long(), value) {
        (Some(long), Some(value)) if takes_value => format!("--{long} {value}"),
        (Some(long), _) => format!("--{long}"),
        (None, value) => value.unwrap_or_default(),
    };
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let mut possible: Vec<String> = Vec::new();
    if takes_value {
        possible =
            argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    }
    let (help, written) = match help.rsplit_once(" [default: ") {
        Some((help, default)) => (help.to_owned(), Some(default.trim_end_matches(']').to_owned())),
        None => (help, None),
    };
    let default = argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy()));
    let default = match written {
        Some(written) => written,
        None if takes_value && !argument.is_hide_default_value_set() => {
            default.collect::<Vec<_>>().join(", ")
        }
        None => String::new(),
    };
    let values = if possible.is_empty() { String::new() } else { format!(": {}", possible.join(", ")) };
    let _ = writeln!(out, "| `{}` | {}{values} | {default} |", cell(&name), cell(&help));
}

/// Examples are shown as code, and the line about exit codes as text.
fn examples(out: &mut String, after: &str) {
    let (examples, rest) = after.split_once("\n\n").unwrap_or((after, ""));
    let examples: Vec<&str> =
        examples.lines().skip(1).map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    let _ = writeln!(out, "```sh\n{}\n```\n\n{rest}", examples.join("\n"));
}

/// A text that may stand in a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
