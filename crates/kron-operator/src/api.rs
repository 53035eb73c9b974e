//! The resource as people write it and as the API server keeps it: `kronjobs.kron.io/v1alpha1`.
//!
//! Every name on the wire is here. The CRD is generated from these types (`manifests.rs`).

#![allow(unreachable_pub, reason = "what kube derives from these has a module of its own")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The longest name of a `KronJob`: its Jobs append a second in ten or eleven characters, and its pods more.
pub const NAME_MAX: usize = 52;

/// The group of the resource, which begins every label, annotation and finalizer of Kron's.
pub const GROUP: &str = "kron.io";

/// Keeps a Job's name taken until its outcome is recorded.
pub const FINALIZER: &str = "kron.io/record";

/// On a Job: the `KronJob` that it is of.
pub const NAME_KEY: &str = "kron.io/name";

/// On a Job: the period that it is for.
pub const PERIOD_KEY: &str = "kron.io/period-id";

/// On a Job: the moment that was chosen for it.
pub const CHOSEN_KEY: &str = "kron.io/chosen-time";

/// On a Job: why it is there, if no period asked for it.
pub const MANUAL_KEY: &str = "kron.io/manual";

/// A schedule of Jobs that are spread over windows, each period at most once.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "kron.io",
    version = "v1alpha1",
    kind = "KronJob",
    plural = "kronjobs",
    shortname = "kj",
    category = "all",
    namespaced,
    status = "KronJobStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A schedule of Jobs that are spread over windows: at most one Job for each period, and a reason for each that has none.",
    validation = Rule::new("self.metadata.name.size() <= 52").message("the name of a KronJob has at most 52 characters, because its Jobs append the time to it"),
    printcolumn(json_path = ".spec.schedule", name = "Schedule", type_ = "string"),
    printcolumn(json_path = ".spec.timezone", name = "Timezone", type_ = "string", priority = 1),
    printcolumn(json_path = ".spec.policy.suspend", name = "Suspend", type_ = "boolean"),
    printcolumn(json_path = ".status.activeCount", name = "Active", type_ = "integer"),
    printcolumn(json_path = ".status.lastOutcome", name = "Last", type_ = "string"),
    printcolumn(json_path = ".status.lastReason", name = "Reason", type_ = "string", priority = 1),
    printcolumn(json_path = ".status.nextChosenTime", name = "Next", type_ = "string"),
    printcolumn(json_path = ".status.conditions[?(@.type==\"Ready\")].status", name = "Ready", type_ = "string"),
    printcolumn(json_path = ".metadata.creationTimestamp", name = "Age", type_ = "date")
)]
#[serde(rename_all = "camelCase")]
pub struct KronJobSpec {
    /// When: five cron fields, an alias such as `@daily`, `@every 15m`, or a phrase such as `daily around 14:00`.
    #[schemars(length(min = 1, max = 512))]
    pub schedule: String,
    /// The IANA name of the time zone that schedule and constraints are read in; UTC if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub timezone: Option<String>,
    /// Where around its nominal time a period may run; exactly then if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowSpec>,
    /// How chosen times are spread over the window; uniformly if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<DistributionSpec>,
    /// Which periods share their random numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<SeedSpec>,
    /// Which seconds may be chosen at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<ConstraintsSpec>,
    /// When not to start a run.
    #[serde(default)]
    #[schemars(default)]
    pub policy: PolicySpec,
    /// What happens to local times that do not exist, or happen twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<DstSpec>,
    /// How many finished Jobs are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistorySpec>,
    /// The Job that is created for each period, as `batch/v1` has it.
    pub job_template: JobTemplate,
}

/// Where around its nominal time a period may run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WindowSpec {
    /// On which side of the nominal time the window lies.
    #[serde(default)]
    #[schemars(default)]
    pub mode: WindowModeSpec,
    /// How long it is, such as `30m`.
    #[schemars(length(min = 1, max = 64))]
    pub duration: String,
}

/// On which side of the nominal time a window lies.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WindowModeSpec {
    /// It begins at the nominal time.
    #[default]
    After,
    /// The nominal time is its middle.
    Around,
}

/// How chosen times are spread over the window.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DistributionSpec {
    /// Its name: `uniform`, `normal`, `skewEarly`, `skewLate` or `exponential`.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// Its parameters, as texts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
}

