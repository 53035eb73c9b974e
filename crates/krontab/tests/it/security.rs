//! Which files are trusted. Real files, with real permissions.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use krontab::security::{FindingCode, Opened, Subject, Trust, open};
use krontab::{Directory, Krontab, Loaded, Severity};
use tempfile::TempDir;

use crate::world::{ZONES, source};

/// A directory of mode 0700 with a krontab of mode 0600.
struct World {
    directory: TempDir,
}

impl World {
    fn new() -> World {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("krontab"), "@daily name=a command=/bin/true env=A=b\n").unwrap();
        let world = World { directory };
        world.mode(&world.file(), 0o600);
        world.mode(world.path(), 0o700);
        world
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn file(&self) -> PathBuf {
        self.path().join("krontab")
    }

    fn mode(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn open(&self) -> Opened {
        open(&self.file(), &Trust::current()).unwrap()
    }

    fn findings(&self) -> Vec<(FindingCode, Subject)> {
        codes(&self.open())
    }
}

fn codes(opened: &Opened) -> Vec<(FindingCode, Subject)> {
    opened.findings.iter().map(|finding| (finding.code, finding.subject)).collect()
}

/// Some tests give files away, which only root can.
fn is_root() -> bool {
    Trust::current().user == 0
}

#[test]
fn a_file_of_ones_own_is_trusted() {
    let world = World::new();
    for mode in [0o400, 0o600, 0o640, 0o644] {
        world.mode(&world.file(), mode);
        assert_eq!(world.findings(), [], "{mode:o}");
    }
    let opened = world.open();
    assert!(opened.is_trusted());
    let mut text = String::new();
    opened.file.unwrap().read_to_string(&mut text).unwrap();
    assert!(text.starts_with("@daily"));
}

#[test]
fn what_everybody_can_write_is_not() {
    let world = World::new();
    world.mode(&world.file(), 0o666);
    let opened = world.open();
    assert_eq!(codes(&opened), [(FindingCode::WorldWritable, Subject::File)]);
    assert!(!opened.is_trusted());
    let file = world.file().display().to_string();
    assert_eq!(
        opened.findings[0].to_string(),
        format!("{file}: error: everybody can write the file; take the right away: `chmod o-w`")
    );
}

#[test]
fn nor_is_what_lies_where_everybody_can_put_things() {
    let world = World::new();
    for mode in [0o777, 0o1777] {
        world.mode(world.path(), mode);
        assert_eq!(world.findings(), [(FindingCode::WorldWritable, Subject::Directory)]);
    }
    world.mode(&world.file(), 0o602);
    let both =
        [(FindingCode::WorldWritable, Subject::Directory), (FindingCode::WorldWritable, Subject::File)];
    assert_eq!(world.findings(), both);
}

#[test]
fn a_group_may_write_if_it_is_ours() {
    let world = World::new();
    world.mode(&world.file(), 0o660);
    let trust = Trust { group: fs::metadata(world.file()).unwrap().gid(), ..Trust::current() };
    assert_eq!(codes(&open(&world.file(), &trust).unwrap()), []);
    let other = Trust { group: trust.group + 1, ..trust };
    assert_eq!(codes(&open(&world.file(), &other).unwrap()), [(FindingCode::GroupWritable, Subject::File)]);
    world.mode(world.path(), 0o770);
    let both =
        [(FindingCode::GroupWritable, Subject::Directory), (FindingCode::GroupWritable, Subject::File)];
    assert_eq!(codes(&open(&world.file(), &other).unwrap()), both);
}

#[test]
fn only_root_and_the_daemon_may_own_it() {
    let world = World::new();
    if !is_root() {
        return;
    }
    let stranger = 4_242;
    chown(world.file(), Some(stranger), None).unwrap();
    let opened = world.open();
    assert_eq!(codes(&opened), [(FindingCode::Owner, Subject::File)]);
    assert_eq!(opened.findings[0].message, "expected root to own the file, but found user 4242");
    // Its own user would trust it, in a directory of root's.
    let theirs = Trust { user: stranger, ..Trust::current() };
    assert_eq!(codes(&open(&world.file(), &theirs).unwrap()), []);
    chown(world.path(), Some(stranger + 1), None).unwrap();
    assert_eq!(codes(&open(&world.file(), &theirs).unwrap()), [(FindingCode::Owner, Subject::Directory)]);
    chown(world.path(), Some(0), None).unwrap();
}

#[test]
fn a_link_is_followed_only_if_that_is_wanted() {
    let world = World::new();
    let link = world.path().join("link");
    symlink("krontab", &link).unwrap();
    let refused = open(&link, &Trust::current()).unwrap();
    assert_eq!(codes(&refused), [(FindingCode::SymbolicLink, Subject::File)]);
    assert!(refused.file.is_none() && !refused.is_trusted());
    let follow = Trust { follow_links: true, ..Trust::current() };
    assert!(open(&link, &follow).unwrap().is_trusted());
    // The target is judged, not the link.
    world.mode(&world.file(), 0o666);
    assert_eq!(codes(&open(&link, &follow).unwrap()), [(FindingCode::WorldWritable, Subject::File)]);
}

#[test]
fn a_link_to_the_directory_is_one_too() {
    let world = World::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("krond.d");
    symlink(world.path(), &link).unwrap();
    world.mode(world.path(), 0o702);
    let opened = open(&link.join("krontab"), &Trust::current()).unwrap();
    let both =
        [(FindingCode::SymbolicLink, Subject::Directory), (FindingCode::WorldWritable, Subject::Directory)];
    assert_eq!(codes(&opened), both);
}

#[test]
fn what_is_not_a_file_is_not_read() {
    let world = World::new();
    let directory = world.path().join("d");
    fs::create_dir(&directory).unwrap();
    let pipe = world.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for (path, found) in [
        (directory.as_path(), "a directory"),
        (pipe.as_path(), "a pipe"),
        (Path::new("/dev/null"), "a device"),
    ] {
        let opened = open(path, &Trust::current()).unwrap();
        assert!(opened.file.is_none());
        let finding = opened.findings.last().unwrap();
        assert_eq!(finding.code, FindingCode::NotRegular);
        assert_eq!(finding.message, format!("expected a regular file, but found {found}"));
    }
}

#[test]
fn what_cannot_be_opened_is_an_error() {
    let world = World::new();
    assert!(open(&world.path().join("missing"), &Trust::current()).is_err());
    assert!(open(&world.path().join("missing/krontab"), &Trust::current()).is_err());
    assert!(open(Path::new("/"), &Trust::current()).is_err());
    assert!(open(Path::new(""), &Trust::current()).is_err());
}

#[test]
fn secrets_that_everybody_can_read_are_a_warning() {
    let world = World::new();
    let text = fs::read_to_string(world.file()).unwrap();
    let entries = Krontab::parse(&text, &source(), &ZONES).entries;
    assert_eq!(world.open().public_environment(&world.file(), &entries), None);
    world.mode(&world.file(), 0o644);
    let opened = world.open();
    let finding = opened.public_environment(&world.file(), &entries).unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.message, "everybody can read the environment variables of `a`");
    assert!(opened.is_trusted());
    let json = serde_json::to_value(&finding).unwrap();
    assert_eq!((&json["code"], &json["subject"]), (&"public-environment".into(), &"file".into()));
    assert_eq!(opened.public_environment(&world.file(), &[]), None);
}

