//! Servers that share a database. With SQLite there is one, which says so.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::operations::{PLUS_1, PLUS_2, put_zone, wait_for};
use super::server::{Home, Server, cron, list, text, time};

fn cluster(server: &Server) -> Value {
    server.get("/kron/v1/cluster").is(200, "everybody says who is there")
}

#[test]
fn everybody_says_who_is_there_and_who_leads() {
    let home = Home::new();
    let first = home.start(&[]);
    if !home.is_shared() {
        let alone = cluster(&first);
        let named = (&alone["backend"], &alone["leader"], &alone["nodes"], &alone["lag_ms"]);
        assert_eq!(named, (&json!("sqlite"), &Value::Null, &json!([]), &json!(0)), "{alone}");
        return;
    }
    wait_for("a leader", || !cluster(&first)["leader"].is_null());
    let second = home.start(&[]);
    wait_for("both", || list(&cluster(&second)["nodes"]).len() == 2);
    let (here, there) = (cluster(&first), cluster(&second));
    assert_eq!(here["backend"], "postgres");
    assert_ne!(here["node"], there["node"], "each has its own name");
    for (server, said) in [(&first, &here), (&second, &there)] {
        let leader = &said["leader"];
        assert_eq!(leader["node"], here["node"], "the one that was there first leads: {said}");
        assert!(leader["epoch"].as_u64().unwrap() > 0 && leader["expires_in_ms"].as_u64().unwrap() <= 15_000);
        assert!(said["lag_ms"].is_u64(), "{said}");
        time(&leader["since"]);
        let own = list(&said["nodes"]).into_iter().find(|node| node["id"] == said["node"]).unwrap();
        assert!(text(&own["address"]).ends_with(server.host().rsplit_once(':').unwrap().1), "{own}");
        assert_eq!((&own["state"], &own["leads"]), (&json!("alive"), &json!(leader["node"] == own["id"])));
        assert!(time(&own["started_at"]) <= time(&own["seen_at"]), "{own}");
        assert!(!text(&own["version"]).is_empty());
    }

    let epoch = here["leader"]["epoch"].as_u64().unwrap();
    let (_, status) = first.stop();
    assert!(status.success());
    wait_for("another leader", || cluster(&second)["leader"]["node"] == there["node"]);
    let after = cluster(&second);
    assert_eq!(after["leader"]["epoch"], epoch + 1);
    assert_eq!(list(&after["nodes"]).len(), 1, "one that has ended is not there any more: {after}");
}

#[test]
fn plans_follow_the_time_zones_of_the_server_that_leads() {
    let home = Home::new();
    if !home.is_shared() {
        return;
    }
    let start = |zones: &Path, data: &str, version: &str| {
        put_zone(zones, "Test/Place", data, version);
        let settings = zones.join("settings.toml");
        fs::write(&settings, format!("zoneinfo = {zones:?}\n")).unwrap();
        home.start(&["--config", settings.to_str().unwrap()])
    };
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = start(here.path(), PLUS_2, "2099a");
    wait_for("a leader", || !cluster(&first)["leader"].is_null());
    first.register(cron("noon", "0 12 29 2 *", json!({"timezone": "Test/Place"})));
    let noon = |server: &Server| text(&server.cron("noon")["next_run_at"]).to_owned();
    let second = start(there.path(), PLUS_1, "2099b");
    let refresh =
        |server: &Server| server.post("/kron/v1/timezones/refresh", json!({})).is(200, "it is read");
    // What it reads has changed by what it knew, and still it makes no plans.
    second.get("/kron/v1/cron/noon/preview");
    put_zone(there.path(), "Test/Place", "Africa/Nairobi", "2099c");
    assert_eq!(refresh(&second)["count"], 0);
    assert!(noon(&second).contains("-02-29T10:00:00"), "{}", noon(&second));

    first.stop();
    wait_for("its plans, once it leads", || noon(&second).contains("-02-29T09:00:00"));
    put_zone(there.path(), "Test/Place", PLUS_1, "2099d");
    assert_eq!(refresh(&second)["count"], 1);
    assert!(noon(&second).contains("-02-29T11:00:00"));
}
