//! A call's way to the approval queue: it asks there, waits, and tells the call what came of it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sayback_core::{Approval as Answer, ApprovalId, ApprovalOutcome, ApprovalWish, Event, SettledApproval};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::approvals::{
    Approval, ApprovalError, ApprovalQueue, ApprovalRequest, ApprovalState, Asker, Decision,
};
use crate::clock::unix_millis;
use crate::driver::Approver;

/// Asks for one call. An approval's id in the queue is the call's and its own, `CALL.a_01`.
#[derive(Debug)]
pub struct QueueApprover {
    queue: ApprovalQueue,
    asker: Asker,
    call: String,
    agent: String,
    asked: BTreeMap<ApprovalId, Asked>,
    withdrawing: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Asked {
    /// Gone without a word: the call broke off, or a session was put aside.
    withdraw: oneshot::Sender<String>,
    task: JoinHandle<()>,
}

impl QueueApprover {
    /// For a call that goes on.
    pub fn for_call(queue: ApprovalQueue, call: &str, agent: &str) -> Self {
        Self::new(queue, Asker::Call(call.to_owned()), call, agent)
    }

    /// For whoever asks; `call` is the beginning of its approvals' ids.
    pub fn new(queue: ApprovalQueue, asker: Asker, call: &str, agent: &str) -> Self {
        let (asked, withdrawing) = (BTreeMap::new(), Vec::new());
        Self { queue, asker, call: call.to_owned(), agent: agent.to_owned(), asked, withdrawing }
    }
}

/// A wish as it is written into the queue; `call` is the beginning of its id.
pub fn written((call, agent): (&str, &str), asker: Asker, wish: ApprovalWish) -> ApprovalRequest {
    let json = |text: &str| serde_json::from_str(text).unwrap_or_default();
    ApprovalRequest {
        id: queue_id(call, wish.approval),
        asker,
        agent: agent.to_owned(),
        tool: wish.tool.name,
        input: json(&wish.input.json),
        hint: wish.hint,
        payload: wish.payload.as_deref().map(json),
        asked_ms: unix_millis(),
        expires_ms: None,
    }
}

/// An approval's id in the queue.
pub fn queue_id(call: &str, approval: ApprovalId) -> String {
    format!("{call}.{approval}")
}

/// What became of an approval, for the call; `None` while it is open, or if it was the call that did not want it any more.
pub fn outcome(approval: &Approval) -> Option<ApprovalOutcome> {
    match &approval.state {
        ApprovalState::Open => None,
        ApprovalState::Answered { decision, .. } => {
            let Decision { confirmed, payload, reason, by } = decision.clone();
            let by = by.unwrap_or_else(|| "an operator".to_owned());
            let payload = payload.map(|payload| payload.to_string());
            Some(ApprovalOutcome::Answered { answer: Answer { confirmed, by, payload }, reason })
        }
        ApprovalState::Cancelled { reason, .. } => Some(ApprovalOutcome::Failed { error: reason.clone() }),
        ApprovalState::Expired { .. } => Some(ApprovalOutcome::Expired),
    }
}

/// Whether this is what was asked for.
pub fn is_same(asked: &ApprovalRequest, tool: &str, input: &Value) -> bool {
    asked.tool == tool && asked.input == *input
}

/// Asks, waits, and writes it down if the answer is not wanted any more: in one task, so that nothing overtakes.
pub async fn ask(
    queue: ApprovalQueue,
    request: ApprovalRequest,
    withdrawn: oneshot::Receiver<String>,
) -> Option<ApprovalOutcome> {
    let failed = |error: &ApprovalError| {
        tracing::error!("the approval {} could not be asked for: {error}", request.id);
        Some(ApprovalOutcome::Failed { error: error.to_string() })
    };
    match queue.request(&request).await {
        Ok(()) => {}
        // One of a conversation that goes on was asked for before. The process may have ended before the conversation
        // knew of it: then this is another one, and what was answered to that one is no answer to it.
        Err(exists @ ApprovalError::Exists { .. }) => match queue.get(&request.id).await {
            Ok(found) if is_same(&found.request, &request.tool, &request.input) => {}
            Ok(_) => return failed(&exists),
            Err(error) => return failed(&error),
        },
        Err(error) => return failed(&error),
    }
    let reason = tokio::select! {
        settled = queue.wait(&request.id, None) => {
            return settled.map_or_else(|error| failed(&error), |settled| outcome(&settled));
        }
        reason = withdrawn => reason,
    };
    let reason = match (reason, &request.asker) {
        (Ok(reason), _) => reason,
        (Err(_), Asker::Call(_)) => "the call broke off".to_owned(),
        // A text session was put aside, and goes on.
        (Err(_), Asker::Session { .. }) => return None,
    };
    if let Err(error) = queue.cancel(&request.id, &reason).await {
        tracing::warn!("the approval {} could not be withdrawn: {error}", request.id);
    }
    None
}

#[async_trait]
impl Approver for QueueApprover {
    fn request(&mut self, wish: ApprovalWish, call: mpsc::Sender<Event>) {
        let approval = wish.approval;
        let (withdraw, withdrawn) = oneshot::channel();
        let asked =
            ask(self.queue.clone(), written((&self.call, &self.agent), self.asker.clone(), wish), withdrawn);
        let task = tokio::spawn(async move {
            if let Some(outcome) = asked.await {
                // A call that is over needs no answer.
                let _ = call.send(Event::Approvals(vec![SettledApproval { approval, outcome }])).await;
            }
        });
        self.asked.retain(|_, asked| !asked.task.is_finished());
        self.asked.insert(approval, Asked { withdraw, task });
    }

    fn withdraw(&mut self, approval: ApprovalId, reason: String) {
        if let Some(Asked { withdraw, task }) = self.asked.remove(&approval) {
            // One that was answered at this moment is not there to hear it.
            let _ = withdraw.send(reason);
            self.withdrawing.retain(|withdrawing| !withdrawing.is_finished());
            self.withdrawing.push(task);
        }
    }

    async fn close(&mut self) {
        for withdrawing in std::mem::take(&mut self.withdrawing) {
            let _ = withdrawing.await;
        }
    }
}
