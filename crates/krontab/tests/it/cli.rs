//! The real program, run as people run it.
//!
//! A file of `data/cli` is a transcript: what was typed, what came out, and the exit code. Lines that
//! begin with `! ` came from standard error. Every transcript has a directory of its own, with the files
//! of `data/cli/files` in it; `DIR` stands for its path. Besides `krontab` there are `cat FILE`,
//! `ls DIRECTORY` (names and permissions), `chmod MODE FILE`, `cp`, `mkdir` and `ln -s`.
//!
//! `KRON_BLESS=1 cargo test -p krontab cli` writes the transcripts anew; read them before they are kept.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[test]
fn commands_answer_as_in_the_transcripts() {
    let mut transcripts: Vec<PathBuf> = fs::read_dir(data())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    transcripts.sort();
    assert!(transcripts.len() >= 12, "where are the transcripts?");
    let mut wrong = Vec::new();
    for path in transcripts {
        let expected = fs::read_to_string(&path).unwrap();
        let found = Shell::new().replay(&expected);
        if std::env::var_os("KRON_BLESS").is_some() {
            fs::write(&path, &found).unwrap();
        } else if found != expected {
            wrong.push(format!("{} is now:\n{found}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A directory with the files that the transcripts are about.
pub(crate) struct Shell {
    directory: tempfile::TempDir,
}

impl Shell {
    pub(crate) fn new() -> Shell {
        let directory = tempfile::tempdir().unwrap();
        for file in fs::read_dir(data().join("files")).unwrap() {
            let file = file.unwrap();
            let copy = directory.path().join(file.file_name());
            fs::copy(file.path(), &copy).unwrap();
            // However strict or lax the one is who checked it out.
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
        }
        Shell { directory }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    /// A krontab in this directory, and in an environment that has nothing to say.
    pub(crate) fn krontab(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_krontab"));
        command.current_dir(self.path()).env_clear().env("HOME", self.path());
        command
    }

    /// The transcript as it comes out now.
    fn replay(&self, transcript: &str) -> String {
        let mut out = String::new();
        let mut lines = transcript.lines();
        while let Some(line) = lines.next() {
            let _ = writeln!(out, "{line}");
            let Some(typed) = line.strip_prefix("$ ") else { continue };
            out.push_str(&self.run(typed));
            // What is written down goes to the exit code; a command that was just typed has nothing yet.
            let mut answer = lines.clone().take_while(|line| !line.starts_with("$ "));
            if let Some(end) = answer.position(|line| line.starts_with("[exit ")) {
                lines.nth(end);
            }
        }
        out
    }

    fn run(&self, typed: &str) -> String {
        let (words, input) = words(typed);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let answer = match words.as_slice() {
            ["krontab", arguments @ ..] => {
                let mut command = self.krontab();
                command
                    .args(arguments.iter().map(|word| word.replace("DIR", &self.path().to_string_lossy())));
                let input = input.map(|name| fs::read(self.path().join(name)).unwrap());
                transcribed(&output(command, input.as_deref()))
            }
            other => self.builtin(other) + "[exit 0]\n",
        };
        answer.replace(&*self.path().to_string_lossy(), "DIR")
    }

    fn builtin(&self, words: &[&str]) -> String {
        let at = |name: &str| self.path().join(name);
        match *words {
            ["cat", file] => return fs::read_to_string(at(file)).unwrap(),
            ["ls", directory] => return listing(&at(directory)),
            ["chmod", mode, file] => {
                let mode = u32::from_str_radix(mode, 8).unwrap();
                fs::set_permissions(at(file), fs::Permissions::from_mode(mode)).unwrap();
            }
            ["cp", file, copy] => {
                fs::copy(at(file), at(copy)).unwrap();
            }
            ["mkdir", directory] => fs::create_dir(at(directory)).unwrap(),
            ["ln", "-s", target, name] => std::os::unix::fs::symlink(target, at(name)).unwrap(),
            _ => panic!("unknown command: {words:?}"),
        }
        String::new()
    }
}

/// Runs a command with that standard input.
pub(crate) fn output(mut command: Command, input: Option<&[u8]>) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that does not read its input closes it, and that is its right.
    let _ = child.stdin.take().unwrap().write_all(input.unwrap_or_default());
    child.wait_with_output().unwrap()
}

fn transcribed(output: &Output) -> String {
    let mut out = String::from_utf8_lossy(&output.stdout).into_owned();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push_str("(no newline)\n");
    }
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        let _ = writeln!(out, "{}", format!("! {line}").trim_end());
    }
    let _ = writeln!(out, "[exit {}]", output.status.code().unwrap());
    out
}

/// The words of a command line, as a shell divides them, and the file after `<`.
fn words(line: &str) -> (Vec<String>, Option<String>) {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    let input = words.iter().position(|word| word == "<").map(|at| {
        let input = words[at + 1].clone();
        words.truncate(at);
        input
    });
    (words, input)
}

fn listing(directory: &Path) -> String {
    let mut lines: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
            format!("{mode:04o} {}\n", entry.file_name().to_string_lossy())
        })
        .collect();
    lines.sort();
    lines.concat()
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data/cli")
}
