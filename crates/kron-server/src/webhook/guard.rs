//! Whom webhooks may call.
//!
//! Whoever can make a webhook has the server send requests, and the server stands where others cannot reach: beside
//! databases, routers and the metadata of clouds. So only public addresses are called, at a few ports, and the
//! addresses of one's own network only where the settings open them one by one. Names say nothing: what is checked is
//! the address that is dialled, each time it is dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::http::Uri;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// What may be called.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Guard {
    /// At which ports of public addresses.
    pub ports: Vec<u16>,
    /// Whether without encryption too.
    pub http: bool,
    /// What else.
    pub openings: Vec<Opening>,
}

/// Addresses that may be called at one port, whatever they are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Opening {
    net: IpNet,
    port: u16,
}

/// Where a webhook's URL leads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    /// Whether it is encrypted.
    pub is_secure: bool,
    /// The name or address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The `Host` that the request names.
    pub authority: String,
    /// What is asked for there.
    pub path: String,
}

/// The longest URL.
pub const URL_CHARS_MAX: usize = 2_048;

impl Guard {
    /// Whether an address may be dialled.
    ///
    /// # Errors
    ///
    /// Why not, for people.
    pub fn check(&self, address: SocketAddr) -> Result<(), String> {
        let (ip, port) = (address.ip(), address.port());
        if self.openings.iter().any(|opening| opening.port == port && opening.net.contains(&ip)) {
            return Ok(());
        }
        if let Some(kind) = special(ip) {
            return Err(format!(
                "webhooks may not call {ip}, which is {kind}; the setting `webhooks.allow` opens such addresses one by one"
            ));
        }
        if !self.ports.contains(&port) {
            return Err(format!(
                "webhooks may not call port {port}; the setting `webhooks.ports` lists the ports that they may"
            ));
        }
        Ok(())
    }

    /// Reads a URL, and refuses what could be dialled under no circumstances.
    ///
    /// # Errors
    ///
    /// What is wrong with it, for people.
    pub fn target(&self, url: &str) -> Result<Target, String> {
        let wrong = |what: &str| Err(format!("expected a URL such as https://example.com/hook, but {what}"));
        if url.len() > URL_CHARS_MAX {
            return wrong(&format!("it is longer than {URL_CHARS_MAX} characters"));
        }
        let Ok(uri) = Uri::from_str(url) else { return wrong("this is none") };
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if self.http => false,
            Some("http") => {
                return wrong("this one is not encrypted; the setting `webhooks.http` allows that");
            }
            _ => return wrong("this one begins with something else"),
        };
        let Some(authority) = uri.authority() else { return wrong("this one names no host") };
        if authority.as_str().contains('@') {
            return wrong("this one holds a user or a password");
        }
        if url.contains('#') {
            return wrong("this one has a fragment, which is never sent");
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if let Some(form) = strange_address(&host) {
            return wrong(&format!("its host is {form}"));
        }
        let port = match (authority.port_u16(), authority.port()) {
            (Some(port), _) => port,
            (None, Some(_)) => return wrong("its port is none"),
            (None, None) if is_secure => 443,
            (None, None) => 80,
        };
        match host.parse::<IpAddr>() {
            Ok(ip) => self.check(SocketAddr::new(ip, port))?,
            // Its addresses are looked at when they are dialled.
            Err(_) if self.ports.contains(&port) || self.openings.iter().any(|it| it.port == port) => {}
            Err(_) => {
                return Err(format!(
                    "webhooks may not call port {port}; the setting `webhooks.ports` lists the ports that they may"
                ));
            }
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Target { is_secure, host, port, authority: authority.as_str().to_owned(), path })
    }
}

/// An address may be written in ways that only some programs understand; nobody does that by accident.
fn strange_address(host: &str) -> Option<&'static str> {
    if host.is_empty() || host.parse::<IpAddr>().is_ok() {
        return host.is_empty().then_some("empty");
    }
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or("");
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match host {
        _ if host.contains(':') => Some("no address"),
        _ if is_number => Some("a number that is no address in its usual form, such as 192.0.2.1"),
        _ => None,
    }
}

impl FromStr for Opening {
    type Err = String;

