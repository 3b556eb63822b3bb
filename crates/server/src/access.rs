//! Who may do what: bearer tokens with roles, kept as hashes.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Expiry, Problem};

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// See calls and figures.
    Read,
    /// Make calls, speak in them, end them.
    Call,
    /// Approve what needs an operator.
    Approve,
    /// Hold text conversations.
    App,
    /// Start calls from a browser with certain agents, and end those.
    Page,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Read, Self::Call, Self::Approve, Self::App, Self::Page];

    /// Its name, as it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Call => "call",
            Self::Approve => "approve",
            Self::App => "app",
            Self::Page => "page",
        }
    }
}

/// A token as it is written down: nobody who reads the file can use it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Whose it is, for the log.
    pub name: String,
    /// SHA-256 of it, in hexadecimal digits.
    pub sha256: String,
    /// What it may do.
    pub roles: Vec<Role>,
    /// Which agents a page may call, by their names in `[agents]`. Only the role `page` has them, and needs them.
    #[serde(default)]
    pub agents: Vec<String>,
    /// Until when it is taken; without it, for good.
    #[serde(default)]
    pub expires: Option<Expiry>,
}

impl Token {
    /// The token of somebody, with roles that are not tied to agents.
    pub fn new(name: &str, secret: &str, roles: &[Role]) -> Self {
        Self {
            name: name.to_owned(),
            sha256: hash(secret),
            roles: roles.to_vec(),
            agents: Vec::new(),
            expires: None,
        }
    }
}

/// Whose token a request brought, and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    token: Arc<Token>,
}

impl Who {
    /// The token's name.
    pub fn name(&self) -> &str {
        &self.token.name
    }

    /// What it may do.
    pub fn roles(&self) -> &[Role] {
        &self.token.roles
    }

    /// Whether this is a token for one page, which reaches nothing but its own calls.
    pub fn is_page(&self) -> bool {
        self.token.roles.contains(&Role::Page) && !self.token.roles.contains(&Role::Call)
    }

    /// Refuses whoever has none of these roles.
    ///
    /// # Errors
    /// 403.
    pub fn may_one_of(&self, roles: &[Role]) -> Result<(), Problem> {
        if roles.iter().any(|role| self.token.roles.contains(role)) {
            return Ok(());
        }
        let names: Vec<String> = roles.iter().map(|role| format!("{:?}", role.name())).collect();
        let detail = format!("the token of {:?} has not the role {}", self.token.name, names.join(" or "));
        Err(Problem::new(StatusCode::FORBIDDEN, "role-missing", detail))
    }

    /// Refuses a page that wants to call another agent than its own.
    ///
    /// # Errors
    /// 403.
    pub fn may_call(&self, agent: &str) -> Result<(), Problem> {
        if !self.is_page() || self.token.agents.iter().any(|own| own == agent) {
            return Ok(());
        }
        let detail = format!(
            "the token of {:?} may call {} only, not {agent:?}; send ?agent=NAME",
            self.token.name,
            self.token.agents.join(", "),
        );
        Err(Problem::new(StatusCode::FORBIDDEN, "agent-not-yours", detail))
    }
}

/// Why the tokens cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The hash is none.
    #[error("the token {name:?} has no SHA-256 of 64 hexadecimal digits; make one with: sayback token")]
    BadHash {
        /// Whose token.
        name: String,
    },
    /// Two tokens are the same.
    #[error("the tokens {0:?} and {1:?} are the same; whose is it?")]
    Twice(String, String),
    /// Everybody could do everything.
    #[error(
        "without tokens only loopback is served, and {listen} is reachable from outside; \
         add an [[auth.token]] (make one with: sayback token) or listen on 127.0.0.1"
    )]
    Open {
        /// Where it listens.
        listen: String,
    },
    /// A page that may call everybody, or agents of a token that is for no page.
    #[error(
        "the token {name:?} has {}; a token for a page has roles = [\"page\"] and agents = [\"NAME\", …]",
        if *agents { "agents, and another role than page reaches every call" } else { "the role page and no agents" }
    )]
    Page {
        /// Whose token.
        name: String,
        /// Whether it has agents.
        agents: bool,
    },
}

/// Who may do what.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// By the hash. It is looked up, not compared: what can be learnt from the time it takes is of the hash.
    tokens: BTreeMap<String, Who>,
}

