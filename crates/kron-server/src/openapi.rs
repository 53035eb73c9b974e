//! The OpenAPI document, made from the table of routes.

use serde_json::{Map, Value, json};

use crate::gate::Need;
use crate::routes::{Body, Route, table};

/// The document, without what only tests may do.
#[must_use]
pub fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in table(false) {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation(&route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "kron-server",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Open Job Spec 1.0, levels 0 to 2, and Kron's own endpoints under /kron/v1",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "parameters": parameters(),
            "responses": {"Refusal": {
                "description": "What was expected and found, and what to do about it",
                "content": content("Refusal"),
            }},
            "schemas": schemas(),
            "securitySchemes": {"token": {
                "type": "http", "scheme": "bearer",
                "description": "A token that kron-server token create has made. A server without any, which only its own \
                                host can reach, asks for none.",
            }},
        },
    })
}

const MEDIA_TYPE: &str = crate::http::MEDIA_TYPE;

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    for name in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        parameters.push(json!({"$ref": format!("#/components/parameters/path.{name}")}));
    }
    parameters
        .extend(route.query.iter().map(|name| json!({"$ref": format!("#/components/parameters/{name}")})));
    let mut responses: Map<String, Value> = Map::new();
    for (status, body) in route.answers {
        let description = if *status == 201 { "It was made" } else { "It was done" };
        responses.insert(status.to_string(), json!({"description": description, "content": content(body)}));
    }
    let refusal = json!({"$ref": "#/components/responses/Refusal"});
    let forbidden: &[u16] = if route.needs == Need::Nothing { &[] } else { &[401, 403] };
    for status in [400, 421].iter().chain(forbidden).chain(route.refusals) {
        responses.insert(status.to_string(), refusal.clone());
    }
    responses.insert("default".into(), refusal);
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "tags": [route.path.split('/').nth(3).unwrap_or("server")],
        "parameters": parameters,
        "responses": responses,
        "security": match route.needs {
            Need::Nothing => json!([]),
            Need::Scope(scope) => json!([{"token": [scope.name()]}, {}]),
        },
    });
    if let Some(body) = route.body {
        let (name, needed) = match body {
            Body::Maybe(name) => (name, false),
            Body::Needed(name) => (name, true),
        };
        let schema = json!({"schema": {"$ref": format!("#/components/schemas/{name}")}});
        operation["requestBody"] =
            json!({"required": needed, "content": {"application/json": schema, MEDIA_TYPE: schema}});
    }
    operation
}

fn content(name: &str) -> Value {
    match name {
        "EventStream" => json!({"text/event-stream": {"schema": {"type": "string"}}}),
        "Metrics" => json!({"text/plain": {"schema": {"type": "string"}}}),
        name => json!({MEDIA_TYPE: {"schema": {"$ref": format!("#/components/schemas/{name}")}}}),
    }
}

fn parameters() -> Value {
    let query = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "query", "description": description, "schema": schema});
    let path = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "path", "required": true, "description": description, "schema": schema});
    let text = || json!({"type": "string"});
    let name = || json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9.-]*$", "maxLength": 255});
    let whole = || json!({"type": "integer", "minimum": 0});
    let time = || json!({"type": "string", "format": "date-time"});
    let mut at = query("at", "The time that is asked about", time());
    at["required"] = json!(true);
    json!({
        "path.id": path("id", "The id of a job", text()),
        "path.name": path("name", "The name of a cron job", name()),
        "path.queue": path("queue", "The name of a queue", name()),
        "path.webhook": path("webhook", "The id of a webhook", text()),
        "path.worker": path("worker", "The name of a worker", text()),
        "after": query("after", "The id of the event to go on after", json!({"type": "string", "pattern": "^evt_[0-9a-f-]{36}$"})),
        "at": at,
        "channel": query("channel", "job:ID, queue:NAME, cron:NAME or all", text()),
        "count": query("count", "How many next runs to show", whole()),
        "cron": query("cron", "Made by that cron job", name()),
        "cursor": query("cursor", "The next_cursor of the page before", text()),
        "enabled": query("enabled", "Only those that are, or are not", json!({"type": "boolean"})),
        "from": query("from", "From that time; a day ago if absent", time()),
        "job_types": query("job_types", "Of jobs of these types, with commas in between", text()),
        "limit": query("limit", "How many at most", whole()),
        "offset": query("offset", "How many to leave out", whole()),
        "queue": query("queue", "Of that queue", text()),
        "queues": query("queues", "Of jobs of these queues, with commas in between", text()),
        "state": query("state", "In that state", json!({"enum": STATES})),
        "to": query("to", "Up to that time; in a day if absent", time()),
        "type": query("type", "Of that type", text()),
        "types": query("types", "Of these kinds, with commas in between; one may end with *", text()),
    })
}

