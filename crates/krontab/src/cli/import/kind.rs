//! What a file is: told by whoever asks, or else guessed by its path and its content.

use std::path::Path;

use clap::ValueEnum;

/// Another scheduler's file.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Kind {
    /// A user's crontab, as `crontab -l` prints it
    Crontab,
    /// /etc/crontab or a file of /etc/cron.d, with a user after the five fields
    System,
    /// A .timer unit of systemd
    Systemd,
    /// A manifest with `CronJob`s of Kubernetes, in YAML or JSON
    Kubernetes,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Crontab => "a user's crontab",
            Kind::System => "a system crontab, with users",
            Kind::Systemd => "a systemd timer",
            Kind::Kubernetes => "a Kubernetes manifest",
        }
    }

    /// What a file seems to be.
    pub(crate) fn guess(path: &Path, text: &str) -> Kind {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let directory = path.parent().and_then(Path::file_name);
        match extension {
            "timer" => return Kind::Systemd,
            "yaml" | "yml" | "json" => return Kind::Kubernetes,
            _ => {}
        }
        let has_line = |wanted: &str| text.lines().any(|line| line.trim() == wanted);
        if Kind::owner(path).is_some() {
            Kind::Crontab
        } else if has_line("[Timer]") {
            Kind::Systemd
        } else if has_line("kind: CronJob") || has_line("kind: \"CronJob\"") {
            Kind::Kubernetes
        } else if path == Path::new("/etc/crontab")
            || directory.is_some_and(|name| name == "cron.d")
            || text.lines().any(names_root)
        {
            Kind::System
        } else {
            Kind::Crontab
        }
    }

    /// Whose a crontab is, if it is where crons keep those of users: `/var/spool/cron/crontabs/ann`.
    pub(crate) fn owner(path: &Path) -> Option<&str> {
        let directory = path.parent()?;
        let is_spool = directory.ends_with("cron/crontabs")
            || directory.ends_with("spool/cron")
            || directory.ends_with("cron/tabs");
        path.file_name()?.to_str().filter(|_| is_spool)
    }

    /// Whether a file of a directory is one that its scheduler reads.
    pub(crate) fn reads(name: &str) -> bool {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let ends = [".timer", ".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
        !name.is_empty() && (is_plain || ends)
    }
}

/// Whether a line has `root` after its five fields, or after an alias.
fn names_root(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    let skipped = if first.starts_with('@') { 0 } else { 4 };
    !first.starts_with('#') && words.nth(skipped) == Some("root")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_name_or_by_what_is_in_it() {
        for (path, text, kind) in [
            ("x.timer", "", Kind::Systemd),
            ("x", "[Unit]\n[Timer]\n", Kind::Systemd),
            ("jobs.yaml", "", Kind::Kubernetes),
            ("jobs", "apiVersion: batch/v1\nkind: CronJob\n", Kind::Kubernetes),
            ("/etc/crontab", "", Kind::System),
            ("a/cron.d/x", "", Kind::System),
            ("x", "# c\n1 2 * * * root /bin/true\n", Kind::System),
            ("x", "@daily root /bin/true\n", Kind::System),
            ("/var/spool/cron/crontabs/ann", "1 2 * * * root\n", Kind::Crontab),
            ("x", "# 1 2 * * * root\n1 2 * * * /bin/true root\n", Kind::Crontab),
        ] {
            assert_eq!(Kind::guess(Path::new(path), text), kind, "{path}: {text}");
        }
        assert_eq!(Kind::owner(Path::new("/var/spool/cron/ann")), Some("ann"));
        assert_eq!(Kind::owner(Path::new("crontabs/ann")), None);
        assert!(Kind::reads("e2scrub_all") && Kind::reads("a.timer"));
        assert!(!Kind::reads(".placeholder") && !Kind::reads("x.dpkg-old") && !Kind::reads("a~"));
    }
}
