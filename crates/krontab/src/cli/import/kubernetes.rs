//! `CronJob`s of Kubernetes, in YAML or JSON.

use super::Found;
use super::draft::{Draft, Lateness, Run, When};
use super::fields::{Days, Field, Fields, Of};
use super::firing::Rule;
use super::yaml::{self, Node};

/// Reads the `CronJob`s of a file; whatever else is in it is not looked at.
///
/// # Errors
///
/// If it is no YAML, or no `CronJob` is in it: with the place.
pub(crate) fn read(text: &str, controller_zone: &str) -> Result<Vec<Found>, String> {
    let documents = yaml::documents(text)?;
    let mut found = Vec::new();
    for document in &documents {
        // `kubectl get -o yaml` prints a list.
        let items = document.at(&["items"]).map(Node::list).unwrap_or_default();
        let objects = if items.is_empty() { std::slice::from_ref(document) } else { items };
        for object in objects.iter().filter(|object| word(object, &["kind"]) == Some("CronJob")) {
            let name = word(object, &["metadata", "name"]).unwrap_or("(no name)");
            let schedule = object.at(&["spec", "schedule"]);
            let text = match schedule.and_then(Node::text) {
                Some(schedule) => format!("CronJob {name}, schedule: {schedule}"),
                None => format!("CronJob {name}"),
            };
            let line = schedule.map_or(object.line, |schedule| schedule.line);
            found.push(Found { line, text, outcome: entry(object, controller_zone) });
        }
    }
    match found.is_empty() {
        true => Err("line 1: expected an object of the kind CronJob, but there is none".to_owned()),
        false => Ok(found),
    }
}

fn word<'n>(node: &'n Node, path: &[&str]) -> Option<&'n str> {
    node.at(path)?.text()
}

fn entry(object: &Node, controller_zone: &str) -> Result<Draft, String> {
    let name = word(object, &["metadata", "name"]).ok_or("expected metadata.name, but there is none")?;
    let spec = object.at(&["spec"]).ok_or("expected spec, but there is none")?;
    let schedule = word(spec, &["schedule"]).ok_or("expected spec.schedule, but there is none")?.trim();
    let when = when(schedule)?;
    let mut notes = vec![
        "it runs on this host, in a container that docker starts; volumes, secrets, resources and retries of the pod are \
         not brought along. A KronJob keeps them"
            .to_owned(),
    ];
    if matches!(when, When::Every(_)) {
        notes.push("Kubernetes counts `@every` from when it looks first, and Kron from 1970".to_owned());
    }
    let zone = word(spec, &["timeZone"]).unwrap_or(controller_zone).to_owned();
    let concurrency = match word(spec, &["concurrencyPolicy"]) {
        None | Some("Allow") => "allow",
        Some("Forbid") => "forbid",
        Some("Replace") => "replace",
        Some(other) => {
            return Err(format!(
                "expected Allow, Forbid or Replace, but found `{other}` for concurrencyPolicy"
            ));
        }
    };
    let lateness = match word(spec, &["startingDeadlineSeconds"]) {
        None | Some("null" | "~" | "") => {
            notes.push("without startingDeadlineSeconds a late run starts until the next is due".to_owned());
            Lateness::UntilNext
        }
        Some(text) => match text.parse::<i64>() {
            Ok(seconds) if seconds >= 0 => Lateness::Seconds(seconds),
            _ => {
                return Err(format!(
                    "expected a number of seconds, but found `{text}` for startingDeadlineSeconds"
                ));
            }
        },
    };
    Ok(Draft {
        name: match word(object, &["metadata", "namespace"]) {
            Some(namespace) => format!("{namespace}-{name}"),
            None => name.to_owned(),
        },
        when,
        zone,
        rule: Rule::Kubernetes,
        window: None,
        lateness,
        concurrency,
        suspend: word(spec, &["suspend"]) == Some("true"),
        run: run(spec, &mut notes)?,
        user: None,
        cwd: None,
        environment: Vec::new(),
        description: None,
        notes,
    })
}

/// What the one container of a pod runs, as docker would.
fn run(spec: &Node, notes: &mut Vec<String>) -> Result<Run, String> {
    let path = ["jobTemplate", "spec", "template", "spec", "containers"];
    let containers = spec.at(&path).map(Node::list).unwrap_or_default();
    let Some(container) = containers.first() else {
        return Err(format!("expected a container in spec.{}, but there is none", path.join(".")));
    };
    if containers.len() > 1 {
        notes.push(format!("only the first of {} containers is brought along", containers.len()));
    }
    let image = word(container, &["image"]).ok_or("expected an image of the container, but there is none")?;
    let mut words: Vec<String> = ["/usr/bin/docker", "run", "--rm"].map(str::to_owned).into();
    for variable in container.at(&["env"]).map(Node::list).unwrap_or_default() {
        match (word(variable, &["name"]), word(variable, &["value"])) {
            (Some(name), Some(value)) => words.extend(["--env".to_owned(), format!("{name}={value}")]),
            (Some(name), None) => {
                notes.push(format!("the variable {name} comes from the cluster, and is missing here"));
            }
            _ => {}
        }
    }
    let texts = |key: &str| container.at(&[key]).map(Node::texts).unwrap_or_default();
    let (command, arguments) = (texts("command"), texts("args"));
    if let Some(program) = command.first() {
        words.extend(["--entrypoint".to_owned(), program.clone()]);
    }
    words.push(image.to_owned());
    words.extend(command.into_iter().skip(1).chain(arguments));
    if words.iter().any(|word| word.contains(['\n', '\r'])) {
        return Err("its command has several lines, and an entry of a krontab is one: put it into a script"
            .to_owned());
    }
    Ok(Run::Argv(words))
}