const STATES: [&str; 8] =
    ["scheduled", "available", "pending", "active", "completed", "retryable", "cancelled", "discarded"];

fn schemas() -> Value {
    let mut schemas = Map::new();
    for part in [requests(), answers(), webhooks()] {
        if let Value::Object(part) = part {
            schemas.extend(part);
        }
    }
    Value::Object(schemas)
}

fn refer(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// What clients send. Members that are not listed are taken and given back.
fn requests() -> Value {
    let time =
        json!({"type": "string", "description": "RFC 3339 with its zone, or so far from now, such as +PT5S"});
    let duration = json!({"type": "string", "description": "ISO 8601, such as PT30S"});
    let ms = json!({"type": "integer", "minimum": 0, "maximum": u32::MAX});
    let queue = json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9.-]*$", "maxLength": 255});
    let kind =
        json!({"type": "string", "pattern": "^[a-z][a-z0-9_-]*(\\.[a-z][a-z0-9_-]*)*$", "maxLength": 255});
    let cron_members = json!({
        "name": queue, "cron": {"type": "string", "examples": ["0 9 * * MON-FRI", "@every 5m"]},
        "timezone": {"type": "string", "default": "UTC", "examples": ["Europe/Paris"]},
        "type": kind, "args": {"type": "array"}, "options": refer("Options"), "meta": {"type": "object"},
        "overlap_policy": {"enum": ["skip", "allow", "cancel_previous", "enqueue", "cancel"], "default": "skip"},
        "enabled": {"type": "boolean"}, "description": {"type": ["string", "null"]}, "kron": refer("Spread"),
        "expression": {"type": "string", "description": "Another name of cron"},
        "job_template": {"type": "object", "description": "Another place of type, args and options"},
    });
    let fence =
        json!({"type": "integer", "minimum": 0, "description": "The fence of the job as it was fetched"});
    json!({
        "Anything": {"type": "object"},
        "Retry": {"type": "object", "properties": {
            "max_attempts": {"type": "integer", "minimum": 0, "maximum": u32::MAX, "default": 3},
            "initial_interval": duration, "max_interval": duration,
            "backoff_coefficient": {"type": "number", "minimum": 1.0, "maximum": 1_000_000.0, "default": 2.0},
            "jitter": {"type": "boolean", "default": true},
            "non_retryable_errors": {"type": "array", "items": {"type": "string", "minLength": 1}},
            "on_exhaustion": {"enum": ["discard", "dead_letter"], "default": "discard"},
            "backoff_strategy": {"enum": ["exponential", "linear", "constant", "polynomial", "none"]},
        }},
        "Options": {"type": "object", "properties": {
            "queue": queue, "priority": {"type": "integer", "minimum": -100, "maximum": 100, "default": 0},
            "timeout": ms, "timeout_ms": ms, "visibility_timeout_ms": ms, "scheduled_at": time, "delay_until": time,
            "expires_at": time, "retry": refer("Retry"), "pending": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "meta": {"type": "object"}, "metadata": {"type": "object"},
        }},
        "NewJob": {"type": "object", "required": ["type", "args"], "properties": {
            "type": kind, "args": {"type": "array"}, "meta": {"type": "object"}, "options": refer("Options"),
            "id": {"type": "string", "description": "A UUID of version 7 in lower case",
                "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"},
            "queue": queue, "scheduled_at": time, "expires_at": time, "retry": refer("Retry"),
        }},
        "NewJobs": {"type": "object", "required": ["jobs"], "properties": {
            "jobs": {"type": "array", "minItems": 1, "maxItems": 10_000, "items": refer("NewJob")},
        }},
        "NewProgress": {"type": "object", "properties": {
            "progress": {"type": "number"}, "data": {}, "message": {"type": "string"},
        }},
        "Fetch": {"type": "object", "required": ["queues"], "properties": {
            "queues": {"type": "array", "minItems": 1, "maxItems": 256, "items": queue},
            "count": {"type": "integer", "minimum": 1, "maximum": u32::MAX, "default": 1},
            "worker_id": {"type": "string", "minLength": 1, "maxLength": 255}, "visibility_timeout_ms": ms,
            "wait_ms": {"type": "integer", "minimum": 0, "maximum": 30_000, "description": "How long to wait for work"},
        }},
        "Ack": {"type": "object", "required": ["job_id"], "properties": {
            "job_id": {"type": "string"}, "result": {}, "worker_id": {"type": "string", "minLength": 1, "maxLength": 255},
            "fence": fence,
        }},
        "Nack": {"type": "object", "required": ["job_id", "error"], "properties": {
            "job_id": {"type": "string"}, "worker_id": {"type": "string", "minLength": 1, "maxLength": 255},
            "fence": fence,
            "requeue": {"type": "boolean", "description": "Give the job back without counting a failure"},
            "error": {"type": "object", "properties": {
                "code": {"type": "string"}, "message": {"type": "string"}, "type": {"type": "string"},
                "retryable": {"type": "boolean"}, "details": {}, "backtrace": {},
            }},
        }},
        "Heartbeat": {"type": "object", "required": ["worker_id"], "properties": {
            "worker_id": {"type": "string", "minLength": 1, "maxLength": 255},
            "active_jobs": {"type": "array", "items": {"type": "string"}, "maxItems": 10_000},
            "visibility_timeout_ms": ms, "hostname": {"type": "string"}, "pid": {"type": "integer"},
        }},
        "WorkerDirection": {"type": "object", "required": ["state"], "properties": {
            "state": {"enum": ["running", "quiet", "terminate"]},
        }},
        "Spread": {
            "type": ["object", "null"], "additionalProperties": false,
            "description": "How occurrences are spread; absent, they fire at their nominal times",
            "properties": {
                "window": {"type": "object", "additionalProperties": false, "required": ["duration"], "properties": {
                    "mode": {"enum": ["after", "around"], "default": "after"}, "duration": {"type": "string", "examples": ["1h30m"]},
                }},
                "distribution": {"type": "object", "additionalProperties": false, "properties": {
                    "name": {"enum": ["uniform", "skewEarly", "skewLate", "normal", "exponential"]},
                    "params": {"type": "object"},
                }},
                "seed": {"type": "object", "additionalProperties": false, "properties": {
                    "strategy": {"enum": ["stable", "daily", "weekly"]}, "salt": {"type": "string"},
                }},
                "only": refer("Clauses"), "avoid": refer("Clauses"),
                "constraints": {"type": "object", "additionalProperties": false, "properties": {
                    "only": refer("Clauses"), "avoid": refer("Clauses"),
                }},
                "deadline": {"type": "string", "examples": ["5m"]},
                "dst": {"type": "object", "additionalProperties": false, "properties": {
                    "gap": {"enum": ["skip", "after"]}, "fold": {"enum": ["first", "both", "auto"]},
                }},
            },
        },
        "Clauses": {"description": "Such as \"hours=9-17\" or {\"hours\": \"9-17\"}, or a list of these"},
        "NewCronJob": {"type": "object", "required": ["name", "cron", "type"], "properties": cron_members},
        "CronChange": {"type": "object", "properties": cron_members},
        "CronPreview": {"type": "object", "required": ["cron"], "properties": cron_members},
    })
}

