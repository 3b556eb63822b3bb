//! Approvals by id in the core: in text, where nothing but the answers decides.

#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

use sayback_core::*;
use serde_json::Value;

struct Chat {
    session: Session,
    now: Time,
    out: Vec<Value>,
}

fn tool(name: &str, definition: &str) -> ToolRef {
    ToolRef { skill: "desk".to_owned(), name: name.to_owned(), definition: definition.to_owned() }
}

fn input() -> Frozen {
    Frozen { json: "{\"amount\":5000}".to_owned(), hash: "sha256:5000".to_owned() }
}

fn plain() -> Prepared {
    Prepared::Plain { tool: tool("pay", "sha256:1"), input: input() }
}

fn asks() -> Prepared {
    Prepared::Ask {
        tool: tool("pay", "sha256:1"),
        input: input(),
        question: "Shall I pay 5000?".to_owned(),
        language: "en".to_owned(),
        terms: AskTerms::default(),
    }
}

fn approve(then: Prepared) -> Prepared {
    Prepared::Approve { hint: "A payment".to_owned(), then: Box::new(then) }
}

fn answered(id: u32, confirmed: bool) -> SettledApproval {
    let answer = Approval { confirmed, by: "Ann".to_owned(), payload: None };
    SettledApproval { approval: ApprovalId(id), outcome: ApprovalOutcome::Answered { answer, reason: None } }
}

impl Chat {
    fn new() -> Self {
        let mut chat = Self { session: Session::new(Policy::default()), now: Time::ZERO, out: Vec::new() };
        chat.put(Event::Tools(vec![tool("pay", "sha256:1")]));
        chat.start();
        chat
    }

    fn start(&mut self) {
        self.put(Event::CallStarted(CallStart {
            transport: "chat".to_owned(),
            call: "chat-1".to_owned(),
            language: "en".to_owned(),
            greeting: None,
            chat: true,
        }));
    }

    fn put(&mut self, event: Event) {
        self.now = self.now + std::time::Duration::from_secs(1);
        self.session.handle(self.now, event);
        while let Some(output) = self.session.poll_output() {
            self.out.push(serde_json::to_value(output.command).unwrap());
        }
    }

    fn say(&mut self, text: &str) {
        let (text, received) = (text.to_owned(), self.now);
        self.put(Event::Message { text, received });
    }

    fn generation(&self) -> GenerationId {
        let last = self.out.iter().rev().find(|command| command["type"] == "generate").unwrap();
        serde_json::from_value(last["data"]["generation"].clone()).unwrap()
    }

    /// A step of the model with these calls, each prepared like this.
    fn step(&mut self, calls: &[(&str, Prepared)]) {
        let generation = self.generation();
        for (id, _) in calls {
            let call =
                ToolCall { id: CallId((*id).to_owned()), name: "pay".to_owned(), input: "{}".to_owned() };
            self.put(Event::Model(ModelEvent::Call { generation, call }));
        }
        self.put(Event::Model(ModelEvent::Finished { generation }));
        for (id, outcome) in calls {
            self.put(Event::Prepared { call: CallId((*id).to_owned()), outcome: outcome.clone() });
        }
    }

    fn ran(&mut self, call: &str) {
        let outcome = ToolOutcome::Done { message: "Paid.".to_owned() };
        self.put(Event::ToolFinished { call: CallId(call.to_owned()), outcome });
    }

    fn count(&self, what: &str) -> usize {
        self.out.iter().filter(|command| command["type"] == what).count()
    }

    fn reported(&self, event: &str) -> Vec<&Value> {
        self.out
            .iter()
            .filter(|c| c["type"] == "report" && c["data"]["event"] == event)
            .map(|c| &c["data"])
            .collect()
    }

    fn result(&self, id: &str) -> &str {
        let found = self.session.items().iter().rev().find_map(|item| match item {
            Item::Result { call, text, .. } if call.0 == id => Some(text.as_str()),
            Item::Result { .. }
            | Item::Caller { .. }
            | Item::Agent { .. }
            | Item::Call { .. }
            | Item::Told { .. } => None,
        });
        found.unwrap_or_default()
    }
}

