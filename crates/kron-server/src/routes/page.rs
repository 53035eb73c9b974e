//! What stands in a query.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;

use crate::job_view::read_cursor;
use crate::members::excerpt;
use crate::refusal::Refusal;
use crate::store::PageRequest;

/// The variable of a path. One that cannot be read names nothing.
#[derive(Debug)]
pub(super) struct Named(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named, Refusal> {
        let named = Path::<String>::from_request_parts(parts, state).await;
        named.map(|Path(name)| Named(name)).map_err(|_| crate::http::no_such_path())
    }
}

/// The parameters of a query.
#[derive(Debug)]
pub(super) struct Params(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Params, Refusal> {
        let Query(pairs) = Query::<Vec<(String, String)>>::from_request_parts(parts, state)
            .await
            .map_err(|error| Refusal::request(format!("the query cannot be read: {}", error.body_text())))?;
        Ok(Params(pairs.into_iter().collect()))
    }
}

/// How many a page has if nobody says.
const LIMIT_DEFAULT: u64 = 50;

/// How many a page has at most.
const LIMIT_MAX: u64 = 200;

impl Params {
    /// A parameter; an empty one counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A list, with commas in between.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let parts = self.get(name).into_iter().flat_map(|list| list.split(','));
        parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// A number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.get(name) else { return Ok(None) };
        // What is too large or negative is cut to what is allowed, as for every list.
        match text.parse::<i128>() {
            Ok(number) => Ok(Some(u64::try_from(number.clamp(0, i128::from(u32::MAX))).unwrap_or(0))),
            Err(_) => Err(wrong(name, "a whole number", text)),
        }
    }

    /// Yes or no.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(wrong(name, "true or false", other)),
        }
    }

    /// Which page of a list.
    pub(super) fn page(&self) -> Result<PageRequest, Refusal> {
        let limit = self.number("limit")?.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX);
        Ok(PageRequest { limit: Some(limit), ..self.place()? })
    }

    /// Which page of a list that comes as a whole if nobody asks for pages.
    pub(super) fn page_or_all(&self) -> Result<PageRequest, Refusal> {
        let limit = self.number("limit")?.map(|limit| limit.clamp(1, LIMIT_MAX));
        let place = self.place()?;
        let limit = limit.or(place.cursor.is_some().then_some(LIMIT_DEFAULT));
        Ok(PageRequest { limit, ..place })
    }

    fn place(&self) -> Result<PageRequest, Refusal> {
        let read =
            |text| read_cursor(text).ok_or_else(|| wrong("cursor", "a cursor that an answer gave", text));
        let cursor = self.get("cursor").map(read).transpose()?;
        let offset = if cursor.is_some() { 0 } else { self.number("offset")?.unwrap_or(0) };
        Ok(PageRequest { limit: None, cursor, offset })
    }
}

pub(super) fn wrong(name: &str, expected: &str, found: &str) -> Refusal {
    Refusal::request(format!("expected {expected} in `{name}`, but found {}", excerpt(found))).field(name)
}
