//! Addresses of services, and the HTTP client that reaches them.

use std::time::Duration;

use reqwest::{Client, Url};

use super::install_crypto;

/// Why there can be no client for such a configuration.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The address is not one.
    #[error("base_url {url:?} is not {wanted} address: {reason}")]
    BaseUrl {
        /// As written.
        url: String,
        /// What was wanted.
        wanted: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The key holds letters that no header may carry.
    #[error("the key cannot be sent: it holds characters that a header may not carry; was it copied whole?")]
    Key,
    /// The HTTP client cannot be made.
    #[error("cannot set up HTTP: {0}")]
    Http(#[source] reqwest::Error),
}

/// A service's address: its root as configured, and paths below it.
#[derive(Clone, Debug)]
pub(crate) struct Address(Url);

impl Address {
    /// Takes `https://host/v1`, with or without a slash at its end.
    pub(crate) fn http(base_url: &str) -> Result<Self, AddressError> {
        Self::parse(base_url, &["http", "https"], "an http or https")
    }

    /// Takes the same written for HTTP or for a socket, since servers have one root for both.
    #[cfg(feature = "socket")]
    pub(crate) fn socket(base_url: &str) -> Result<Self, AddressError> {
        let mut address = Self::parse(base_url, &["ws", "wss", "http", "https"], "a ws, wss, http or https")?;
        let scheme = if matches!(address.0.scheme(), "http" | "ws") { "ws" } else { "wss" };
        // Of the four schemes any may become any other: the set has no special rules between them.
        let _ = address.0.set_scheme(scheme);
        Ok(address)
    }

    fn parse(base_url: &str, schemes: &[&str], wanted: &'static str) -> Result<Self, AddressError> {
        // What is no address may hold a password all the same.
        let url = base_url.rsplit_once('@').map_or(base_url.to_owned(), |(_, host)| format!("…@{host}"));
        let wrong = |reason: String| AddressError::BaseUrl { url: url.clone(), wanted, reason };
        let url = Url::parse(base_url.trim()).map_err(|error| wrong(error.to_string()))?;
        if !schemes.contains(&url.scheme()) || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong(format!("it must begin with {}:// and name a host", schemes.join(":// or "))));
        }
        if !url.username().is_empty() || url.password().is_some() {
            // The address stands in logs and errors.
            return Err(AddressError::BaseUrl {
                url: format!("{}://…@{}", url.scheme(), url.host_str().unwrap_or_default()),
                wanted,
                reason: "credentials do not belong into an address; name them in api_key_env".to_owned(),
            });
        }
        Ok(Self(url))
    }

    /// The address of `path` below the root, with what the root has behind a question mark and `query`.
    pub(crate) fn join(&self, path: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.0.clone();
        let path = format!("{}/{path}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// The same for a path in parts, each of which is written so that it stays one part.
    pub(crate) fn below(&self, parts: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.join("", query);
        // Only addresses without a host have no path, and those are refused.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    /// Nothing on this machine is reached through a proxy.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// A client for this address that follows no redirect: a redirected request would carry the key to another host.
pub(crate) fn http_client(address: &Address, connect_within: Duration) -> Result<Client, AddressError> {
    // The client is built on the process's TLS provider and panics where there is none.
    install_crypto();
    let mut builder = Client::builder()
        .connect_timeout(connect_within)
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none());
    if address.is_loopback() {
        builder = builder.no_proxy();
    }
    builder.build().map_err(AddressError::Http)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_appended_with_and_without_a_slash_and_queries_are_kept() {
        for base in ["http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/"] {
            let address = Address::http(base).unwrap();
            assert_eq!(address.join("a/b", &[]).as_str(), "http://127.0.0.1:8080/v1/a/b");
        }
        let with_query = Address::http("https://host/openai?api-version=2").unwrap();
        assert_eq!(
            with_query.join("x", &[("m", "ä&b")]).as_str(),
            "https://host/openai/x?api-version=2&m=%C3%A4%26b"
        );
    }

    #[test]
    fn credentials_in_the_address_are_refused_and_not_repeated() {
        let error = Address::http("https://me:s3cret@host/v1").unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }

    #[cfg(feature = "socket")]
    #[test]
    fn a_root_for_http_is_one_for_sockets() {
        for (base, socket) in
            [("https://h/v1", "wss://h/v1/x"), ("http://h", "ws://h/x"), ("wss://h", "wss://h/x")]
        {
            assert_eq!(Address::socket(base).unwrap().join("x", &[]).as_str(), socket);
        }
        assert!(Address::socket("ftp://h").is_err());
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let loopback = |address: &str| Address::http(address).unwrap().is_loopback();
        assert!(
            loopback("http://127.0.0.1:1/") && loopback("http://[::1]:1/") && loopback("http://localhost/")
        );
        assert!(!loopback("http://10.0.0.1/") && !loopback("https://localhost.example.com/"));
    }
}
