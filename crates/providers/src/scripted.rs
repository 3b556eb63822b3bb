//! A language model that plays given steps: for scenarios, demos and tests.
//!
//! It never reads what it is told. That is the point: a scenario says what the model does, and tests what comes of
//! it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sayback_runtime::llm::{Llm, LlmCall, LlmError, LlmEvent, LlmRequest, LlmStream};

/// One step of the model, as the scenario gives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptedStep {
    /// What it says; delivered word by word, as a model does.
    pub say: String,
    /// What it calls, after what it says.
    pub calls: Vec<LlmCall>,
    /// How long it thinks before the first piece.
    pub delay: Option<Duration>,
    /// How it fails, after what it says and instead of what it calls.
    pub fail: Option<LlmError>,
}

impl ScriptedStep {
    /// A step that only says something.
    pub fn say(text: impl Into<String>) -> Self {
        Self { say: text.into(), ..Self::default() }
    }

    /// A step that only calls something.
    pub fn call(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let call = LlmCall { id: id.into(), name: name.into(), arguments: arguments.into() };
        Self { calls: vec![call], ..Self::default() }
    }

    fn events(self) -> Vec<Result<LlmEvent, LlmError>> {
        let words = self.say.split_inclusive(' ').map(|word| LlmEvent::Text(word.to_owned()));
        let mut events: Vec<_> = words.map(Ok).collect();
        match self.fail {
            Some(error) => events.push(Err(error)),
            None => {
                events.extend(self.calls.into_iter().map(LlmEvent::Call).map(Ok));
                events.push(Ok(LlmEvent::Done));
            }
        }
        events
    }
}

/// A language model that plays its script.
///
/// Steps and verdicts are two queues: a request with [`LlmRequest::one_of`] takes the next verdict, every other
/// request the next step. A script that has run out is an error, not silence: the scenario asked for more than it
/// says.
#[derive(Debug)]
pub struct Scripted {
    name: String,
    script: Mutex<Script>,
}

#[derive(Debug)]
struct Script {
    steps: VecDeque<ScriptedStep>,
    verdicts: VecDeque<String>,
    requests: Vec<LlmRequest>,
}

impl Scripted {
    /// A model that plays `steps`, and answers checks with `verdicts`, each in order.
    pub fn new(
        steps: impl IntoIterator<Item = ScriptedStep>,
        verdicts: impl IntoIterator<Item = String>,
    ) -> Self {
        let script = Script {
            steps: steps.into_iter().collect(),
            verdicts: verdicts.into_iter().collect(),
            requests: Vec::new(),
        };
        Self { name: "scripted".to_owned(), script: Mutex::new(script) }
    }

    /// What it was asked so far, in order: for tests.
    pub fn requests(&self) -> Vec<LlmRequest> {
        self.lock().requests.clone()
    }

    /// How many steps and verdicts are left.
    pub fn left(&self) -> (usize, usize) {
        let script = self.lock();
        (script.steps.len(), script.verdicts.len())
    }

