//! `KronJob` on Kubernetes: Jobs that are spread over windows, at most one for each period, and a reason for each that has
//! none.
//!
//! A `KronJob` is a [`kron_core::Job`] and a template of a Job. The operator evaluates it with the ledger that its status
//! keeps, and creates, ends and forgets Jobs of `batch/v1`; pods are Kubernetes' own affair.
//!
//! # Reading order
//!
//! `api` is the resource as people write it, `definition` what is made of its spec. `reconcile` is the heart: a pure function
//! of what is known and the time, whose order keeps a period from having two Jobs; `release` says when the name of a Job is
//! free. `pass` carries out what it says. `job` makes and reads Jobs, `tell` what is told of it all. `controller` watches and queues, and `lease`, `metrics`, `serve` and
//! `event` are around it, and `fault` words what goes wrong on the way. `manifests` is what is installed, `convert` makes `KronJob`s of `CronJob`s, and `cronjob` knows when those fire.

pub mod api;
pub mod clock;
mod condition;
pub mod controller;
pub mod convert;
mod cronjob;
pub mod definition;
mod event;
pub mod fault;
pub mod job;
pub mod lease;
pub mod manifests;
pub mod metrics;
pub mod pass;
pub mod reconcile;
pub mod release;
pub mod serve;
pub mod tell;