#[test]
fn a_directory_is_checked_with_all_of_its_files() {
    let world = World::new();
    let at = |name: &str| world.path().join(name);
    for name in ["group", "everybody", "left.bak"] {
        fs::copy(world.file(), at(name)).unwrap();
    }
    world.mode(&at("group"), 0o660);
    world.mode(&at("everybody"), 0o666);
    symlink("krontab", at("link")).unwrap();
    fs::create_dir(at("more")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();

    let other = Trust { group: fs::metadata(world.file()).unwrap().gid() + 1, ..Trust::current() };
    let directory = Directory::open(world.path(), other).unwrap();
    assert_eq!(directory.findings(), []);
    let found: Vec<(String, Vec<FindingCode>, bool)> = directory
        .krontabs(&ZONES)
        .unwrap()
        .map(|(path, loaded)| {
            let Loaded { findings, parsed, .. } = loaded.unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, findings.iter().map(|finding| finding.code).collect(), parsed.entries.is_empty())
        })
        .collect();
    use FindingCode::{GroupWritable, NotRegular, PublicEnvironment, SymbolicLink, WorldWritable};
    let expected: [(&str, &[FindingCode], bool); 5] = [
        ("everybody", &[WorldWritable, GroupWritable, PublicEnvironment], false),
        ("group", &[GroupWritable], false),
        ("krontab", &[], false),
        ("link", &[SymbolicLink], true),
        ("pipe", &[NotRegular], true),
    ];
    let expected: Vec<_> =
        expected.map(|(name, codes, empty)| (name.to_owned(), codes.to_vec(), empty)).into();
    assert_eq!(found, expected);
}

#[test]
fn a_directory_that_others_can_change_is_told_once() {
    let world = World::new();
    world.mode(world.path(), 0o777);
    let directory = Directory::open(world.path(), Trust::current()).unwrap();
    let codes: Vec<_> = directory.findings().iter().map(|found| (found.code, found.subject)).collect();
    assert_eq!(codes, [(FindingCode::WorldWritable, Subject::Directory)]);
    let (_, loaded) = directory.krontabs(&ZONES).unwrap().next().unwrap();
    assert_eq!(loaded.unwrap().findings, []);
}

#[test]
fn the_owner_of_a_file_in_a_directory_counts() {
    let world = World::new();
    if !is_root() {
        return;
    }
    chown(world.file(), Some(4_242), None).unwrap();
    let directory = Directory::open(world.path(), Trust::current()).unwrap();
    let (_, loaded) = directory.krontabs(&ZONES).unwrap().next().unwrap();
    let loaded = loaded.unwrap();
    assert_eq!(loaded.findings[0].code, FindingCode::Owner);
    assert!(!loaded.is_valid() && !loaded.parsed.has_errors());
}
