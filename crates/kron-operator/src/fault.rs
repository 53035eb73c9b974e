//! Errors of the API server's, or of the way to it, in a sentence.

use std::error::Error;

use kube::runtime::watcher;

/// What went wrong, for a person.
#[must_use]
pub fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 404 && status.details.is_none() => {
            "the API server does not know KronJobs: apply deploy/crd.yaml first".to_owned()
        }
        kube::Error::Api(status) => {
            format!("the API server says: {} ({})", status.message.trim(), status.code)
        }
        error => format!("the API server gave no answer: {}", causes(error)),
    }
}

/// The same for a watch.
#[must_use]
pub fn told_of_watch(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => told(error),
        error => causes(error),
    }
}

/// An error with what caused it, and what caused that. What an error has said already is not said again.
#[must_use]
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl std::fmt::Display for Layer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_ref().map(|layer| &**layer as &dyn Error)
        }
    }

    #[test]
    fn every_cause_is_told_once() {
        let refused = Layer("connection refused", None);
        let connect = Layer("tcp connect error", Some(Box::new(refused)));
        let again = Layer("client error (Connect)", Some(Box::new(connect)));
        let service = Layer("service: client error (Connect)", Some(Box::new(again)));
        assert_eq!(
            causes(&service),
            "service: client error (Connect): tcp connect error: connection refused"
        );
    }
}
