//! What stands before every route: whose token it is, and whether it may.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::Who;
use crate::routes::{Needs, Route};
use crate::{Access, Problem};

/// Looks at requests before their routes do.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    access: Arc<Access>,
}

/// A gate before one route.
#[derive(Clone, Debug)]
pub(crate) struct RouteGate {
    gate: Gate,
    route: Route,
}

impl Gate {
    pub(crate) fn new(access: Arc<Access>) -> Self {
        Self { access }
    }

    pub(crate) fn of(&self, route: Route) -> RouteGate {
        RouteGate { gate: self.clone(), route }
    }
}

/// Lets a request through to its route, which then knows whose it is.
pub(crate) async fn pass(State(at): State<RouteGate>, mut request: Request, next: Next) -> Response {
    let who = match at.route.needs {
        Needs::Nothing | Needs::Proof => None,
        Needs::Token => Some(at.gate.access.who(request.headers())),
        Needs::OneOf(roles) => {
            Some(at.gate.access.who(request.headers()).and_then(|who| who.may_one_of(roles).map(|()| who)))
        }
    };
    match who {
        Some(Err(problem)) => return problem.into_response(),
        Some(Ok(who)) => {
            request.extensions_mut().insert(who);
        }
        None => {}
    }
    next.run(request).await
}

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // Only a route that needs no token has nobody here, and none of those asks.
        parts.extensions.get::<Self>().cloned().ok_or_else(Access::token_wanted)
    }
}
