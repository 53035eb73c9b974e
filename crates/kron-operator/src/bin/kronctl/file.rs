//! `validate` and `convert`: manifests, and no cluster.

use std::io::Read;
use std::path::PathBuf;

use jiff::Timestamp;
use kron_operator::api::{KronJob, KronJobSpec, NAME_MAX};
use kron_operator::convert::{DIFFERENCES_MAX, convert};
use kron_operator::definition::{Definition, identity};
use kron_zones::Zones;
use kube::Resource;
use serde_json::{Value, json};

use super::{Answer, Args, Failure, time};

/// The longest file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Check manifests without a cluster.
#[derive(clap::Args)]
pub(crate) struct Validate {
    /// The file; `-` for standard input.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
}

impl Validate {
    pub(crate) fn run(&self, args: &Args) -> Result<Answer, Failure> {
        let zones = Zones::bundled();
        let objects: Vec<Value> = objects(&self.file, "KronJob")?;
        let (mut text, mut views, mut errors) = (String::new(), Vec::new(), 0);
        for object in &objects {
            let name = name(object);
            let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
            let namespace = namespace.or(args.namespace.as_deref()).unwrap_or("default");
            let (found, warnings) = check(object, name, namespace, &zones);
            errors += found.len();
            for error in &found {
                text += &format!("{name}: error: {error}\n");
            }
            for warning in &warnings {
                text += &format!("{name}: warning: {warning}\n");
            }
            if found.is_empty() {
                text += &format!("{name}: valid\n");
            }
            views.push(json!({"name": name, "namespace": namespace, "valid": found.is_empty(), "errors": found, "warnings": warnings}));
        }
        Ok(Answer { is_no: errors > 0, ..Answer::of(args, &views, text) })
    }
}

/// All that is wrong with a manifest, and what is odd about it.
fn check(object: &Value, name: &str, namespace: &str, zones: &Zones) -> (Vec<String>, Vec<String>) {
    let mut errors = Vec::new();
    let version = object.get("apiVersion").unwrap_or(&Value::Null);
    if version != &*KronJob::api_version(&()) {
        errors.push(format!("apiVersion: expected `{}`, but found {version}", KronJob::api_version(&())));
    }
    errors.extend(wrong_name(name));
    let spec = object.get("spec").unwrap_or(&Value::Null);
    if !spec.is_object() {
        errors
            .push("spec: expected an object with `schedule` and `jobTemplate`, but there is none".to_owned());
        return (errors, Vec::new());
    }
    let read: KronJobSpec = match serde_path_to_error::deserialize(spec) {
        Ok(read) => read,
        Err(error) => {
            let place = match error.path().to_string().as_str() {
                "." => "spec".to_owned(),
                path => format!("spec.{path}"),
            };
            errors.push(format!("{place}: {}", error.inner()));
            return (errors, Vec::new());
        }
    };
    // What was not understood is not there when it is written again.
    let again = serde_json::to_value(&read).unwrap_or_default();
    unknown(spec, &again, "spec", &mut errors);
    match Definition::read(&read, &identity(namespace, name), zones) {
        Ok(definition) => (errors, definition.warnings.iter().map(ToString::to_string).collect()),
        Err(flaws) => {
            errors.extend(flaws.iter().map(ToString::to_string));
            (errors, Vec::new())
        }
    }
}

/// What the API server would say of a name.
fn wrong_name(name: &str) -> Option<String> {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
        is_edge(*first) && is_edge(*last) && bytes.iter().all(|byte| is_edge(*byte) || *byte == b'-')
    };
    if name.len() > NAME_MAX {
        Some(format!("metadata.name: expected at most {NAME_MAX} characters, but found {}", name.len()))
    } else if !name.split('.').all(is_part) {
        Some(format!(
            "metadata.name: expected small letters, digits, `-` and `.`, beginning and ending with a letter or a digit, but found `{name}`"
        ))
    } else {
        None
    }
}

