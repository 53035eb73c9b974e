//! By which names the server may be called, and from whose pages.
//!
//! A page of a stranger can make a browser send requests to any address, and by DNS to itself under a name of the
//! stranger's. Such requests say where they come from: in `Host`, `Origin` and `Sec-Fetch-Site`.

use std::net::SocketAddr;

use axum::http::{HeaderMap, HeaderName, Method, Uri, header};

use crate::members::excerpt;
use crate::refusal::{Code, Refusal};

/// The names that clients may use, each with its port as clients write it, in small letters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hosts(Vec<String>);

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

impl Hosts {
    /// Those that were given, and those by which this host calls itself.
    #[must_use]
    pub fn new(given: &[String], listen: SocketAddr) -> Hosts {
        let mut names: Vec<String> = given.iter().map(|name| name.to_ascii_lowercase()).collect();
        for name in ["localhost", "127.0.0.1", "[::1]"] {
            names.extend(forms(name, listen.port()));
        }
        names.extend(literal(listen));
        Hosts(names)
    }

    /// Whether a request is meant for this server.
    ///
    /// # Errors
    ///
    /// If it says not for whom, says it twice, or names another.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap, local: SocketAddr) -> Result<(), Refusal> {
        let mut given = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (given.next(), given.next()) else {
            return Err(Refusal::request("expected one Host header").field("Host"));
        };
        let host = host.to_str().unwrap_or("");
        // Whoever asks as one asks a proxy names the host twice.
        let named = uri.authority().map(axum::http::uri::Authority::as_str);
        match [Some(host), named].into_iter().flatten().find(|name| !self.knows(name, local)) {
            None => Ok(()),
            Some(other) => {
                let message = format!("{} is no name of this server", excerpt(other));
                Err(Refusal::new(Code::Misdirected, message).field("Host"))
            }
        }
    }

    /// Whether a request that changes something comes from no page, or from one of this server's own.
    ///
    /// # Errors
    ///
    /// If it comes from another's.
    pub fn check_origin(
        &self,
        method: &Method,
        headers: &HeaderMap,
        local: SocketAddr,
    ) -> Result<(), Refusal> {
        if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return Ok(());
        }
        let foreign = |what: &str, found: &str| {
            let message =
                format!("requests from the pages of others are refused: {what} is {}", excerpt(found));
            Refusal::new(Code::PermissionDenied, message)
                .field(what)
                .hint("send it from a program, or from a page of this server")
        };
        for site in headers.get_all(SEC_FETCH_SITE) {
            let site = site.to_str().unwrap_or("");
            if !matches!(site, "none" | "same-origin") {
                return Err(foreign("Sec-Fetch-Site", site));
            }
        }
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or("");
            let host = origin.strip_prefix("https://").or(origin.strip_prefix("http://"));
            if !host.is_some_and(|host| self.knows(host, local)) {
                return Err(foreign("Origin", origin));
            }
        }
        Ok(())
    }

    /// Nobody can make a name lead here that is the very address the client has reached.
    fn knows(&self, name: &str, local: SocketAddr) -> bool {
        let name = name.to_ascii_lowercase();
        self.0.contains(&name) || literal(local).contains(&name)
    }
}

/// An address as clients write it.
fn literal(address: SocketAddr) -> Vec<String> {
    match address.ip().to_canonical() {
        std::net::IpAddr::V4(ip) => forms(&ip.to_string(), address.port()),
        std::net::IpAddr::V6(ip) => forms(&format!("[{ip}]"), address.port()),
    }
}

/// A name with its port, and without it where clients leave it out.
fn forms(name: &str, port: u16) -> Vec<String> {
    let mut forms = vec![format!("{name}:{port}")];
    if matches!(port, 80 | 443) {
        forms.push(name.to_owned());
    }
    forms
}