#[test]
fn adk_05_a_gated_call_is_asked_about_and_the_model_is_not() {
    let mut chat = Chat::new();
    chat.say("pay");
    chat.step(&[("c1", approve(plain()))]);
    assert_eq!(
        (chat.count("request_approval"), chat.count("run_confirmed"), chat.count("run_plain")),
        (1, 0, 0)
    );
    assert_eq!(chat.count("generate"), 1, "ADK-06: the model is not called again");
    assert!(chat.session.is_idle() && chat.result("c1").starts_with("Nothing has happened yet."));
    assert!(chat.session.waiting_line().unwrap().starts_with("Waiting for an operator to approve: pay."));
    chat.put(Event::Approvals(vec![answered(1, true)]));
    assert_eq!(chat.count("run_confirmed"), 1);
    chat.ran("c1");
    assert_eq!((chat.result("c1"), chat.count("generate")), ("Paid.", 2));
    assert_eq!(chat.session.waiting_line(), None);
}

#[test]
fn adk_16_adk_17_a_second_answer_runs_nothing() {
    let mut chat = Chat::new();
    chat.say("pay");
    chat.step(&[("c1", approve(plain()))]);
    chat.put(Event::Approvals(vec![answered(1, true), answered(1, true)]));
    chat.put(Event::Approvals(vec![answered(1, true)]));
    chat.ran("c1");
    chat.put(Event::Approvals(vec![answered(1, true), answered(7, true)]));
    assert_eq!((chat.count("run_confirmed"), chat.reported("confirmation.answered").len()), (1, 1));
    let mut chat = Chat::new();
    chat.say("pay");
    chat.step(&[("c1", approve(plain()))]);
    chat.put(Event::Approvals(vec![answered(1, false)]));
    chat.put(Event::Approvals(vec![answered(1, true)]));
    assert_eq!((chat.count("run_confirmed"), chat.count("generate")), (0, 2), "rejected stays rejected");
    let mut chat = Chat::new();
    chat.say("pay");
    chat.step(&[("c1", approve(plain()))]);
    chat.put(Event::Approvals(vec![answered(1, true)]));
    let outcome = ToolOutcome::Failed { message: "The bank is closed.".to_owned() };
    chat.put(Event::ToolFinished { call: CallId("c1".to_owned()), outcome });
    chat.put(Event::Approvals(vec![answered(1, true)]));
    assert_eq!(chat.count("run_confirmed"), 1, "a run that failed is not made again by the same answer");
}

#[test]
fn adk_18_each_request_settles_on_its_own_and_the_model_waits_for_both_runs() {
    let mut chat = Chat::new();
    chat.say("pay twice");
    chat.step(&[("c1", approve(plain())), ("c2", approve(plain()))]);
    assert_eq!(chat.count("request_approval"), 2, "the same input is still two requests");
    chat.put(Event::Approvals(vec![answered(2, true), answered(1, true)]));
    assert_eq!(chat.count("run_confirmed"), 2);
    chat.ran("c2");
    assert_eq!(chat.count("generate"), 1);
    chat.ran("c1");
    assert_eq!(chat.count("generate"), 2);
    let holds: Vec<&Value> =
        chat.out.iter().filter(|c| c["type"] == "run_confirmed").map(|c| &c["data"]["hold"]).collect();
    assert_ne!(holds[0], holds[1], "each run has a hold of its own, so a key of its own");
}

#[test]
fn adk_19_a_new_call_leaves_the_older_request_open() {
    let mut chat = Chat::new();
    chat.say("pay");
    chat.step(&[("c1", approve(plain()))]);
    chat.say("pay more");
    chat.step(&[("c2", approve(plain()))]);
    chat.put(Event::Approvals(vec![answered(1, true)]));
    chat.ran("c1");
    chat.put(Event::Approvals(vec![answered(2, true)]));
    assert_eq!(chat.count("run_confirmed"), 2);
}

#[test]
fn adk_20_a_tool_that_is_gone_or_another_one_does_not_run_on_the_old_approval() {
    for tools in [vec![], vec![tool("pay", "sha256:2")]] {
        let mut chat = Chat::new();
        chat.say("pay");
        chat.step(&[("c1", approve(plain()))]);
        chat.put(Event::Tools(tools));
        chat.put(Event::Approvals(vec![answered(1, true)]));
        assert_eq!(chat.count("run_confirmed"), 0);
        assert_eq!(chat.reported("model.told").len(), 1);
    }
}

