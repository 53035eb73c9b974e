//! `suspend`, `resume` and `run`.

use k8s_openapi::api::batch::v1::Job;
use kron_operator::job;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::{Answer, Args, Cluster, Failure};

/// A KronJob by its name.
#[derive(clap::Args)]
pub(crate) struct Named {
    /// The KronJob.
    name: String,
}

impl Named {
    pub(crate) async fn suspend(
        &self,
        args: &Args,
        cluster: &Cluster,
        suspend: bool,
    ) -> Result<Answer, Failure> {
        let patch = Patch::Merge(json!({"spec": {"policy": {"suspend": suspend}}}));
        let kronjob = cluster.kronjobs.patch(&self.name, &PatchParams::default(), &patch).await?;
        let done = if suspend { "suspended" } else { "resumed" };
        let view = json!({"name": kronjob.name_any(), "namespace": kronjob.namespace(), "suspend": suspend});
        Ok(Answer::of(args, &view, format!("{} is {done}\n", self.name)))
    }

    /// A run by hand counts as active, and is no period's.
    pub(crate) async fn start(&self, args: &Args, cluster: &Cluster) -> Result<Answer, Failure> {
        let (kronjob, definition) = cluster.read(&self.name).await?;
        let number = getrandom::u32().map_err(|error| Failure::usage(error.to_string()))?;
        // The longest name, and this, are 63 characters.
        let name = format!("{}-run-{:06x}", self.name, number & 0xFF_FFFF);
        let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        let made =
            jobs.create(&PostParams::default(), &job::by_hand(&kronjob, &definition.template, &name)).await?;
        let view = json!({"name": made.name_any(), "namespace": made.namespace()});
        Ok(Answer::of(args, &view, format!("started Job {}\n", made.name_any())))
    }
}