/// Tells of members that a KronJob does not have. A template is Kubernetes' own affair.
fn unknown(given: &Value, known: &Value, place: &str, errors: &mut Vec<String>) {
    if place == "spec.jobTemplate" {
        return;
    }
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            for (key, value) in given {
                let place = format!("{place}.{key}");
                match known.get(key) {
                    Some(known) => unknown(value, known, &place, errors),
                    None if is_default(value) => {}
                    None => errors.push(format!("{place}: there is no such field")),
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            for (at, (given, known)) in given.iter().zip(known).enumerate() {
                unknown(given, known, &format!("{place}[{at}]"), errors);
            }
        }
        _ => {}
    }
}

/// Whether a value is left out when it is written again.
fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Make KronJobs of CronJobs, and say when they would fire differently.
#[derive(clap::Args)]
pub(crate) struct Convert {
    /// The file; `-` for standard input.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// How many days are compared, from now on.
    #[arg(long, value_name = "DAYS", default_value_t = 366, value_parser = clap::value_parser!(u32).range(0..=3_660))]
    days: u32,
    /// From when on, instead of now.
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<Timestamp>,
}

impl Convert {
    pub(crate) fn run(&self, args: &Args) -> Result<Answer, Failure> {
        let zones = Zones::bundled();
        let from = self.from.unwrap_or_else(kron_operator::clock::now);
        let (mut text, mut views, mut failed) = (String::new(), Vec::new(), false);
        for object in objects(&self.file, "CronJob")? {
            let name = name(&object);
            match convert(&object, &zones, from, self.days) {
                Err(error) => {
                    failed = true;
                    text += &format!("# {name} was not converted: {error}\n");
                    views.push(json!({"name": name, "error": error}));
                }
                Ok(converted) => {
                    failed |= !converted.differences.is_empty();
                    text += "---\n";
                    for note in &converted.notes {
                        text += &format!("# {note}\n");
                    }
                    for difference in &converted.differences {
                        let who = if difference.is_cronjob { "only the CronJob" } else { "only the KronJob" };
                        text += &format!("# at {} {who} fires\n", difference.at);
                    }
                    if converted.differences.len() == DIFFERENCES_MAX {
                        text += "# and there may be more\n";
                    }
                    text += &serde_saphyr::to_string(&converted.kronjob)
                        .map_err(|error| Failure::usage(error.to_string()))?;
                    let differences: Vec<Value> = converted
                        .differences
                        .iter()
                        .map(|difference| json!({"at": difference.at.to_string(), "fires": if difference.is_cronjob { "CronJob" } else { "KronJob" }}))
                        .collect();
                    views.push(json!({"name": name, "kronjob": converted.kronjob, "notes": converted.notes, "differences": differences}));
                }
            }
        }
        Ok(Answer { is_no: failed, ..Answer::of(args, &views, text) })
    }
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("(no name)")
}

/// The objects of a kind in a file of YAML or JSON, which may have several documents, and lists.
fn objects(path: &PathBuf, kind: &str) -> Result<Vec<Value>, Failure> {
    let shown = path.display();
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_string(&mut text),
        false => {
            std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        }
    };
    read.map_err(|error| Failure::usage(format!("{shown} cannot be read: {error}")))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::usage(format!("{shown} has more than {FILE_BYTES_MAX} bytes")));
    }
    let mut found = Vec::new();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
        .map_err(|error| Failure::usage(format!("{shown} is no YAML: {error}")))?;
    for document in documents {
        let items = document.get("items").and_then(Value::as_array).cloned();
        found.extend(items.unwrap_or_else(|| vec![document]));
    }
    found.retain(|object| object.get("kind").and_then(Value::as_str) == Some(kind));
    if found.is_empty() {
        return Err(Failure::usage(format!(
            "expected an object of the kind {kind} in {shown}, but there is none"
        )));
    }
    Ok(found)
}