impl Access {
    /// Tokens for a server that listens there. Without any, whoever reaches a loopback address may do everything.
    ///
    /// # Errors
    /// If a token is broken, or there is none and others than this machine could reach it.
    pub fn new(written: Vec<Token>, listen: std::net::SocketAddr) -> Result<Self, AccessError> {
        let mut tokens: BTreeMap<String, Who> = BTreeMap::new();
        for mut token in written {
            token.sha256 = token.sha256.trim_start_matches("sha256:").to_ascii_lowercase();
            if token.sha256.len() != 64 || !token.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(AccessError::BadHash { name: token.name });
            }
            let (agents, name) = (!token.agents.is_empty(), token.name.clone());
            if agents != (token.roles.contains(&Role::Page)) || (agents && token.roles != [Role::Page]) {
                return Err(AccessError::Page { name, agents });
            }
            if let Some(other) = tokens.insert(token.sha256.clone(), Who { token: Arc::new(token) }) {
                return Err(AccessError::Twice(other.token.name.clone(), name));
            }
        }
        if tokens.is_empty() && !listen.ip().is_loopback() {
            return Err(AccessError::Open { listen: listen.to_string() });
        }
        Ok(Self { tokens })
    }

    /// Whether whoever reaches the server may do everything.
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Whose token a request has, and what it may do. Without any tokens, whoever is on this machine may do everything.
    ///
    /// # Errors
    /// 401 without a token that is known and has not expired, 403 for a request from elsewhere where there are no tokens.
    pub fn who(&self, headers: &HeaderMap) -> Result<Who, Problem> {
        if self.tokens.is_empty() {
            let token = Token {
                name: local(headers)?.to_owned(),
                sha256: String::new(),
                roles: Role::ALL.to_vec(),
                agents: Vec::new(),
                expires: None,
            };
            return Ok(Who { token: Arc::new(token) });
        }
        let header = headers.get("authorization").and_then(|value| value.to_str().ok());
        let (scheme, token) = header.and_then(|h| h.split_once(' ')).ok_or_else(Self::token_wanted)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Self::token_wanted());
        }
        let who = self.tokens.get(&hash(token.trim())).cloned().ok_or_else(|| {
            Problem::new(StatusCode::UNAUTHORIZED, "unknown-token", "this token is not known here")
        })?;
        match &who.token.expires {
            Some(expires) if expires.is_over() => Err(Self::expired(who.name(), expires)),
            Some(_) | None => Ok(who),
        }
    }

    /// What is said to whoever comes too late; it is their token, so they may know whose it is.
    fn expired(name: &str, expires: &Expiry) -> Problem {
        let detail = format!("the token of {name:?} expired ({}); ask for another one", expires.as_str());
        Problem::new(StatusCode::UNAUTHORIZED, "token-expired", detail)
    }

    /// The tokens that are written down and no longer taken, by their names.
    pub fn expired_tokens(&self) -> Vec<&str> {
        let over = |who: &&Who| who.token.expires.as_ref().is_some_and(Expiry::is_over);
        self.tokens.values().filter(over).map(Who::name).collect()
    }

    /// What is said to whoever brings none.
    pub(crate) fn token_wanted() -> Problem {
        let detail = "send a token: Authorization: Bearer …";
        Problem::new(StatusCode::UNAUTHORIZED, "no-token", detail)
    }
}

/// Without tokens only this machine is served; a page in its browser that has been led here under another name is not
/// this machine's user.
fn local(headers: &HeaderMap) -> Result<&'static str, Problem> {
    let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name).trim_matches(['[', ']']);
    let is_local = name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    if is_local || host.is_empty() {
        return Ok("local");
    }
    let detail = format!("without tokens only localhost is served, not {name:?}; add an [[auth.token]]");
    Err(Problem::new(StatusCode::FORBIDDEN, "not-local", detail))
}