/// Which periods share their random numbers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedSpec {
    /// What stands for a period in its seed.
    #[serde(default)]
    #[schemars(default)]
    pub strategy: SeedStrategySpec,
    /// A text to tell this job's seeds from another's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub salt: String,
}

/// What stands for a period in its seed.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SeedStrategySpec {
    /// Every period has its own.
    #[default]
    Stable,
    /// Periods of one local day share theirs.
    Daily,
    /// Periods of one local ISO week share theirs.
    Weekly,
}

/// Which seconds may be chosen at all.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConstraintsSpec {
    /// Only these; several entries are joined as repeated modifiers of a krontab are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub only: Vec<ClauseSpec>,
    /// None of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub avoid: Vec<ClauseSpec>,
}

/// Clauses of a constraint, each as a krontab writes its value.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClauseSpec {
    /// Hours of the day: `8-10,14`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub hours: Option<String>,
    /// Days of the week: `MON-FRI`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub dow: Option<String>,
    /// Days of the month: `1-7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub dom: Option<String>,
    /// Months: `JAN-MAR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub months: Option<String>,
    /// Times of day: `08:00-08:14`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub between: Option<String>,
    /// A day: `2026-12-24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub date: Option<String>,
    /// Days: `2026-12-24..2027-01-01`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub dates: Option<String>,
}

impl ClauseSpec {
    /// Its clauses with their keys, as a krontab writes them.
    pub fn clauses(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let pairs = [
            ("hours", &self.hours),
            ("dow", &self.dow),
            ("dom", &self.dom),
            ("months", &self.months),
            ("between", &self.between),
            ("date", &self.date),
            ("dates", &self.dates),
        ];
        pairs.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }
}

/// When not to start a run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicySpec {
    /// What to do when a period comes due while a Job is still active.
    #[serde(default)]
    #[schemars(default)]
    pub concurrency: ConcurrencySpec,
    /// How late after its chosen time a period may still start; `0s` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub deadline: Option<String>,
    /// While true nothing starts, and no period is handled.
    #[serde(default)]
    #[schemars(default)]
    pub suspend: bool,
}

/// What to do when a period comes due while a Job is still active.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ConcurrencySpec {
    /// Start it beside the other.
    Allow,
    /// Skip it.
    #[default]
    Forbid,
    /// End the other, then start it.
    Replace,
}

/// What happens to local times that do not exist, or happen twice.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DstSpec {
    /// A time that does not exist.
    #[serde(default)]
    #[schemars(default)]
    pub gap: GapSpec,
    /// A time that happens twice.
    #[serde(default)]
    #[schemars(default)]
    pub fold: FoldSpec,
}

/// A time that does not exist.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GapSpec {
    /// It does not run.
    #[default]
    Skip,
    /// It runs at the first instant after the gap.
    After,
}

/// A time that happens twice.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FoldSpec {
    /// Both times for an interval, else the first.
    #[default]
    Auto,
    /// It runs both times.
    Both,
    /// It runs the first time.
    First,
}

// The API server knows no formats of unsigned numbers, and warns of them.
/// How many finished Jobs are kept; older ones are deleted.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistorySpec {
    /// Those that succeeded.
    #[serde(default = "successful")]
    #[schemars(range(min = 0, max = 100), extend("format" = "int32"))]
    pub successful: u32,
    /// Those that failed.
    #[serde(default = "failed")]
    #[schemars(range(min = 0, max = 100), extend("format" = "int32"))]
    pub failed: u32,
}

fn successful() -> u32 {
    3
}

fn failed() -> u32 {
    1
}

impl Default for HistorySpec {
    fn default() -> HistorySpec {
        HistorySpec { successful: successful(), failed: failed() }
    }
}

/// A `batch/v1` Job template, kept as it was written. The API server checks it when a Job is created of it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(transparent)]
pub struct JobTemplate(pub Map<String, Value>);

