//! The certificate by which the server is known, and its key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Where they are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Files {
    /// The chain of certificates, the server's own first.
    pub cert: PathBuf,
    /// The private key of the first.
    pub key: PathBuf,
}

impl Files {
    /// What the files say, for TLS 1.2 and later.
    ///
    /// # Errors
    ///
    /// If one cannot be read, holds something else, or they do not belong together.
    pub fn load(&self) -> Result<Arc<ServerConfig>, String> {
        let chain = CertificateDer::pem_file_iter(&self.cert)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong(&self.cert, "a certificate", &error))?;
        if chain.is_empty() {
            return Err(wrong(&self.cert, "a certificate", &PemError::NoItemsFound));
        }
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| wrong(&self.key, "a private key", &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be had: {error}"))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| self.mismatch(&error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn mismatch(&self, error: &rustls::Error) -> String {
        let (cert, key) = (self.cert.display(), self.key.display());
        match error {
            rustls::Error::InconsistentKeys(_) => {
                format!("the key in {key} is not that of the first certificate in {cert}")
            }
            error => format!("the certificate in {cert} and the key in {key} cannot be used: {error}"),
        }
    }
}

fn wrong(path: &Path, what: &str, error: &PemError) -> String {
    let place = path.display();
    match error {
        PemError::Io(error) => format!("could not read {what} from {place}: {error}"),
        PemError::NoItemsFound => format!("expected {what} in {place} in the PEM form, but found none"),
        error => format!("expected {what} in {place} in the PEM form, but it is damaged: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_that_cannot_be_used_are_told() {
        let home = tempfile::tempdir().unwrap();
        let place = |name: &str| home.path().join(name);
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(place("cert.pem"), made.cert.pem()).unwrap();
        fs::write(place("key.pem"), made.signing_key.serialize_pem()).unwrap();
        fs::write(place("other.pem"), other.signing_key.serialize_pem()).unwrap();
        fs::write(place("damaged.pem"), "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n")
            .unwrap();
        fs::write(place("nonsense.pem"), "-----BEGIN CERTIFICATE-----\nMTIz\n-----END CERTIFICATE-----\n")
            .unwrap();
        let load = |cert: &str, key: &str| Files { cert: place(cert), key: place(key) }.load();
        let config = load("cert.pem", "key.pem").unwrap();
        assert_eq!(config.alpn_protocols, [b"http/1.1"]);
        for (cert, key, message) in [
            (
                "none.pem",
                "key.pem",
                "could not read a certificate from DIR/none.pem: No such file or directory (os error 2)",
            ),
            (
                "cert.pem",
                "none.pem",
                "could not read a private key from DIR/none.pem: No such file or directory (os error 2)",
            ),
            ("key.pem", "key.pem", "expected a certificate in DIR/key.pem in the PEM form, but found none"),
            (
                "cert.pem",
                "cert.pem",
                "expected a private key in DIR/cert.pem in the PEM form, but found none",
            ),
            (
                "cert.pem",
                "other.pem",
                "the key in DIR/other.pem is not that of the first certificate in DIR/cert.pem",
            ),
        ] {
            let told = load(cert, key).unwrap_err().replace(&*home.path().to_string_lossy(), "DIR");
            assert_eq!(told, message);
        }
        assert!(load("damaged.pem", "key.pem").unwrap_err().contains("in the PEM form, but it is damaged: "));
        assert!(load("nonsense.pem", "key.pem").unwrap_err().contains(" cannot be used: "));
    }
}
