//! A call's event log as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use sayback_runtime::calls::{Follow, News};
use tokio::sync::broadcast::error::RecvError;

use crate::{Api, Problem};

/// A line that says nothing is sent this often, so that a connection that nothing happens on is not taken for lost.
const ALIVE: Duration = Duration::from_secs(15);

/// All events so far and those to come; the stream ends with the call. A client that comes back says with
/// `Last-Event-ID` which it had last.
pub(crate) async fn follow(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    stream_of(&api, &id, &headers)
}

/// The same for whoever may see it for another reason.
pub(crate) fn stream_of(
    api: &Api,
    id: &str,
    headers: &HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, Problem> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let from = last.map_or(0, |last: u64| last.saturating_add(1));
    let follow = api.board.calls().follow(id, from)?;
    Ok(Sse::new(stream(follow)).keep_alive(KeepAlive::new().interval(ALIVE)))
}

fn stream(follow: Follow) -> impl Stream<Item = Result<Event, Infallible>> {
    let state = (VecDeque::from(follow.lines), follow.next);
    futures::stream::unfold(state, |(mut lines, mut next)| async move {
        if let Some(news) = lines.pop_front() {
            return Some((Ok(event(&news)), (lines, next)));
        }
        let sent = match next.as_mut()?.recv().await {
            Ok(news) => event(&news),
            // Said, so that nobody takes the log for whole.
            Err(RecvError::Lagged(missed)) => Event::default().event("missed").data(missed.to_string()),
            Err(RecvError::Closed) => return None,
        };
        Some((Ok(sent), (lines, next)))
    })
}

fn event(news: &News) -> Event {
    let fields = news.fields();
    let name = fields["event"].as_str().unwrap_or("event");
    Event::default().id(news.number.to_string()).event(name).data(&*news.line)
}