impl JsonSchema for JobTemplate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "JobTemplate".into()
    }

    fn inline_schema() -> bool {
        true
    }

    /// Only what the rules speak of: the whole of a pod would make a CRD of half a megabyte, and `kubectl apply` refuses those.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let container = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let pod = json!({
            "type": "object",
            "description": "The pod, as `v1` has it.",
            "x-kubernetes-preserve-unknown-fields": true,
            "required": ["containers", "restartPolicy"],
            "properties": {
                "restartPolicy": {"type": "string", "enum": ["Never", "OnFailure"]},
                "containers": {"type": "array", "minItems": 1, "items": container},
            },
        });
        let json = json!({
            "type": "object",
            "description": "The Job that is created for each period, as `batch/v1` has it. Labels, annotations, an owner, a finalizer \
                and `KRON_*` environment variables are added, and nothing else is changed.",
            "required": ["spec"],
            "properties": {
                "metadata": {
                    "type": "object",
                    "description": "Labels and annotations of the Job.",
                    "properties": {"labels": texts, "annotations": texts},
                },
                "spec": {
                    "type": "object",
                    "description": "The Job, as `batch/v1` has it.",
                    "x-kubernetes-preserve-unknown-fields": true,
                    "required": ["template"],
                    "properties": {
                        "template": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": true,
                            "required": ["spec"],
                            "properties": {"spec": pod},
                        },
                    },
                },
            },
        });
        json.try_into().expect("an object is a schema")
    }
}

/// What the operator knows. Nobody else writes it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KronJobStatus {
    /// The generation of the spec that all of this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The latest period that has its outcome.
    #[serde(default, rename = "lastPeriodID", skip_serializing_if = "Option::is_none")]
    pub last_period_id: Option<String>,
    /// Its nominal time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_nominal_time: Option<String>,
    /// The moment that was chosen for it; none if it is unschedulable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_chosen_time: Option<String>,
    /// Its outcome: executed, skipped, missed or unschedulable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<String>,
    /// Why, in a word that does not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reason: Option<String>,
    /// The seed of its decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seed_hash: Option<String>,
    /// When a Job last succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_time: Option<String>,
    /// When a Job last failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure_time: Option<String>,
    /// The period that is due next.
    #[serde(default, rename = "nextPeriodID", skip_serializing_if = "Option::is_none")]
    pub next_period_id: Option<String>,
    /// Its nominal time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_nominal_time: Option<String>,
    /// The moment that is chosen for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_chosen_time: Option<String>,
    /// How many Jobs are active.
    #[serde(default)]
    pub active_count: i64,
    /// What must be remembered so that no period is handled twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerStatus>,
    /// What became of the latest periods, the latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// What holds of it, in the shape that Kubernetes has for conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What must be remembered so that no period is handled twice.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerStatus {
    /// Every period up to here is handled or claimed, except the pending ones.
    pub handled_through: String,
    /// Periods before that which still wait for their chosen time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// Periods whose Job is about to be created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimStatus>,
    /// Jobs that were created and are not known to have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<ActiveStatus>,
}

/// A period whose Job is about to be created, by one operator.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimStatus {
    /// The period.
    #[serde(rename = "periodID")]
    pub period_id: String,
    /// The moment that was chosen for it.
    pub chosen_time: String,
    /// The seed of its decision.
    pub seed_hash: String,
    /// The Job's name.
    pub job_name: String,
    /// The process that may create it.
    pub holder: String,
    /// When it was claimed by that process.
    pub claimed_at: String,
    /// Whether some other process may have tried before, or this one without an answer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub contested: bool,
    /// Jobs that must have ended before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A Job that was created and is not known to have ended.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveStatus {
    /// The period that it is for; none if somebody started it by hand.
    #[serde(default, rename = "periodID", skip_serializing_if = "Option::is_none")]
    pub period_id: Option<String>,
    /// The Job's name.
    pub job_name: String,
}

/// What became of a period, or of several that were passed over for one reason.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The period; of several, the first.
    #[serde(rename = "periodID")]
    pub period_id: String,
    /// Of several, the last.
    #[serde(default, rename = "lastPeriodID", skip_serializing_if = "Option::is_none")]
    pub last_period_id: Option<String>,
    /// How many there are, if there are several; `1000+` if they were not counted further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
    /// The moment that was chosen for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_time: Option<String>,
    /// Executed, skipped, missed or unschedulable.
    pub outcome: String,
    /// Why, in a word that does not change.
    pub reason: String,
    /// The seed of its decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_hash: Option<String>,
    /// Its Job, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// When it was recorded.
    pub recorded_at: String,
    /// How its Job ended: succeeded, failed or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// When its Job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// More about it, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
