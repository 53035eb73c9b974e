//! Events of Kubernetes: one for each outcome, so that `kubectl describe` tells what happened and why.

use std::sync::Arc;

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::runtime::events::EventType;
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::mpsc::Receiver;

use crate::api::KronJob;
use crate::clock;
use crate::fault;
use crate::metrics::Metrics;
use crate::tell::Tell;

/// Writes Events one after another. None is worth keeping a Job waiting, nor worth a second try.
pub(crate) async fn write_all(
    client: Client,
    holder: String,
    mut told: Receiver<(KronJob, Tell)>,
    metrics: Arc<Metrics>,
) {
    while let Some((kronjob, tell)) = told.recv().await {
        let Some(event) = of(&kronjob, &tell, &holder) else { continue };
        let events: Api<Event> = Api::namespaced(client.clone(), &kronjob.namespace().unwrap_or_default());
        match events.create(&PostParams::default(), &event).await {
            Ok(_) => metrics.write("event"),
            Err(error) => {
                metrics.write("event-failed");
                tracing::debug!(event = "event_failed", error = fault::told(&error));
            }
        }
    }
}

fn of(kronjob: &KronJob, tell: &Tell, holder: &str) -> Option<Event> {
    let event = tell.event()?;
    Some(Event {
        action: Some(event.action),
        event_time: Some(MicroTime(clock::now())),
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", kronjob.name_any())),
            namespace: kronjob.namespace(),
            ..ObjectMeta::default()
        },
        note: event.note,
        reason: Some(event.reason),
        regarding: Some(kronjob.object_ref(&())),
        reporting_controller: Some("kron.io/kron-operator".to_owned()),
        reporting_instance: Some(holder.chars().take(128).collect()),
        type_: Some(match event.type_ {
            EventType::Normal => "Normal".to_owned(),
            EventType::Warning => "Warning".to_owned(),
        }),
        ..Event::default()
    })
}
