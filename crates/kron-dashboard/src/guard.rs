//! Who may ask: a page of the same origin, under a name that is meant.
//!
//! A browser sends what any page tells it to. So a request is answered only under a name that the server is meant to
//! have (else a name that somebody points at this address would do), and anything that changes something only if the
//! browser says that it comes from this very page.

use crate::board::Refused;
use crate::request::Request;

/// What a browser may do with the page: nothing that it did not get from here.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                          img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// The names under which requests are answered.
#[derive(Clone, Debug)]
pub struct Guard {
    hosts: Vec<String>,
}

impl Guard {
    /// The names of this machine itself at that port, and others, each with its port if it has one.
    #[must_use]
    pub fn new(port: u16, others: impl IntoIterator<Item = String>) -> Guard {
        let own = ["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}"));
        let hosts = own.into_iter().chain(others).map(|host| host.to_ascii_lowercase()).collect();
        Guard { hosts }
    }

    /// Whether a request is one of ours.
    ///
    /// # Errors
    ///
    /// If its name is not one of ours (421), or it comes from another page (403).
    pub fn check(&self, request: &Request) -> Result<(), Refused> {
        let host = request.header("host").unwrap_or_default().to_ascii_lowercase();
        if !self.hosts.contains(&host) {
            let message = match request.count("host") {
                0 => "expected a Host header, but it is missing".into(),
                1 => format!("this server is not called {}", crate::board::excerpt(&host)),
                _ => "expected one Host header, but found several".into(),
            };
            let hint = format!("it answers as {}", self.hosts.join(", "));
            return Err(Refused::new(421, "wrong_host", message).hint(hint));
        }
        let is_reading = matches!(request.method.as_str(), "GET" | "HEAD");
        let is_ours = self.is_ours(request, &host);
        // Whoever follows a link to the page comes from elsewhere, and only sees the page.
        let is_page = !request.path.contains("/api/");
        let is_allowed = is_ours || (is_reading && is_page);
        if !is_allowed {
            let message = "this request comes from another page";
            return Err(Refused::new(403, "cross_site", message).hint("open the dashboard and do it there"));
        }
        if is_reading {
            return Ok(());
        }
        let kind = request.header("content-type").unwrap_or_default();
        if kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
            return Ok(());
        }
        let message =
            format!("expected the content type application/json, but found {}", crate::board::excerpt(kind));
        Err(Refused::new(415, "wrong_content_type", message))
    }

    /// What a browser says about where a request comes from. Programs say nothing, and nobody can make them ask.
    fn is_ours(&self, request: &Request, host: &str) -> bool {
        let site = request.count("sec-fetch-site") == 0
            || matches!(request.header("sec-fetch-site"), Some("same-origin" | "none"));
        let origin = request.count("origin") == 0
            || request.header("origin").is_some_and(|origin| {
                let origin = origin.to_ascii_lowercase();
                ["http://", "https://"].iter().any(|scheme| origin.strip_prefix(scheme) == Some(host))
            });
        site && origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Request { method: method.into(), path: path.into(), headers, ..Request::default() }
    }

    fn status(method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
        let guard = Guard::new(8080, ["kron.example:443".to_owned()]);
        guard.check(&request(method, path, headers)).map_or_else(|refused| refused.status, |()| 200)
    }

    const HOST: (&str, &str) = ("host", "localhost:8080");
    const JSON: (&str, &str) = ("content-type", "application/json");

    #[test]
    fn only_names_that_are_meant_are_answered() {
        for host in ["localhost:8080", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080", "kron.example:443"] {
            assert_eq!(status("GET", "/dashboard/", &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.test",
            "evil.test:8080",
            "127.0.0.1.nip.io:8080",
            "localhost",
            "localhost:80",
            "kron.example",
            "",
        ] {
            assert_eq!(status("GET", "/dashboard/", &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status("GET", "/dashboard/", &[]), 421);
        assert_eq!(status("GET", "/dashboard/", &[HOST, HOST]), 421);
    }

    #[test]
    fn only_the_page_itself_can_change_something() {
        let act =
            |more: &[(&str, &str)]| status("POST", "/dashboard/api/act", &[&[HOST, JSON], more].concat());
        assert_eq!(act(&[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:8080")]), 200);
        assert_eq!(act(&[]), 200, "a program");
        assert_eq!(act(&[("sec-fetch-site", "cross-site")]), 403);
        assert_eq!(act(&[("sec-fetch-site", "same-site")]), 403);
        assert_eq!(act(&[("origin", "null")]), 403);
        assert_eq!(act(&[("origin", "http://evil.test")]), 403);
        assert_eq!(act(&[("origin", "http://localhost:9090")]), 403);
        assert_eq!(act(&[("origin", "http://localhost:8080"), ("origin", "http://evil.test")]), 403);
        let plain = [HOST, ("content-type", "text/plain"), ("sec-fetch-site", "same-origin")];
        assert_eq!(status("POST", "/dashboard/api/act", &plain), 415);
        assert_eq!(status("POST", "/dashboard/api/act", &[HOST]), 415);
    }

    #[test]
    fn a_link_from_elsewhere_leads_to_the_page_but_not_to_its_data() {
        let away = ("sec-fetch-site", "cross-site");
        assert_eq!(status("GET", "/dashboard/", &[HOST, away]), 200);
        assert_eq!(status("GET", "/dashboard/api/now", &[HOST, away]), 403);
        assert_eq!(status("GET", "/dashboard/api/now", &[HOST, ("sec-fetch-site", "same-origin")]), 200);
    }
}