    /// Reads `10.1.0.0/16:8443`, `127.0.0.1:9000` or `[fd00::/8]:443`.
    fn from_str(text: &str) -> Result<Opening, String> {
        let wrong = || {
            format!(
                "expected addresses and a port such as \"10.1.0.0/16:8443\", \"127.0.0.1:9000\" or \
                 \"[fd00::/8]:443\", but found {text:?}"
            )
        };
        let (addresses, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let bracketed = addresses.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let addresses = match bracketed {
            Some(inner) => inner,
            None if addresses.contains(':') => return Err(wrong()),
            None => addresses,
        };
        let net = match addresses.parse::<IpAddr>() {
            Ok(one) => IpNet::from(one),
            Err(_) => addresses.parse().map_err(|_| wrong())?,
        };
        if net != net.trunc() {
            return Err(format!(
                "expected {:?} to begin where its addresses do, at {:?}",
                text,
                net.trunc().to_string()
            ));
        }
        Ok(Opening { net, port })
    }
}

/// Addresses of IPv4 that are not those of somebody on the Internet (the registry of RFC 6890).
const SPECIAL_V4: [(Ipv4Net, &str); 16] = [
    (v4([0, 0, 0, 0], 8), "an address of this host"),
    (v4([10, 0, 0, 0], 8), "a private address"),
    (v4([100, 64, 0, 0], 10), "an address of a carrier's own network"),
    (v4([127, 0, 0, 0], 8), "a loopback address"),
    (v4([169, 254, 0, 0], 16), "a link-local address"),
    (v4([172, 16, 0, 0], 12), "a private address"),
    (v4([192, 0, 0, 0], 24), "an address for protocols"),
    (v4([192, 0, 2, 0], 24), "an address for documentation"),
    (v4([192, 88, 99, 0], 24), "an address of 6to4 relays"),
    (v4([192, 168, 0, 0], 16), "a private address"),
    (v4([198, 18, 0, 0], 15), "an address for benchmarks"),
    (v4([198, 51, 100, 0], 24), "an address for documentation"),
    (v4([203, 0, 113, 0], 24), "an address for documentation"),
    (v4([224, 0, 0, 0], 4), "a multicast address"),
    (v4([255, 255, 255, 255], 32), "the broadcast address"),
    (v4([240, 0, 0, 0], 4), "a reserved address"),
];

/// The same of IPv6. What stands for an address of IPv4 is refused whatever it stands for.
const SPECIAL_V6: [(Ipv6Net, &str); 17] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "an address of this host"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    (v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), "an IPv4 address in IPv6"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), "an IPv4 address in IPv6"),
    (v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96), "an IPv4 address in IPv6"),
    (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), "an IPv4 address behind NAT64"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "an IPv4 address behind NAT64"),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "an address that leads nowhere"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "a Teredo address"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "an address for protocols"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "an address for documentation"),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "an IPv4 address behind 6to4"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "an address for documentation"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a private address"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "a site-local address"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

/// All public addresses of IPv6 lie here.
const PUBLIC_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    let [a, b, c, d] = octets;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(groups: [u16; 8], prefix: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = groups;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}

