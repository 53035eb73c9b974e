//! The cluster that is asked.

use kron_operator::api::KronJob;
use kron_operator::definition::{Definition, identity};
use kron_operator::fault::causes;
use kron_zones::Zones;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use super::{Args, Failure};

/// One namespace of a cluster.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) kronjobs: Api<KronJob>,
}

impl Cluster {
    /// The one that the kubeconfig and the options say.
    pub(crate) async fn find(args: &Args) -> Result<Cluster, Failure> {
        let options = KubeConfigOptions { context: args.context.clone(), ..Default::default() };
        let config = match (&args.kubeconfig, &args.context) {
            (Some(path), _) => match Kubeconfig::read_from(path) {
                Ok(file) => {
                    Config::from_custom_kubeconfig(file, &options).await.map_err(|error| causes(&error))
                }
                Err(error) => Err(causes(&error)),
            },
            (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(|error| causes(&error)),
            (None, None) => Config::infer().await.map_err(|error| causes(&error)),
        };
        let config = config.map_err(|why| {
            Failure::usage(format!(
                "no cluster can be found: {why}; name a kubeconfig with --kubeconfig or KUBECONFIG"
            ))
        })?;
        let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config)?;
        let kronjobs = Api::namespaced(client.clone(), &namespace);
        Ok(Cluster { client, namespace, kronjobs })
    }

    /// A KronJob, and what its spec means.
    pub(crate) async fn read(&self, name: &str) -> Result<(KronJob, Definition), Failure> {
        let kronjob = self.kronjobs.get(name).await?;
        let read = Definition::read(&kronjob.spec, &identity(&self.namespace, name), &Zones::bundled());
        let definition = read.map_err(|flaws| {
            let told: String = flaws.iter().map(|flaw| format!("\n  {flaw}")).collect();
            Failure::no(format!("{name} is invalid, so nothing of it runs:{told}"))
        })?;
        Ok((kronjob, definition))
    }
}