    fn next_step(&self, request: LlmRequest) -> Result<ScriptedStep, LlmError> {
        let mut script = self.lock();
        let is_check = !request.one_of.is_empty();
        script.requests.push(request);
        let step = if is_check {
            script.verdicts.pop_front().map(ScriptedStep::say)
        } else {
            script.steps.pop_front()
        };
        let what = if is_check { "verdict" } else { "step" };
        step.ok_or_else(|| {
            let asked =
                script.requests.iter().filter(|request| request.one_of.is_empty() != is_check).count();
            LlmError::BrokeOff(format!("the script has no {what} number {asked}; add one to the scenario"))
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Script> {
        // A panic elsewhere leaves the queues whole.
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl Llm for Scripted {
    fn name(&self) -> String {
        self.name.clone()
    }

    async fn stream(&self, request: LlmRequest) -> Result<LlmStream, LlmError> {
        let limit = request.first_token;
        let step = self.next_step(request)?;
        let delay = step.delay;
        let events = futures::stream::iter(step.events());
        Ok(match (delay, limit) {
            (Some(delay), Some(limit)) if delay > limit => Box::pin(after(limit, silent(limit))),
            (Some(delay), _) => Box::pin(after(delay, events)),
            (None, _) => Box::pin(events),
        })
    }
}

type Given = Result<LlmEvent, LlmError>;

/// The stream, once `delay` is over.
fn after(
    delay: Duration,
    events: impl futures::Stream<Item = Given> + Send + 'static,
) -> impl futures::Stream<Item = Given> + Send {
    let waited = async move {
        // The only outcome of waiting for nothing is the end of the time.
        let _ = tokio::time::timeout(delay, std::future::pending::<()>()).await;
        events
    };
    futures::StreamExt::flatten(futures::stream::once(waited))
}

/// What a model that thought for too long gives.
fn silent(limit: Duration) -> impl futures::Stream<Item = Given> + Send {
    futures::stream::iter([Err(LlmError::TimedOut(limit))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;

    async fn played(model: &Scripted, request: LlmRequest) -> Vec<Given> {
        match model.stream(request).await {
            Ok(stream) => stream.collect().await,
            Err(error) => vec![Err(error)],
        }
    }

    fn check() -> LlmRequest {
        LlmRequest { one_of: vec!["yes".into(), "no".into(), "unclear".into()], ..LlmRequest::default() }
    }

    fn text(word: &str) -> Given {
        Ok(LlmEvent::Text(word.to_owned()))
    }

    #[tokio::test]
    async fn steps_are_played_in_order_and_verdicts_apart_from_them() {
        let steps = [ScriptedStep::say("One moment."), ScriptedStep::call("c1", "book", "{}")];
        let model = Scripted::new(steps, ["unclear".to_owned(), "yes".to_owned()]);
        let spoken = played(&model, LlmRequest::default()).await;
        assert_eq!(spoken, [text("One "), text("moment."), Ok(LlmEvent::Done)]);
        assert_eq!(played(&model, check()).await, [text("unclear"), Ok(LlmEvent::Done)]);
        let call = LlmCall { id: "c1".into(), name: "book".into(), arguments: "{}".into() };
        assert_eq!(
            played(&model, LlmRequest::default()).await,
            [Ok(LlmEvent::Call(call)), Ok(LlmEvent::Done)]
        );
        assert_eq!(played(&model, check()).await, [text("yes"), Ok(LlmEvent::Done)]);
        assert_eq!(model.left(), (0, 0));
        assert_eq!(model.requests().len(), 4);
    }

    #[tokio::test]
    async fn a_script_that_ran_out_says_which_step_is_missing() {
        let model = Scripted::new([ScriptedStep::say("Hello.")], []);
        played(&model, LlmRequest::default()).await;
        let error = played(&model, LlmRequest::default()).await.remove(0).unwrap_err();
        assert!(error.to_string().contains("no step number 2"), "{error}");
        let error = played(&model, check()).await.remove(0).unwrap_err();
        assert!(error.to_string().contains("no verdict number 1"), "{error}");
    }

    #[tokio::test]
    async fn a_failure_comes_after_the_words_and_ends_the_step() {
        let fail = LlmError::BrokeOff("scripted".into());
        let model =
            Scripted::new([ScriptedStep { fail: Some(fail.clone()), ..ScriptedStep::say("One") }], []);
        let played = played(&model, LlmRequest::default()).await;
        assert_eq!(played, [text("One"), Err(fail)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_is_waited_for_up_to_the_requests_deadline() {
        let slow = ScriptedStep { delay: Some(Duration::from_secs(20)), ..ScriptedStep::say("Late.") };
        let model = Scripted::new([slow.clone(), slow], []);
        assert_eq!(played(&model, LlmRequest::default()).await, [text("Late."), Ok(LlmEvent::Done)]);
        let limit = Duration::from_secs(2);
        let hurried = LlmRequest { first_token: Some(limit), ..LlmRequest::default() };
        assert_eq!(played(&model, hurried).await, [Err(LlmError::TimedOut(limit))]);
    }
}