/// What an address is, if it is not one of somebody on the Internet.
fn special(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => SPECIAL_V4.iter().find(|(net, _)| net.contains(&ip)).map(|(_, kind)| *kind),
        IpAddr::V6(ip) => SPECIAL_V6
            .iter()
            .find(|(net, _)| net.contains(&ip))
            .map(|(_, kind)| *kind)
            .or((!PUBLIC_V6.contains(&ip)).then_some("not a public address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn guard(openings: &[&str]) -> Guard {
        let openings = openings.iter().map(|text| text.parse().unwrap()).collect();
        Guard { ports: vec![443, 80], http: true, openings }
    }

    #[test]
    fn only_addresses_of_somebody_on_the_internet_are_called() {
        let guard = guard(&[]);
        for (ip, kind) in [
            ("0.0.0.0", "an address of this host"),
            ("0.1.2.3", "an address of this host"),
            ("10.0.0.1", "a private address"),
            ("100.64.0.1", "an address of a carrier's own network"),
            ("100.127.255.255", "an address of a carrier's own network"),
            ("127.0.0.1", "a loopback address"),
            ("127.255.255.254", "a loopback address"),
            ("169.254.169.254", "a link-local address"),
            ("172.16.0.1", "a private address"),
            ("172.31.255.255", "a private address"),
            ("192.0.0.170", "an address for protocols"),
            ("192.0.2.1", "an address for documentation"),
            ("192.88.99.1", "an address of 6to4 relays"),
            ("192.168.1.1", "a private address"),
            ("198.18.0.1", "an address for benchmarks"),
            ("198.51.100.7", "an address for documentation"),
            ("203.0.113.7", "an address for documentation"),
            ("224.0.0.1", "a multicast address"),
            ("240.0.0.1", "a reserved address"),
            ("255.255.255.255", "the broadcast address"),
            ("::", "an address of this host"),
            ("::1", "a loopback address"),
            ("::127.0.0.1", "an IPv4 address in IPv6"),
            ("::ffff:127.0.0.1", "an IPv4 address in IPv6"),
            ("::ffff:8.8.8.8", "an IPv4 address in IPv6"),
            ("::ffff:0:7f00:1", "an IPv4 address in IPv6"),
            ("64:ff9b::7f00:1", "an IPv4 address behind NAT64"),
            ("64:ff9b:1::7f00:1", "an IPv4 address behind NAT64"),
            ("100::1", "an address that leads nowhere"),
            ("2001::1", "a Teredo address"),
            ("2001:2::1", "an address for protocols"),
            ("2001:db8::1", "an address for documentation"),
            ("2002:7f00:1::", "an IPv4 address behind 6to4"),
            ("3fff::1", "an address for documentation"),
            ("5f00::1", "not a public address"),
            ("fc00::1", "a private address"),
            ("fd12:3456::1", "a private address"),
            ("fe80::1", "a link-local address"),
            ("fec0::1", "a site-local address"),
            ("ff02::1", "a multicast address"),
        ] {
            let ip: IpAddr = ip.parse().unwrap();
            let why = guard.check(SocketAddr::new(ip, 443)).unwrap_err();
            let expected = format!(
                "webhooks may not call {ip}, which is {kind}; the setting `webhooks.allow` opens such addresses one by one"
            );
            assert_eq!(why, expected);
        }
        for ip in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.169.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "2a00:1450::1",
            "2003::1",
        ] {
            assert_eq!(guard.check(SocketAddr::new(ip.parse().unwrap(), 443)), Ok(()), "{ip}");
        }
        let why = guard.check("1.1.1.1:22".parse().unwrap()).unwrap_err();
        assert_eq!(
            why,
            "webhooks may not call port 22; the setting `webhooks.ports` lists the ports that they may"
        );
    }

    #[test]
    fn an_opening_opens_itself_and_nothing_else() {
        let guard = guard(&["10.1.0.0/16:8443", "127.0.0.1:9000", "[fd00::/8]:443"]);
        for (address, is_open) in [
            ("10.1.2.3:8443", true),
            ("10.1.2.3:443", false),
            ("10.2.0.1:8443", false),
            ("127.0.0.1:9000", true),
            ("127.0.0.2:9000", false),
            ("127.0.0.1:9001", false),
            ("[::ffff:127.0.0.1]:9000", false),
            ("[::1]:9000", false),
            ("[fd00::1]:443", true),
            ("[fd00::1]:444", false),
            ("1.1.1.1:443", true),
        ] {
            assert_eq!(guard.check(address.parse().unwrap()).is_ok(), is_open, "{address}");
        }
        for text in [
            "10.1.0.0/16",
            "10.1.0.0/33:1",
            "10.1.0.0/16:",
            ":80",
            "fd00::/8:443",
            "[fd00::/8]",
            "host:1",
            "10.1.0.0/16:70000",
            "[10.0.0.1:80",
        ] {
            assert!(
                text.parse::<Opening>().unwrap_err().starts_with("expected addresses and a port"),
                "{text}"
            );
        }
        assert_eq!(
            "10.1.2.3/16:1".parse::<Opening>().unwrap_err(),
            "expected \"10.1.2.3/16:1\" to begin where its addresses do, at \"10.1.0.0/16\""
        );
    }

    #[test]
    fn a_url_is_read_with_suspicion() {
        let like = "expected a URL such as https://example.com/hook, but";
        let strange = "its host is a number that is no address in its usual form, such as 192.0.2.1";
        for (url, why) in [
            ("", "this is none".to_owned()),
            ("example.com", "this one begins with something else".into()),
            ("ftp://example.com/", "this one begins with something else".into()),
            ("file:///etc/passwd", "this is none".into()),
            ("https://", "this is none".into()),
            ("https://user:password@example.com/", "this one holds a user or a password".into()),
            ("https://example.com@127.0.0.1/", "this one holds a user or a password".into()),
            ("https://example.com/#here", "this one has a fragment, which is never sent".into()),
            ("https://2130706433/", strange.into()),
            ("https://0x7f000001/", strange.into()),
            ("https://0x7f.1/", strange.into()),
            ("https://0177.0.0.1/", strange.into()),
            ("https://127.1/", strange.into()),
            ("https://127.0.0.1./", strange.into()),
            ("https://exa mple.com/", "this is none".into()),
            (
                &format!("https://example.com/{}", "a".repeat(2_100)),
                "it is longer than 2048 characters".into(),
            ),
        ] {
            assert_eq!(guard(&[]).target(url).unwrap_err(), format!("{like} {why}"), "{url}");
        }
        for url in [
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[64:ff9b::7f00:1]/",
            "http://169.254.169.254/latest/meta-data/",
            "https://example.com:22/",
            "https://1.1.1.1:8443/",
        ] {
            assert!(guard(&[]).target(url).unwrap_err().starts_with("webhooks may not call"), "{url}");
        }
        let plain = Guard { http: false, ..guard(&[]) };
        assert_eq!(
            plain.target("http://example.com/").unwrap_err(),
            format!("{like} this one is not encrypted; the setting `webhooks.http` allows that")
        );
        let target = guard(&["10.0.0.1:8443"]).target("https://Example.com:8443/hook?a=b").unwrap();
        let expected = Target {
            is_secure: true,
            host: "example.com".into(),
            port: 8443,
            authority: "Example.com:8443".into(),
            path: "/hook?a=b".into(),
        };
        assert_eq!(target, expected);
        assert_eq!(guard(&["[::1]:80"]).target("http://[::1]").unwrap().host, "::1");
        assert_eq!(guard(&[]).target("http://example.com").unwrap().path, "/");
    }

    proptest! {
        #[test]
        fn what_the_standard_library_knows_to_be_inside_is_refused(bits: u32, port in prop::sample::select(vec![80_u16, 443])) {
            let ip = Ipv4Addr::from(bits);
            let is_inside = ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_multicast()
                || ip.is_unspecified() || ip.is_broadcast() || ip.is_documentation();
            let guard = guard(&[]);
            if is_inside {
                prop_assert!(guard.check(SocketAddr::new(ip.into(), port)).is_err());
            }
            // However an address of IPv4 is dressed up, it is refused.
            let [high, low] = [(bits >> 16) as u16, (bits & 0xffff) as u16];
            for dressed in [
                ip.to_ipv6_mapped(),
                ip.to_ipv6_compatible(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 1, 7, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, high, low, 0, 0, !high, !low),
            ] {
                prop_assert!(guard.check(SocketAddr::new(dressed.into(), port)).is_err(), "{dressed}");
            }
        }

        #[test]
        fn of_ipv6_only_global_unicast_is_called(bits: u128) {
            let ip = Ipv6Addr::from(bits);
            if guard(&[]).check(SocketAddr::new(ip.into(), 443)).is_ok() {
                prop_assert_eq!(bits >> 125, 1);
                prop_assert!(!ip.is_multicast() && !ip.is_loopback() && !ip.is_unique_local());
            }
        }

        #[test]
        fn an_opening_never_opens_more_than_it_says(net: u32, prefix in 0_u8..=32, at: u32, port in 1_u16..4, asked in 1_u16..4) {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            let opening = format!("{}/{prefix}:{port}", Ipv4Addr::from(net & mask));
            let guard = Guard { ports: Vec::new(), http: false, openings: vec![opening.parse().unwrap()] };
            let is_open = guard.check(SocketAddr::new(Ipv4Addr::from(at).into(), asked)).is_ok();
            prop_assert_eq!(is_open, at & mask == net & mask && port == asked);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}|https?://[0-9a-fx.:\\[\\]@%/?#-]{0,30}") {
            let guard = guard(&[]);
            if let Ok(target) = guard.target(&text) {
                prop_assert!(!target.host.is_empty() && !target.host.contains(['@', '/', ' ']), "{target:?}");
                if let Ok(ip) = target.host.parse() {
                    prop_assert_eq!(guard.check(SocketAddr::new(ip, target.port)), Ok(()));
                }
            }
        }
    }
}
