//! An Open Job Spec server: cron jobs, jobs, workers and events over HTTP, with SQLite inside or on
//! PostgreSQL.
//!
//! A request walks in one direction: `routes` read it into values, the [`store`] carries a whole transaction
//! out, and what becomes of a job or a cron job in it is decided by pure code that is told the time
//! ([`job`], [`cron`]; the engine is kron-core). The loops in [`app`] do the same for what time alone brings.
//!
//! # Reading order
//!
//! `members`, `times`, `retry` and `envelope` read what clients write; `job` is a job's life and `job_view` how
//! it is shown; `cron` has the same for cron jobs; `event` is what is told, `feed` hands it out and
//! `webhook` sends it; `refusal` is what is refused; `note` and `metrics` are what is logged and counted.
//! `store` says what must survive and `store/sqlite` keeps it. A client comes in by `listen`, which is held to its
//! time by `pace` and `limits`, and through `http` (`hosts`, `gate`) to the `routes`. `app` is the clockwork, and
//! `serve` puts it all together.

// The OpenAPI document is one large value.
#![recursion_limit = "256"]

pub mod app;
pub mod bell;
pub mod board;
pub mod clock;
pub mod cron;
pub mod demo;
pub mod envelope;
pub mod event;
pub mod feed;
pub mod gate;
pub mod hosts;
pub mod http;
pub mod job;
#[cfg(test)]
mod job_tests;
pub mod job_view;
pub mod leader;
pub mod limits;
pub mod listen;
pub mod members;
pub mod metrics;
pub mod note;
pub mod object;
pub mod openapi;
#[cfg(feature = "otel")]
pub mod otel;
pub mod pace;
pub mod refusal;
pub mod retry;
pub mod routes;
pub mod serve;
pub mod settings;
pub mod sse;
pub mod store;
pub mod times;
pub mod timezones;
pub mod tls;
pub mod token;
pub mod token_command;
pub mod webhook;
