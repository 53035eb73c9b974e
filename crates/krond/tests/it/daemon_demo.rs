use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::daemon::World;

/// Who of the demonstration is left, and what.
fn is_clean(world: &World) -> bool {
    fs::read_dir(world.path("tmp")).unwrap().next().is_none() && world.processes().is_empty()
}

/// A demonstration that ends with its test.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn world() -> World {
    let mut world = World::new("");
    fs::create_dir(world.path("tmp")).unwrap();
    let tmp = world.path("tmp").display().to_string();
    world.env.push(("TMPDIR".into(), tmp));
    world
}

#[test]
fn the_demonstration_ends_by_itself_and_leaves_nothing() {
    let world = world();
    let output = world.command(&["demo", "--seconds", "20"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(is_clean(&world), "{:?}", world.processes());
    for text in ["krond runs these jobs", "started", "finished", "exit code 3", "krond jobs --state-dir"] {
        assert!(told.contains(text), "{text}: {told}");
    }
    assert!(!told.contains('\u{1b}'), "no colours where nobody sees them");
    // It opens with what it does, and not with what it was too late for.
    // The dashboard is a process of its own, and tells its address whenever it is ready.
    let lines = told.lines().filter(|line| !line.starts_with("krond dashboard at"));
    let first = lines.skip_while(|line| !line.ends_with("  7 jobs")).nth(1);
    assert!(first.is_some_and(|line| line.contains("started")), "{told}");
}

#[test]
fn the_demonstration_can_be_interrupted_and_leaves_nothing() {
    let world = world();
    // A terminal sends the signal to the whole group, and so to the spawner as well.
    let mut demo =
        world.command(&["demo"]).process_group(0).stderr(Stdio::piped()).spawn().map(Demo).unwrap();
    let lines = BufReader::new(demo.0.stderr.take().unwrap()).lines();
    let mut told = Vec::new();
    for line in lines.map_while(Result::ok) {
        let is_running = line.contains("started") && line.contains("restless");
        told.push(line);
        if is_running {
            let group = format!("-{}", demo.0.id());
            assert!(Command::new("kill").args(["-s", "INT", "--", &group]).status().unwrap().success());
        }
    }
    assert_eq!(demo.0.wait().unwrap().code(), Some(0), "{told:#?}");
    assert!(is_clean(&world), "{:?}", world.processes());
    assert!(told.iter().any(|line| line.contains("krond stops")), "{told:#?}");
    assert!(!told.iter().any(|line| line.contains("level=ERROR")), "{told:#?}");
}

#[test]
fn what_the_demonstration_offers_to_ask_can_be_asked() {
    let world = world();
    let mut demo = world.command(&["demo"]).stderr(Stdio::piped()).spawn().map(Demo).unwrap();
    let mut offered = Vec::new();
    let mut lines = BufReader::new(demo.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    for line in lines.by_ref() {
        if let Some(command) = line.strip_prefix("    krond ") {
            offered.push(command.to_owned());
        }
        if line.contains("started") {
            break;
        }
    }
    assert_eq!(offered.len(), 5);
    for command in &offered {
        let words: Vec<&str> = command.split_whitespace().collect();
        let said = world.ask_as_is(&words);
        // It may be running just now, and then it says so.
        let is_refused = said.err.contains("a run of it is active");
        assert!(said.code == 0 && !said.out.is_empty() || is_refused, "{command}: {}", said.err);
    }
    assert!(Command::new("kill").arg(demo.0.id().to_string()).status().unwrap().success());
    let rest = std::thread::spawn(move || lines.count());
    assert_eq!(demo.0.wait().unwrap().code(), Some(0));
    let _ = rest.join();
    assert!(is_clean(&world));
}
