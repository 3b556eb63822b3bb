//! Certificates of an authority that nobody trusts but the test that made it.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::needs::skip;

/// An authority of a test's own, in a folder that is gone afterwards. The work is openssl's own program's.
#[derive(Debug)]
pub struct Authority(TempDir);

impl Authority {
    /// Makes one. `None`: openssl is not here, which is said loudly.
    ///
    /// # Panics
    /// In continuous integration, if openssl is not here.
    pub fn new() -> Option<Self> {
        let authority = Self(tempfile::tempdir().ok()?);
        let made = authority.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=tests \
             -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign \
             -keyout ca.key -out ca.pem",
        );
        (made || skip("openssl is missing; get it with: scripts/setup --peers")).then_some(authority)
    }

    fn openssl(&self, words: &str) -> bool {
        let mut openssl = Command::new("openssl");
        openssl.args(words.split_whitespace()).current_dir(self.folder());
        openssl.output().is_ok_and(|told| told.status.success())
    }

    /// Where everything is.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Whom to trust, in PEM.
    pub fn root(&self) -> PathBuf {
        self.folder().join("ca.pem")
    }

    /// A certificate for 127.0.0.1 and `localhost`, and its key, in PEM; `name` is that of the files and of the subject.
    ///
    /// # Panics
    /// If openssl makes none.
    pub fn issue(&self, name: &str) -> (PathBuf, PathBuf) {
        let names =
            std::fs::write(self.folder().join("names"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
        let asked = format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} -keyout {name}.key \
             -out {name}.csr"
        );
        let signed = format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -extfile names \
             -out {name}.pem"
        );
        let made = names.is_ok() && self.openssl(&asked) && self.openssl(&signed);
        assert!(made, "openssl makes no certificate for {name}");
        (self.folder().join(format!("{name}.pem")), self.folder().join(format!("{name}.key")))
    }
}