#[test]
fn adk_24_the_callers_question_comes_after_the_approval_and_neither_stands_in_for_the_other() {
    let mut chat = Chat::new();
    chat.say("pay");
    chat.step(&[("c1", approve(asks()))]);
    assert!(chat.session.open_question().is_none(), "nothing is held while the operator is asked");
    chat.say("yes");
    assert_eq!((chat.count("check"), chat.count("run_confirmed")), (0, 0));
    chat.step(&[]);
    chat.put(Event::Approvals(vec![answered(1, true)]));
    let (_, question, heard) = chat.session.open_question().unwrap();
    assert!(question == "Shall I pay 5000?" && heard);
    assert_eq!(chat.count("run_confirmed"), 0, "the approval alone runs nothing");
    chat.say("yes");
    let check = chat.out.iter().rev().find(|c| c["type"] == "check").unwrap()["data"]["check"].clone();
    let answer = CheckAnswer::Verdict { verdict: Verdict::Yes };
    chat.put(Event::Checked { check: serde_json::from_value(check).unwrap(), answer });
    chat.put(Event::Tick);
    let run = &chat.out.iter().find(|c| c["type"] == "run_confirmed").unwrap()["data"];
    assert_eq!((&run["confirmed_by"], &run["approval"]["by"]), (&Value::from("yes"), &Value::from("Ann")));
}

#[test]
fn adk_21_a_tool_that_asks_by_itself_is_run_again_with_the_answer_be_it_no() {
    for confirmed in [true, false] {
        let mut chat = Chat::new();
        chat.say("days off");
        chat.step(&[("c1", plain())]);
        assert_eq!(chat.count("run_plain"), 1);
        let outcome = ToolOutcome::Asks {
            message: "Pending.".to_owned(),
            hint: "mgr".to_owned(),
            payload: Some("{\"days\":0}".to_owned()),
        };
        chat.put(Event::ToolFinished { call: CallId("c1".to_owned()), outcome });
        assert_eq!(
            (chat.result("c1"), chat.count("generate")),
            ("Pending.", 2),
            "the model goes on meanwhile"
        );
        chat.step(&[]);
        chat.put(Event::Approvals(vec![answered(1, confirmed)]));
        let run = &chat.out.iter().find(|c| c["type"] == "run_confirmed").unwrap()["data"];
        assert_eq!(run["approval"]["confirmed"], Value::from(confirmed));
    }
}

#[test]
fn adk_23_a_conversation_that_is_opened_again_asks_under_the_same_id() {
    let mut chat = Chat::new();
    chat.say("pay");
    chat.step(&[("c1", approve(plain()))]);
    chat.put(Event::HungUp);
    assert_eq!(chat.count("withdraw_approval"), 0, "a text conversation is only put aside");
    let stored: Reopened =
        serde_json::from_value(serde_json::to_value(chat.session.to_store()).unwrap()).unwrap();
    let mut again = Chat { session: Session::new(Policy::default()), now: Time::ZERO, out: Vec::new() };
    again.put(Event::Reopened(stored));
    again.start();
    let request = &again.out.iter().find(|c| c["type"] == "request_approval").unwrap()["data"];
    assert_eq!((&request["approval"], &request["call"]), (&Value::from("a_01"), &Value::from("c1")));
    again.put(Event::Approvals(vec![answered(1, true)]));
    assert_eq!(again.count("run_confirmed"), 1);
    again.ran("c1");
    assert_eq!(again.result("c1"), "Paid.");
    assert!(again.session.to_store().approvals.is_empty());
}

#[test]
fn what_was_answered_before_a_conversation_was_opened_again_answers_nothing_asked_later() {
    let mut chat = Chat::new();
    chat.say("pay");
    chat.step(&[("c1", approve(plain()))]);
    chat.put(Event::Approvals(vec![answered(1, true)]));
    chat.ran("c1");
    chat.put(Event::HungUp);
    let counted = chat.session.to_store();
    // As it was stored before approvals were counted.
    let uncounted = Reopened { approval_ids: None, ..counted.clone() };
    for stored in [counted, uncounted] {
        let mut again = Chat { session: Session::new(Policy::default()), now: Time::ZERO, out: Vec::new() };
        again.put(Event::Reopened(stored));
        again.start();
        again.say("pay");
        again.step(&[("c2", approve(plain()))]);
        let asked = again.out.iter().find(|c| c["type"] == "request_approval").unwrap();
        assert_ne!(asked["data"]["approval"], "a_01");
        again.put(Event::Approvals(vec![answered(1, true)]));
        assert_eq!(again.count("run_confirmed"), 0);
    }
}

#[test]
fn a_rewind_takes_requests_with_it_whose_calls_are_gone() {
    let mut chat = Chat::new();
    chat.say("pay");
    chat.step(&[("c1", approve(plain()))]);
    chat.put(Event::Rewound(Rewind { items: 0 }));
    assert_eq!(chat.count("withdraw_approval"), 1);
    chat.put(Event::Approvals(vec![answered(1, true)]));
    assert_eq!(chat.count("run_confirmed"), 0);
}