/// What the server answers.
fn answers() -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    let maybe_time = json!({"type": ["string", "null"], "format": "date-time"});
    let count = json!({"type": "integer", "minimum": 0});
    let list = |name: &str| json!({"type": "array", "items": refer(name)});
    let page_of = |member: &str, name: &str| {
        json!({"type": "object", "required": [member, "pagination"],
            "properties": {member: list(name), "pagination": refer("Pagination")}})
    };
    json!({
        "OpenApi": {"type": "object", "required": ["openapi", "paths"]},
        "ErrorCatalogue": {"type": "object", "required": ["errors"], "properties": {"errors": {"type": "array"}}},
        "Manifest": {"type": "object", "required": ["specversion", "implementation", "conformance_level", "protocols", "capabilities"]},
        "Health": {"type": "object", "required": ["status", "version", "uptime_seconds", "backend"]},
        "Refusal": {"type": "object", "required": ["error"], "properties": {"error": {
            "type": "object",
            "required": ["code", "type", "message", "retryable", "hint", "docs_url", "details", "request_id"],
            "properties": {
                "code": {"enum": ["backend_error", "backend_unavailable", "conflict", "duplicate", "envelope_too_large",
                    "invalid_payload", "invalid_request", "not_found", "permission_denied", "unauthenticated", "unsupported",
                    "validation_error"]},
                "message": {"type": "string", "minLength": 1}, "retryable": {"type": "boolean"},
                "hint": {"type": "string"}, "details": {"type": "object"}, "request_id": {"type": "string"},
            },
        }}},
        "Pagination": {"type": "object", "required": ["total", "limit", "offset", "has_more"], "properties": {
            "total": count, "limit": count, "offset": count, "has_more": {"type": "boolean"}, "next_cursor": {"type": "string"},
        }},
        "Failure": {"type": "object", "required": ["type", "code", "message", "attempt", "occurred_at"]},
        "Job": {"type": "object",
            "required": ["specversion", "id", "type", "queue", "args", "meta", "priority", "state", "attempt", "max_attempts", "created_at"],
            "properties": {
                "id": {"type": "string"}, "type": {"type": "string"}, "queue": {"type": "string"}, "args": {"type": "array"},
                "meta": {"type": "object"}, "priority": {"type": "integer"}, "state": {"enum": STATES}, "attempt": count, "fence": count,
                "max_attempts": count, "created_at": time, "enqueued_at": time, "started_at": time, "completed_at": time,
                "cancelled_at": time, "discarded_at": time, "next_attempt_at": time, "error": refer("Failure"),
                "errors": list("Failure"), "worker_id": {"type": "string"},
            }},
        "JobAnswer": {"type": "object", "required": ["job"], "properties": {"job": refer("Job")}},
        "JobBatch": {"type": "object", "required": ["jobs", "count"], "properties": {"jobs": list("Job"), "count": count}},
        "Jobs": page_of("jobs", "Job"),
        "Progress": {"type": "object", "required": ["job_id", "state", "progress"], "properties": {
            "progress": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        }},
        "Fetched": {"type": "object", "required": ["jobs"], "properties": {"jobs": list("Job")}},
        "Verdict": {"type": "object", "required": ["id", "job_id", "state", "attempt", "max_attempts"], "properties": {
            "state": {"enum": STATES}, "attempt": count, "next_attempt_at": time, "retry_delay_ms": count,
        }},
        "HeartbeatAnswer": {"type": "object", "required": ["state", "jobs_extended", "cancelled_jobs", "server_time"], "properties": {
            "state": {"enum": ["running", "quiet", "terminate"]}, "jobs_extended": count,
            "cancelled_jobs": {"type": "array", "items": {"type": "string"}},
        }},
        "Queue": {"type": "object", "required": ["name", "status", "created_at"]},
        "Queues": page_of("queues", "Queue"),
        "QueueAnswer": {"type": "object", "required": ["queue"], "properties": {"queue": refer("Queue")}},
        "DeadLetterStats": {"type": "object", "required": ["total", "by_queue", "by_error_type"]},
        "Deleted": {"type": "object", "required": ["deleted", "job_id"]},
        "Worker": {"type": "object", "required": ["worker_id", "state", "alive", "last_heartbeat_at", "active_jobs"]},
        "Workers": page_of("workers", "Worker"),
        "WorkerAnswer": {"type": "object", "required": ["worker"], "properties": {"worker": refer("Worker")}},
        "Cluster": {"type": "object", "required": ["backend", "node", "leader", "nodes", "lag_ms"], "properties": {
            "lag_ms": count,
            "leader": {"oneOf": [{"type": "null"}, {"type": "object", "required": ["node", "epoch", "since", "expires_in_ms"]}]},
            "nodes": {"type": "array", "items": {"type": "object",
                "required": ["id", "address", "version", "started_at", "seen_at", "state", "leads"]}},
        }},
        "CronJob": {"type": "object",
            "required": ["name", "cron", "timezone", "type", "args", "options", "overlap_policy", "enabled", "description",
                "last_run_at", "next_run_at", "run_count", "created_at"],
            "properties": {
                "name": {"type": "string"}, "cron": {"type": "string"}, "timezone": {"type": "string"},
                "overlap_policy": {"enum": ["skip", "allow", "cancel_previous", "enqueue"]}, "enabled": {"type": "boolean"},
                "last_run_at": maybe_time, "next_run_at": maybe_time, "run_count": count, "created_at": time,
            }},
        "CronAnswer": {"type": "object", "required": ["cron_job"], "properties": {"cron_job": refer("CronJob")}},
        "CronJobs": {"type": "object", "required": ["cron_jobs", "count", "pagination"], "properties": {
            "cron_jobs": list("CronJob"), "count": count, "pagination": refer("Pagination"),
        }},
        "Preview": {"type": "object", "required": ["description", "warnings", "next_runs"], "properties": {
            "description": {"type": "string"}, "next_runs": {"type": "array", "items": time},
        }},
        "Occurrence": {"type": "object", "required": ["scheduled_time", "chosen_time", "outcome"], "properties": {
            "scheduled_time": time, "chosen_time": maybe_time,
            "outcome": {"enum": ["executed", "skipped", "missed", "unschedulable", "planned", "disabled"]},
            "reason": {"enum": ["triggered", "overlap_skip", "disabled", "dst_skip", "passed_over", "deadline_passed",
                "unschedulable", "rescheduled"]},
        }},
        "Occurrences": {"type": "object", "required": ["cron_name", "occurrences", "pagination"], "properties": {
            "occurrences": list("Occurrence"),
        }},
        "ZonesRefreshed": {"type": "object", "required": ["time_zones", "changed", "cron_jobs", "count"], "properties": {
            "time_zones": {"type": "string"}, "changed": {"type": "array", "items": {"type": "string"}}, "count": count,
            "cron_jobs": {"type": "array", "items": {"type": "object", "required": ["name", "timezone", "next_run_at_before", "next_run_at"]}},
        }},
        "Why": {"type": "object", "required": ["cron_name", "at", "local", "is_occurrence", "answer", "fields"]},
        "Event": {"type": "object", "required": ["specversion", "id", "type", "source", "time", "subject", "data"]},
        "Events": {"type": "object", "required": ["events", "cursor", "has_more"], "properties": {
            "events": list("Event"), "cursor": {"type": ["string", "null"]}, "has_more": {"type": "boolean"},
        }},
    })
}

