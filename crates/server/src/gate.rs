//! What stands before every route: whose token it is, whether it may, and whether that is not too much.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;

use crate::access::Who;
use crate::limits::{Counted, Held, Limiter, Wish};
use crate::routes::{Needs, Route};
use crate::{Access, Problem};

/// Looks at requests before their routes do.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    access: Arc<Access>,
    limiter: Arc<Limiter>,
}

/// A gate before one route.
#[derive(Clone, Debug)]
pub(crate) struct RouteGate {
    gate: Gate,
    route: Route,
}

impl Gate {
    pub(crate) fn new(access: Arc<Access>, limiter: Arc<Limiter>) -> Self {
        Self { access, limiter }
    }

    pub(crate) fn of(&self, route: Route) -> RouteGate {
        RouteGate { gate: self.clone(), route }
    }

    /// Where a request comes from. A proxy adds the address that it sees at the end, behind whatever was sent to it.
    fn address(&self, request: &Request) -> Option<IpAddr> {
        let told = || {
            let last = request.headers().get_all("x-forwarded-for").iter().next_back()?;
            last.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
        };
        let proxy = self.limiter.behind_proxy();
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        proxy.then(told).flatten().or(peer)
    }
}

impl RouteGate {
    /// Whose the request is, and the place that it holds for as long as its answer is open.
    fn look(&self, request: &Request) -> Result<(Option<Who>, Option<Held>), Problem> {
        let Self { gate: Gate { access, limiter }, route } = self;
        let mut counted: Vec<Counted> = Vec::new();
        if let Some(address) = self.gate.address(request).and_then(Counted::address) {
            limiter.take(&address, Wish::Request)?;
            counted.push(address);
        }
        let who = match route.needs {
            Needs::Nothing | Needs::Proof => None,
            Needs::Token => Some(access.who(request.headers())?),
            Needs::OneOf(roles) => {
                let who = access.who(request.headers())?;
                who.may_one_of(roles)?;
                Some(who)
            }
        };
        if let Some(who) = &who {
            let token = Counted::Token(who.name().into());
            limiter.take(&token, Wish::Request)?;
            counted.push(token);
        }
        if route.starts {
            counted.iter().try_for_each(|one| limiter.take(one, Wish::Start))?;
        }
        let held = route.streams.then(|| limiter.hold(&counted)).transpose()?;
        Ok((who, held))
    }
}

/// Lets a request through to its route, which then knows whose it is.
pub(crate) async fn pass(State(gate): State<RouteGate>, mut request: Request, next: Next) -> Response {
    let (who, held) = match gate.look(&request) {
        Ok(looked) => looked,
        Err(problem) => return problem.into_response(),
    };
    if let Some(who) = who {
        request.extensions_mut().insert(who);
    }
    let response = next.run(request).await;
    match held {
        Some(held) => while_open(response, held),
        None => response,
    }
}

/// Holds a place until the answer is over, or whoever reads it is gone.
fn while_open(response: Response, held: Held) -> Response {
    response.map(|body| {
        Body::from_stream(body.into_data_stream().map(move |piece| {
            let _until_then = &held;
            piece
        }))
    })
}

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // Only a route that needs no token has nobody here, and none of those asks.
        parts.extensions.get::<Self>().cloned().ok_or_else(Access::token_wanted)
    }
}
