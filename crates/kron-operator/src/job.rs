//! Jobs of Kubernetes: made from a template, and seen.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobTemplateSpec};
use k8s_openapi::api::core::v1::{Container, EnvVar};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kron_core::PeriodId;
use kube::{Resource, ResourceExt};

use crate::api::{CHOSEN_KEY, FINALIZER, KronJob, MANUAL_KEY, NAME_KEY, PERIOD_KEY};
use crate::definition::identity;
use crate::reconcile::{Creation, Phase, SeenJob, stamp};

/// What the keys of Kron's own labels and annotations begin with.
const PREFIX: &str = "kron.io/";

/// The Job of a period.
#[must_use]
pub fn of_period(kronjob: &KronJob, template: &JobTemplateSpec, creation: &Creation) -> Job {
    let (period, chosen) = (creation.period.to_string(), stamp(creation.chosen));
    let marks = [(PERIOD_KEY, &period), (CHOSEN_KEY, &chosen)];
    let mut job = of_template(kronjob, template, &creation.job_name);
    for (key, text) in marks {
        // A label cannot hold colons.
        job.labels_mut().insert(key.to_owned(), text.replace(['-', ':'], ""));
        job.annotations_mut().insert(key.to_owned(), text.clone());
    }
    job.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    environ(&mut job, kronjob, &[("KRON_PERIOD_ID", &period), ("KRON_CHOSEN_TIME", &chosen)]);
    job
}

/// A Job that somebody asked for by hand.
#[must_use]
pub fn by_hand(kronjob: &KronJob, template: &JobTemplateSpec, name: &str) -> Job {
    let mut job = of_template(kronjob, template, name);
    job.annotations_mut().insert(MANUAL_KEY.to_owned(), "true".to_owned());
    environ(&mut job, kronjob, &[]);
    job
}

fn of_template(kronjob: &KronJob, template: &JobTemplateSpec, name: &str) -> Job {
    let given = template.metadata.clone().unwrap_or_default();
    // What Kron goes by, only Kron says.
    let others = |marks: Option<BTreeMap<String, String>>| {
        marks.map(|marks| marks.into_iter().filter(|(key, _)| !key.starts_with(PREFIX)).collect())
    };
    let mut job = Job {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: kronjob.namespace(),
            labels: others(given.labels),
            annotations: others(given.annotations),
            owner_references: Some(vec![owner(kronjob)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    };
    job.labels_mut().insert(NAME_KEY.to_owned(), kronjob.name_any());
    job.annotations_mut().insert(NAME_KEY.to_owned(), kronjob.name_any());
    job
}

fn owner(kronjob: &KronJob) -> OwnerReference {
    OwnerReference {
        api_version: KronJob::api_version(&()).into_owned(),
        kind: KronJob::kind(&()).into_owned(),
        name: kronjob.name_any(),
        uid: kronjob.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Tells the containers what they run for. A variable that the template sets itself stays as it is.
fn environ(job: &mut Job, kronjob: &KronJob, of_period: &[(&str, &String)]) {
    let identity = identity(&kronjob.namespace().unwrap_or_default(), &kronjob.name_any());
    let run = job.name_any();
    let mut pairs = vec![("KRON_IDENTITY", identity), ("KRON_RUN", run)];
    pairs.extend(of_period.iter().map(|(name, value)| (*name, (*value).clone())));
    let Some(pod) = job.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) else { return };
    let add = |container: &mut Container| {
        let env = container.env.get_or_insert_default();
        for (name, value) in &pairs {
            if !env.iter().any(|variable| variable.name == *name) {
                env.push(EnvVar { name: (*name).to_owned(), value: Some(value.clone()), value_from: None });
            }
        }
    };
    pod.containers.iter_mut().for_each(add);
    pod.init_containers.iter_mut().flatten().for_each(add);
}

/// A Job, seen as one of this `KronJob`'s or as a stranger.
#[must_use]
pub fn seen(job: &Job, uid: &str) -> SeenJob {
    let owner = job.owner_references().iter().find(|owner| owner.controller == Some(true));
    let finalizers = job.finalizers();
    SeenJob {
        is_ours: owner.is_some_and(|owner| owner.uid == uid && owner.kind == KronJob::kind(&())),
        period: period(job),
        phase: phase(job),
        deleting: job.metadata.deletion_timestamp.is_some(),
        draining: finalizers.iter().any(|name| name == "foregroundDeletion"),
        held: finalizers.iter().any(|name| name == FINALIZER),
    }
}

/// The period that a Job says it is for.
#[must_use]
pub fn period(job: &Job) -> Option<PeriodId> {
    let none = BTreeMap::new();
    let annotations = job.metadata.annotations.as_ref().unwrap_or(&none);
    if annotations.contains_key(MANUAL_KEY) {
        return None;
    }
    annotations.get(PERIOD_KEY)?.parse().ok()
}

fn phase(job: &Job) -> Phase {
    let Some(status) = &job.status else { return Phase::Active };
    for condition in status.conditions.iter().flatten().filter(|condition| condition.status == "True") {
        let at = condition.last_transition_time.as_ref().map(|time| time.0);
        let at = at.or_else(|| status.completion_time.as_ref().map(|time| time.0)).unwrap_or_default();
        match condition.type_.as_str() {
            "Complete" => return Phase::Succeeded(at),
            "Failed" => return Phase::Failed(at),
            _ => {}
        }
    }
    Phase::Active
}

/// The moment that a Job says was chosen for it.
#[must_use]
pub fn chosen(job: &Job) -> Option<Timestamp> {
    job.metadata.annotations.as_ref()?.get(CHOSEN_KEY)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_template_cannot_pretend_to_be_a_run_by_hand_or_of_another_period() {
        let marks =
            json!({"kron.io/manual": "true", "kron.io/period-id": "2020-01-01T00:00:00Z", "team": "a"});
        let template: JobTemplateSpec =
            serde_json::from_value(json!({"metadata": {"annotations": marks, "labels": marks}})).unwrap();
        let kronjob = KronJob::new("x", crate::api::KronJobSpec::default());
        let chosen: Timestamp = "2027-01-15T08:00:00Z".parse().unwrap();
        let creation = Creation { job_name: "x-1".to_owned(), period: PeriodId::new(chosen), chosen };
        let job = of_period(&kronjob, &template, &creation);
        assert_eq!(period(&job), Some(PeriodId::new(chosen)));
        assert_eq!(job.labels()["team"], "a");
        assert!(!job.labels().contains_key(MANUAL_KEY));
        let by_hand = by_hand(&kronjob, &template, "x-run-1");
        assert!(period(&by_hand).is_none() && !by_hand.annotations().contains_key(PERIOD_KEY));
    }
}