/// Who is told of events.
fn webhooks() -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    let count = json!({"type": "integer", "minimum": 0});
    let list = |name: &str| json!({"type": "array", "items": refer(name)});
    let members = json!({
        "url": {"type": "string", "maxLength": 2_048, "examples": ["https://example.com/hook"]},
        "types": {"type": "array", "maxItems": 100, "description": "Of which kinds of events; of all if it is empty",
            "items": {"type": "string", "pattern": "^[a-z._]{0,99}[a-z._*]$", "examples": ["job.completed", "cron.*"]}},
        "description": {"type": ["string", "null"], "maxLength": 1_000},
        "enabled": {"type": "boolean"},
        "after": {"type": "string", "pattern": "^(now|evt_[0-9a-f-]{36})$", "description": "Go on after that event"},
    });
    json!({
        "NewWebhook": {"type": "object", "additionalProperties": false, "required": ["url"], "properties": members},
        "WebhookChange": {"type": "object", "additionalProperties": false, "properties": members},
        "Webhook": {"type": "object",
            "required": ["id", "url", "types", "description", "enabled", "created_at", "state", "forgotten_events"],
            "properties": {
                "id": {"type": "string"}, "url": {"type": "string"}, "types": {"type": "array", "items": {"type": "string"}},
                "enabled": {"type": "boolean"}, "created_at": time, "state": {"enum": ["working", "failing", "disabled"]},
                "disabled_at": time, "disabled_reason": {"type": "string"}, "failing_since": time,
                "pending": refer("Delivery"), "forgotten_events": count,
            }},
        "Webhooks": {"type": "object", "required": ["webhooks", "count"], "properties": {
            "webhooks": list("Webhook"), "count": count,
        }},
        "WebhookAnswer": {"type": "object", "required": ["webhook"], "properties": {"webhook": refer("Webhook")}},
        "WebhookSecret": {"type": "object", "required": ["webhook"], "properties": {"webhook": {
            "allOf": [refer("Webhook"), {"type": "object", "required": ["secret"], "properties": {"secret": {"type": "string"}}}],
        }}},
        "Delivery": {"type": "object",
            "required": ["id", "event_id", "event_type", "state", "attempts", "first_attempt_at", "last_attempt_at",
                "duration_ms", "status", "error"],
            "properties": {
                "state": {"enum": ["delivered", "failed", "passed_over", "retrying", "stopped"]}, "attempts": count,
                "first_attempt_at": time, "last_attempt_at": time, "next_attempt_at": time, "duration_ms": count,
                "status": {"type": ["integer", "null"]}, "error": {"type": ["string", "null"]},
            }},
        "DeliveryAnswer": {"type": "object", "required": ["delivery"], "properties": {"delivery": refer("Delivery")}},
        "Deliveries": {"type": "object", "required": ["deliveries", "count"], "properties": {
            "deliveries": list("Delivery"), "count": count,
        }},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_committed_document_is_fresh() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
        let fresh = format!("{:#}\n", document());
        if std::env::var_os("KRON_BLESS").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let stale = "docs/reference/openapi.json is out of date: run KRON_BLESS=1 cargo test -p kron-server --lib openapi";
        assert!(committed == fresh, "{stale}");
    }

    #[test]
    fn every_name_that_is_referred_to_exists() {
        fn walk(value: &Value, document: &Value) {
            match value {
                Value::Object(members) => {
                    if let Some(Value::String(place)) = members.get("$ref") {
                        let pointer = place.strip_prefix('#').unwrap();
                        assert!(document.pointer(pointer).is_some(), "{place} does not exist");
                    }
                    members.values().for_each(|value| walk(value, document));
                }
                Value::Array(items) => items.iter().for_each(|value| walk(value, document)),
                _ => {}
            }
        }
        let document = document();
        walk(&document, &document);
        // One path and method may appear once only, and so may a name.
        let ids: Vec<&str> = table(true).iter().map(|route| route.id).collect();
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), ids.len());
    }
}