/// A schedule as robfig/cron reads it.
fn when(text: &str) -> Result<When, String> {
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        return Err(format!("`{text}` has a zone in its schedule, which Kubernetes refuses; use timeZone"));
    }
    if let Some(interval) = text.strip_prefix("@every ") {
        let interval: kron_schedule::Duration = interval
            .trim()
            .parse()
            .map_err(|_| format!("expected a duration such as `90m`, but found `{interval}`"))?;
        return match interval.subsec_nanos() == 0 && interval.as_seconds() > 0 {
            true => Ok(When::Every(interval.as_seconds())),
            false => Err("expected whole seconds after `@every`".to_owned()),
        };
    }
    let text = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        text => text,
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = words[..] else {
        return Err(format!("expected five fields, but found {} in `{text}`", words.len()));
    };
    let fields = Fields {
        minute: Field::cron(minute, Of::Minute)?,
        hour: Field::cron(hour, Of::Hour)?,
        day: Field::cron(day, Of::Day)?,
        month: Field::cron(month, Of::Month)?,
        weekday: Field::cron(weekday, Of::Weekday)?,
        // A step makes `*` a restriction here, and a star without one is none: Kron's own rule.
        days: Days::Either,
    };
    let is_seven = |end: &str| end.parse() == Ok(7_u32);
    let mut ranges = weekday.split(',').map(|item| item.split_once('/').map_or(item, |(range, _)| range));
    if ranges.any(|range| range.split('-').any(is_seven)) {
        return Err(format!(
            "expected a day of the week from 0 to 6, as Kubernetes counts, but found `{weekday}`"
        ));
    }
    Ok(When::Calendar(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "\
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: ops}
spec:
  schedule: \"30 2 * * 1-5\"
  timeZone: America/New_York
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 300
  jobTemplate:
    spec:
      template:
        spec:
          containers:
          - name: main
            image: example.org/report:1
            command: [\"/bin/report\", \"--all\"]
            args: [\"a b\"]
            env:
            - {name: LEVEL, value: \"2\"}
            - {name: TOKEN, valueFrom: {secretKeyRef: {name: s, key: t}}}
";

    #[test]
    fn a_cron_job_becomes_a_line() {
        let found = read(JOB, "UTC").unwrap();
        let draft = found[0].outcome.as_ref().unwrap();
        assert_eq!(found[0].line, 5);
        assert_eq!(
            draft.line("ops-report", None),
            "30 2 * * 1-5 @tz(America/New_York) @policy(deadline=5m) @dst(fold=both) name=ops-report \
             command=\"/usr/bin/docker run --rm --env LEVEL=2 --entrypoint /bin/report example.org/report:1 --all \\\"a b\\\"\""
        );
        assert!(draft.notes.iter().any(|note| note.contains("TOKEN")));
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_an_answer(text in "[ -~\né]{0,200}", schedule in "[0-9*/,@a-z -]{0,16}") {
            let _ = read(&text, "UTC");
            proptest::prop_assert!(read(&JOB.replace("30 2 * * 1-5", &schedule), "UTC").is_ok());
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let outcome = |from: &str, to: &str| read(&JOB.replace(from, to), "UTC").unwrap().remove(0).outcome;
        for (from, to, part) in [
            ("30 2 * * 1-5", "30 2 * *", "expected five fields, but found 4"),
            ("30 2 * * 1-5", "30 2 * * 7", "from 0 to 6, as Kubernetes counts"),
            ("30 2 * * 1-5", "30 2 * * 1,5-7/2", "from 0 to 6, as Kubernetes counts"),
            ("Forbid", "Never", "expected Allow, Forbid or Replace, but found `Never`"),
            ("300", "soon", "expected a number of seconds"),
            ("containers:", "initContainers:", "expected a container"),
        ] {
            let error = outcome(from, to).unwrap_err();
            assert!(error.contains(part), "{to}: {error}");
        }
        // A step is no day.
        assert!(outcome("30 2 * * 1-5", "30 2 * * */7").is_ok());
        assert!(read("a: 1", "UTC").unwrap_err().contains("of the kind CronJob"));
    }
}
