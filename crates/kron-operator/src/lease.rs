//! One of several operators works at a time: the one that holds a Lease.
//!
//! It saves work and conflicts. That no period has two Jobs does not depend on it (`reconcile.rs`).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::clock;
use crate::fault::told;

/// How long a holder that says nothing is waited for.
const DURATION: Duration = Duration::from_secs(15);

/// After how long without a renewal a holder gives up.
const RENEW_WITHIN: Duration = Duration::from_secs(10);

/// How often it is tried.
const RETRY: Duration = Duration::from_secs(2);

/// A Lease that this process wants, or has.
pub struct Leadership {
    leases: Api<Lease>,
    name: String,
    holder: String,
    /// What was seen last, and when it was seen first.
    seen: Option<(LeaseSpec, Duration)>,
    renewed: Duration,
}

impl Leadership {
    /// Nobody's yet.
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str, holder: &str) -> Leadership {
        let leases = Api::namespaced(client, namespace);
        Leadership {
            leases,
            name: name.to_owned(),
            holder: holder.to_owned(),
            seen: None,
            renewed: Duration::ZERO,
        }
    }

    /// Waits until the Lease is this process's.
    pub async fn acquire(&mut self) {
        loop {
            match self.attempt().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(event = "lease_failed", error = told(&error)),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Renews the Lease, and returns once it may be another's.
    pub async fn keep(&mut self) {
        loop {
            tokio::time::sleep(RETRY).await;
            let sent = clock::awake();
            match tokio::time::timeout(RENEW_WITHIN, self.attempt()).await {
                Ok(Ok(true)) => self.renewed = sent,
                Ok(Ok(false)) => return,
                Ok(Err(error)) => tracing::warn!(event = "lease_failed", error = told(&error)),
                Err(_) => {}
            }
            if clock::awake().saturating_sub(self.renewed) > RENEW_WITHIN {
                return;
            }
        }
    }

    /// Gives the Lease back, so that another need not wait.
    pub async fn release(&mut self) {
        let Ok(Some(mut lease)) = self.leases.get_opt(&self.name).await else { return };
        let Some(spec) = lease.spec.as_mut() else { return };
        if spec.holder_identity.as_deref() != Some(&self.holder) {
            return;
        }
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
        let _ = self.leases.replace(&self.name, &PostParams::default(), &lease).await;
    }

    /// Tries to take or renew the Lease, and says whether it is this process's now.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        let sent = clock::awake();
        let Some(mut lease) = self.leases.get_opt(&self.name).await? else {
            let lease = Lease {
                metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                spec: Some(self.spec(None)),
            };
            return self.written(self.leases.create(&PostParams::default(), &lease).await, sent);
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let first_seen = match &self.seen {
            Some((before, at)) if *before == spec => *at,
            _ => sent,
        };
        self.seen = Some((spec.clone(), first_seen));
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        // By this process's own clock: another's may be wrong.
        let is_stale = sent.saturating_sub(first_seen) > DURATION;
        if !(holder.is_empty() || holder == self.holder || is_stale) {
            return Ok(false);
        }
        lease.spec = Some(self.spec(Some(&spec)));
        let answer = self.leases.replace(&self.name, &PostParams::default(), &lease).await;
        self.written(answer, sent)
    }

    fn written(&mut self, answer: Result<Lease, kube::Error>, sent: Duration) -> Result<bool, kube::Error> {
        match answer {
            Ok(_) => {
                self.renewed = sent;
                Ok(true)
            }
            // Somebody was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn spec(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::from_microsecond(clock::now().as_microsecond()).unwrap_or_default());
        let before = before.cloned().unwrap_or_default();
        let is_mine = before.holder_identity.as_deref() == Some(&self.holder);
        LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            acquire_time: if is_mine { before.acquire_time.clone() } else { Some(now.clone()) },
            renew_time: Some(now),
            lease_transitions: Some(before.lease_transitions.unwrap_or(0) + i32::from(!is_mine)),
            ..before
        }
    }
}