/// A token as it is kept.
pub fn hash(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTSIDE: &str = "0.0.0.0:8080";
    const INSIDE: &str = "127.0.0.1:8080";

    fn token(name: &str, secret: &str, roles: &[Role]) -> Token {
        Token::new(name, secret, roles)
    }

    fn allow(access: &Access, headers: &HeaderMap, role: Role) -> Result<String, Problem> {
        let who = access.who(headers)?;
        who.may_one_of(&[role]).map(|()| who.name().to_owned())
    }

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn a_token_opens_what_its_roles_say_and_nothing_else() {
        let access =
            Access::new(vec![token("ops", "secret", &[Role::Read])], OUTSIDE.parse().unwrap()).unwrap();
        let ask = |value: &str, role| {
            allow(&access, &headers("authorization", value), role).map_err(|p| p.status())
        };
        assert_eq!(ask("Bearer secret", Role::Read), Ok("ops".to_owned()));
        assert_eq!(ask("bearer secret", Role::Read), Ok("ops".to_owned()));
        assert_eq!(ask("Bearer secret", Role::Call), Err(StatusCode::FORBIDDEN));
        for wrong in ["Bearer secre", "Bearer ", "Basic secret", "secret", "Bearer secret2"] {
            assert_eq!(ask(wrong, Role::Read), Err(StatusCode::UNAUTHORIZED), "{wrong}");
        }
        assert!(allow(&access, &HeaderMap::new(), Role::Read).is_err());
    }

    #[test]
    fn without_tokens_only_this_machine_is_served() {
        let open = Access::new(vec![], OUTSIDE.parse().unwrap()).unwrap_err();
        assert_eq!(open, AccessError::Open { listen: OUTSIDE.to_owned() });
        let access = Access::new(vec![], INSIDE.parse().unwrap()).unwrap();
        for host in ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "127.0.0.1", "localhost"] {
            assert!(allow(&access, &headers("host", host), Role::Call).is_ok(), "{host}");
        }
        for host in ["evil.example", "evil.example:8080", "127.0.0.1.evil.example"] {
            assert!(allow(&access, &headers("host", host), Role::Read).is_err(), "{host}");
        }
    }

    #[test]
    fn broken_and_doubled_tokens_are_refused() {
        let listen = INSIDE.parse().unwrap();
        let broken = Token { name: "a".to_owned(), sha256: "secret".to_owned(), ..token("a", "x", &[]) };
        assert_eq!(
            Access::new(vec![broken], listen).unwrap_err(),
            AccessError::BadHash { name: "a".to_owned() }
        );
        let twice = vec![token("a", "x", &[]), token("b", "x", &[])];
        assert!(matches!(Access::new(twice, listen), Err(AccessError::Twice(..))));
    }

    #[test]
    fn an_expired_token_opens_nothing_and_never_makes_a_server_open() {
        let until = |day: &str| Some(Expiry::try_from(day.to_owned()).unwrap());
        let tokens = vec![
            Token { expires: until("2001-01-31"), ..token("old", "a", &[Role::Read]) },
            Token { expires: until("2001-01-31T18:00:00Z"), ..token("older", "b", &[Role::Read]) },
            Token { expires: until("9999-12-31"), ..token("new", "c", &[Role::Read]) },
        ];
        let access = Access::new(tokens.clone(), OUTSIDE.parse().unwrap()).unwrap();
        let ask = |secret: &str| allow(&access, &headers("authorization", secret), Role::Read);
        for secret in ["Bearer a", "Bearer b"] {
            assert_eq!(ask(secret).unwrap_err().status(), StatusCode::UNAUTHORIZED, "{secret}");
        }
        assert_eq!(ask("Bearer c"), Ok("new".to_owned()));
        let mut expired = access.expired_tokens();
        expired.sort_unstable();
        assert_eq!(expired, ["old", "older"]);
        let all_over = Access::new(tokens[..2].to_vec(), INSIDE.parse().unwrap()).unwrap();
        assert!(!all_over.is_open());
        assert!(allow(&all_over, &headers("host", "localhost"), Role::Read).is_err());
    }

    #[test]
    fn a_token_for_a_page_names_its_agents_and_reaches_no_other() {
        let listen = INSIDE.parse().unwrap();
        let page = |roles: &[Role], agents: &[&str]| {
            let agents = agents.iter().map(|&agent| agent.to_owned()).collect();
            Access::new(vec![Token { agents, ..token("shop", "x", roles) }], listen)
        };
        for (roles, agents) in [
            (vec![Role::Page], vec![]),
            (vec![Role::Read], vec!["clinic"]),
            (vec![Role::Page, Role::Read], vec!["clinic"]),
            (vec![Role::Page, Role::Call], vec!["clinic"]),
            (vec![], vec!["clinic"]),
        ] {
            let error = page(&roles, &agents).unwrap_err();
            assert!(matches!(error, AccessError::Page { .. }), "{roles:?} {agents:?}: {error}");
        }
        let access = page(&[Role::Page], &["clinic"]).unwrap();
        let who = access.who(&headers("authorization", "Bearer x")).unwrap();
        assert!(who.is_page() && who.may_call("clinic").is_ok());
        for other in ["", "*", "bank", "Clinic"] {
            assert_eq!(who.may_call(other).unwrap_err().status(), StatusCode::FORBIDDEN, "{other}");
        }
    }
}
