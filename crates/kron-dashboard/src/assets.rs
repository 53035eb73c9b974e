//! The page: plain HTML, CSS and ES modules, embedded as they are written.

use crate::request::{Request, Response};

/// A file of the page.
struct Asset {
    path: &'static str,
    content_type: &'static str,
    body: &'static [u8],
}

macro_rules! assets {
    ($($path:literal $content_type:literal)*) => {
        &[$(Asset { path: $path, content_type: $content_type, body: include_bytes!(concat!("../assets/", $path)) }),*]
    };
}

const ASSETS: &[Asset] = assets! {
    "index.html" "text/html; charset=utf-8"
    "style.css" "text/css; charset=utf-8"
    "icon.svg" "image/svg+xml"
    "app.js" "text/javascript; charset=utf-8"
    "dom.js" "text/javascript; charset=utf-8"
    "net.js" "text/javascript; charset=utf-8"
    "time.js" "text/javascript; charset=utf-8"
    "parts.js" "text/javascript; charset=utf-8"
    "now.js" "text/javascript; charset=utf-8"
    "timeline.js" "text/javascript; charset=utf-8"
    "load.js" "text/javascript; charset=utf-8"
    "jobs.js" "text/javascript; charset=utf-8"
    "job.js" "text/javascript; charset=utf-8"
    "form.js" "text/javascript; charset=utf-8"
    "why.js" "text/javascript; charset=utf-8"
    "queues.js" "text/javascript; charset=utf-8"
};

/// A file of the page, by its path below the mount.
pub(crate) fn asset(path: &str, request: &Request) -> Option<Response> {
    let path = if path.is_empty() { "index.html" } else { path };
    let asset = ASSETS.iter().find(|asset| asset.path == path)?;
    let tag = tag(asset.body);
    let response = Response::new(asset.content_type, asset.body)
        .with("etag", tag.clone())
        // It is asked for again each time, and rarely sent again.
        .with("cache-control", "no-cache");
    if request.header("if-none-match") == Some(&tag) {
        let mut response = response.status(304);
        response.body = Default::default();
        return Some(response);
    }
    Some(response)
}

/// What a body is recognized by.
fn tag(body: &[u8]) -> String {
    let hash = body.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("\"{hash:016x}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_nobody_else_and_runs_nothing_inline() {
        for asset in ASSETS {
            let text = std::str::from_utf8(asset.body).unwrap();
            let path = asset.path;
            assert!(!text.contains("https://"), "{path} names another host");
            for address in text.split("http://").skip(1) {
                assert!(address.starts_with("www.w3.org/"), "{path} names another host");
            }
            for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "srcdoc"]
            {
                assert!(!text.contains(sink), "{path} uses {sink}");
            }
            if path.ends_with(".html") {
                assert!(!text.contains(" style=") && !text.contains("<style") && !text.contains(" onclick"));
                assert_eq!(
                    text.matches("<script").count(),
                    text.matches("<script type=\"module\" src=").count()
                );
            }
        }
    }

    #[test]
    fn whatever_a_module_imports_is_there() {
        for asset in ASSETS.iter().filter(|asset| asset.path.ends_with(".js")) {
            let text = std::str::from_utf8(asset.body).unwrap();
            for import in text.split("from \"./").skip(1) {
                let name = import.split('"').next().unwrap();
                assert!(ASSETS.iter().any(|asset| asset.path == name), "{} imports {name}", asset.path);
            }
        }
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/assets")).unwrap();
        for file in files {
            let name = file.unwrap().file_name().into_string().unwrap();
            assert!(ASSETS.iter().any(|asset| asset.path == name), "{name} is not embedded");
        }
    }
}
