//! Lines of requests and the lines that answer them. Every answer that a test sees is also held against
//! `docs/reference/batch.schema.json`, and so is every request that was understood. Each op has a file.

mod decide;
mod evaluate;
mod fuzzy;
mod lint;
mod next;
mod parse;
mod properties;
mod stream;

use std::sync::LazyLock;

use jsonschema::Validator;
use krontab::Zones;
use krontab::batch::run;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../docs/reference/batch.schema.json");
const REFERENCE: &str = include_str!("../../../../docs/reference/batch.md");

static ZONES: LazyLock<Zones> = LazyLock::new(Zones::bundled);

/// A validator of one of the schema's definitions.
fn validator(definition: &str) -> Validator {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert!(!schema["$defs"][definition].is_null(), "there is no definition {definition}");
    let root = schema.as_object_mut().unwrap();
    root.remove("anyOf");
    root.insert("$ref".into(), format!("#/$defs/{definition}").into());
    jsonschema::validator_for(&schema).unwrap()
}

static REQUEST: LazyLock<Validator> = LazyLock::new(|| validator("request"));
static ANSWER: LazyLock<Validator> = LazyLock::new(|| validator("answer"));

fn answers_of_bytes(input: &[u8]) -> Vec<Value> {
    let mut output = Vec::new();
    run(input, &mut output, &ZONES).unwrap();
    let output = String::from_utf8(output).unwrap();
    assert!(output.is_empty() || output.ends_with('\n'));
    let answers = output.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).unwrap();
        if let Err(error) = ANSWER.validate(&answer) {
            panic!("{error}\n{line}");
        }
        answer
    });
    answers.collect()
}

fn answers(input: &str) -> Vec<Value> {
    answers_of_bytes(input.as_bytes())
}

/// The result of a request, which is also one for the schema.
fn result(request: &Value) -> Value {
    if let Err(error) = REQUEST.validate(request) {
        panic!("{error}\n{request}");
    }
    let answers = answers(&request.to_string());
    let [answer] = &*answers else { panic!("{answers:?}") };
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(answer["id"], request["id"]);
    answer["result"].clone()
}

/// Why a request has none. What its shape alone tells, the schema refuses too.
fn error(request: &Value) -> Value {
    let answers = answers(&request.to_string());
    let [answer] = &*answers else { panic!("{answers:?}") };
    assert_eq!(answer["ok"], false, "{answer}");
    assert_eq!(answer["id"], request["id"]);
    let error = answer["error"].clone();
    if ["bad-request", "bad-value", "unknown-op"].contains(&error["code"].as_str().unwrap()) {
        assert!(!REQUEST.is_valid(request), "the schema takes {request}");
    }
    error
}

/// The request with one member replaced, or left out; a dot leads into an object.
fn with(request: &Value, path: &str, value: impl Into<Option<Value>>) -> Value {
    let mut request = request.clone();
    let (within, name) = path.rsplit_once('.').map_or(("", path), |(within, name)| (within, name));
    let mut object = &mut request;
    for step in within.split('.').filter(|step| !step.is_empty()) {
        object = &mut object[step];
    }
    let object = object.as_object_mut().unwrap();
    match value.into() {
        Some(value) => object.insert(name.into(), value),
        None => object.remove(name),
    };
    request
}

/// Asserts for each change of a request how it is refused: code, field and message.
fn refused(request: &Value, changes: &[(&str, Option<Value>, &str, &str, &str)]) {
    for (path, value, code, field, message) in changes {
        let error = error(&with(request, path, value.clone()));
        let found =
            [&error["code"], &error["field"], &error["message"]].map(|text| text.as_str().unwrap_or(""));
        assert_eq!(found, [*code, *field, *message], "{path}: {value:?}");
    }
}

/// The reference names every code that the schema has, and its examples are what they say.
#[test]
fn the_reference_is_true() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let codes = schema["$defs"]["error"]["properties"]["code"]["anyOf"][0]["enum"].as_array().unwrap();
    for code in codes {
        assert!(
            REFERENCE.contains(&format!("`{}`", code.as_str().unwrap())),
            "{code} is not in the reference"
        );
    }
    let mut examples = 0;
    for block in REFERENCE.split("```json\n").skip(1) {
        let lines: Vec<&str> = block.split("```").next().unwrap().lines().collect();
        for pair in lines.chunks(2) {
            let [request, answer] = pair else { panic!("{pair:?} is half an example") };
            let mut output = Vec::new();
            run(request.as_bytes(), &mut output, &ZONES).unwrap();
            assert_eq!(String::from_utf8(output).unwrap().trim_end(), *answer);
            examples += 1;
        }
    }
    assert!(examples >= 8, "there are only {examples} examples");
}