/// Checks a name that is to be allowed.
///
/// # Errors
///
/// If it is not one that a client could send.
pub fn check_name(name: &str) -> Result<(), String> {
    let usual = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    if name.is_empty() || !name.chars().all(usual) {
        return Err(format!(
            "expected a name as clients send it in Host, such as \"kron.example.org\" or \"kron.lan:8080\", but found {}",
            excerpt(name)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(hosts: &Hosts, uri: &str, given: &[&str]) -> u16 {
        let mut headers = HeaderMap::new();
        for value in given {
            headers.append(header::HOST, value.parse().unwrap());
        }
        let local = "10.0.0.7:8080".parse().unwrap();
        hosts
            .check(&uri.parse().unwrap(), &headers, local)
            .map_or_else(|refusal| refusal.code.status(), |()| 200)
    }

    #[test]
    fn only_own_names_count() {
        let hosts = Hosts::new(&["Kron.example.org".into()], "0.0.0.0:8080".parse().unwrap());
        for name in [
            "kron.example.org",
            "KRON.example.ORG",
            "localhost:8080",
            "127.0.0.1:8080",
            "[::1]:8080",
            "10.0.0.7:8080",
        ] {
            assert_eq!(status(&hosts, "/", &[name]), 200, "{name}");
        }
        for name in [
            "evil.test",
            "evil.test:8080",
            "127.0.0.1.nip.io:8080",
            "kron.example.org:8080",
            "localhost",
            "localhost:80",
            "10.0.0.8:8080",
            "kron.example.org.",
            "x@localhost:8080",
            "localhost:8080 ",
            "localhost:8080,evil.test",
            "0x7f.1:8080",
            "2130706433:8080",
            "[::ffff:127.0.0.1]:8080",
            "",
        ] {
            assert_eq!(status(&hosts, "/", &[name]), 421, "{name}");
        }
        assert_eq!(status(&hosts, "/", &[]), 400);
        assert_eq!(status(&hosts, "/", &["localhost:8080", "localhost:8080"]), 400);
        assert_eq!(status(&hosts, "http://localhost:8080/", &["localhost:8080"]), 200);
        assert_eq!(status(&hosts, "http://evil.test/", &["localhost:8080"]), 421);
    }

    #[test]
    fn the_port_is_left_out_where_clients_leave_it_out() {
        let hosts = Hosts::new(&[], "127.0.0.1:443".parse().unwrap());
        assert_eq!(status(&hosts, "/", &["localhost"]), 200);
        assert_eq!(status(&hosts, "/", &["localhost:443"]), 200);
        assert_eq!(status(&hosts, "/", &["localhost:8443"]), 421);
    }

    #[test]
    fn what_changes_something_comes_from_no_page_of_a_stranger() {
        let hosts = Hosts::new(&["kron.example.org".into()], "127.0.0.1:8080".parse().unwrap());
        let check = |method: Method, given: &[(HeaderName, &str)]| {
            let headers = given.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
            hosts.check_origin(&method, &headers, "127.0.0.1:8080".parse().unwrap()).is_ok()
        };
        let origin = |value| [(header::ORIGIN, value)];
        let site = |value| [(SEC_FETCH_SITE, value)];
        assert!(check(Method::POST, &[]));
        for own in ["http://localhost:8080", "http://127.0.0.1:8080", "https://kron.example.org"] {
            assert!(check(Method::POST, &origin(own)), "{own}");
        }
        for other in [
            "null",
            "",
            "https://evil.test",
            "http://localhost:3000",
            "localhost:8080",
            "file://",
            "http://kron.example.org.evil.test",
        ] {
            assert!(!check(Method::POST, &origin(other)), "{other}");
            assert!(
                check(Method::GET, &origin(other)),
                "what cannot be read by the page does no harm: {other}"
            );
        }
        assert!(check(Method::DELETE, &site("same-origin")) && check(Method::PUT, &site("none")));
        for other in ["cross-site", "same-site", "", "nonsense"] {
            assert!(!check(Method::DELETE, &site(other)), "{other}");
        }
        let both = [(SEC_FETCH_SITE, "cross-site"), (header::ORIGIN, "http://localhost:8080")];
        assert!(!check(Method::PATCH, &both));
    }

    #[test]
    fn names_are_checked() {
        check_name("kron.lan:8080").unwrap();
        check_name("[fd00::1]:8080").unwrap();
        for wrong in ["", "https://kron.lan", "kron.lan/", "*", "a b"] {
            assert!(check_name(wrong).unwrap_err().starts_with("expected a name as clients send it in Host"));
        }
    }
}
