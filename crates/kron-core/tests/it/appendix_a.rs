//! The self-check numbers of the design, appendix A. The bits of the functions are in `math.rs`.

use kron_core::{
    Anchor, Constraints, Decision, Direction, Distribution, JobBuilder, SeedStrategy, WindowMode, decide,
    seed_material,
};

use crate::jobs::{at, job};

fn alpha(zone: &str) -> JobBuilder {
    job("demo/alpha", zone).window(WindowMode::After, "2h".parse().unwrap()).seed(SeedStrategy::Stable, "s1")
}

fn decided(job: JobBuilder, nominal: &str) -> Decision {
    decide(&job.build().unwrap(), at(nominal))
}

#[test]
fn e1_uniform_after() {
    let job = alpha("Europe/Berlin").build().unwrap();
    let nominal = at("2026-05-04T06:00:00Z");
    let decision = decide(&job, nominal);
    assert_eq!(
        decision.seed_hash().to_string(),
        "247ecbef7951e20e1af04d61af524623ad27af132fd63249124207d3097af906"
    );
    assert_eq!(decision.chosen(), Some(at("2026-05-04T06:56:47Z")));
    assert_eq!(seed_material(&job, nominal), "demo/alpha\n2026-05-04T06:00:00Z\ns1");
}

#[test]
fn e2_skew_late_around_with_a_daily_seed() {
    let job = job("demo/beta", "Asia/Tokyo")
        .window(WindowMode::Around, "45m".parse().unwrap())
        .distribution(Distribution::SkewLate { shape: 2.5 })
        .seed(SeedStrategy::Daily, "\u{e9}t\u{e9}");
    let decision = decided(job, "2026-05-04T06:00:00Z");
    assert_eq!(decision.period_key().to_string(), "2026-05-04");
    assert_eq!(
        decision.seed_hash().to_string(),
        "a8c2473a0c3c1d6b2dd0af6ec15b3a50722b53903187cf541a633fa9518e92a4"
    );
    assert_eq!(decision.chosen(), Some(at("2026-05-04T05:38:58Z")));
}

#[test]
fn e3_skew_early_around_five_seconds_in_a_week_of_another_year() {
    let job = job("demo/gamma", "UTC")
        .window(WindowMode::Around, "5s".parse().unwrap())
        .distribution(Distribution::SkewEarly { shape: 2.0 })
        .seed(SeedStrategy::Weekly, "");
    let decision = decided(job, "2027-01-01T10:00:00Z");
    assert_eq!(decision.period_key().to_string(), "2026-W53");
    assert_eq!(decision.window_start(), at("2027-01-01T09:59:57Z"));
    assert_eq!(decision.window_end(), at("2027-01-01T10:00:02Z"));
    assert_eq!(decision.chosen(), Some(at("2027-01-01T09:59:58Z")));
}

#[test]
fn e4_a_quarter_of_an_hour_in_three_takes_six_attempts() {
    let mut constraints = Constraints::default();
    constraints.add_only("between=08:00-08:14").unwrap();
    let job =
        job("demo/delta", "UTC").window(WindowMode::After, "3h".parse().unwrap()).constraints(constraints);
    let decision = decided(job, "2026-05-04T06:00:00Z");
    assert_eq!(decision.attempts(), 6);
    assert_eq!(decision.chosen(), Some(at("2026-05-04T08:02:24Z")));
}

#[test]
fn e5_normal() {
    for mu in [None, Some(Anchor::Mid)] {
        let sigma = Some("10m".parse().unwrap());
        let job = alpha("UTC").distribution(Distribution::Normal { mu, sigma });
        assert_eq!(decided(job, "2026-05-04T06:00:00Z").chosen(), Some(at("2026-05-04T06:59:20Z")));
    }
}

#[test]
fn e6_exponential() {
    let job =
        alpha("UTC").distribution(Distribution::Exponential { lambda: 3.0, direction: Direction::Late });
    assert_eq!(decided(job, "2026-05-04T06:00:00Z").chosen(), Some(at("2026-05-04T07:36:07Z")));
}
