use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Mutex;

use serde_json::json;
use tracing_subscriber::layer::SubscriberExt;

use super::*;

const NOW: Moment = Moment(1_800_000_000_000);
const PAY: Args<'static> = Args::Json(r#"{"to":"bob","amount":5000}"#);

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn ledger() -> Ledger {
    Ledger::in_memory(LedgerOptions::default()).unwrap()
}

fn session() -> Context {
    Context::session("s1")
}

fn say(ledger: &Ledger, context: &Context, args: Args<'_>, at: Moment) -> Recorded {
    block_on(ledger.record(context, &Said::by_user("pay", args), at)).unwrap()
}

fn call(args: Args<'_>, context: Context) -> Call<'_> {
    Call::new("pay", args, context)
}

fn ask(ledger: &Ledger, call: &Call<'_>, now: Moment) -> Reason {
    block_on(ledger.check(Some(&Rule::default()), call, now)).unwrap().reason
}

fn later(millis: u64) -> Moment {
    NOW.after(Duration::from_millis(millis))
}

/// What a subscriber was told of spans: name and fields, one line each.
#[derive(Clone, Default)]
pub(super) struct Spans(pub(super) Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Spans {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        _id: &tracing::span::Id,
        _context: tracing_subscriber::layer::Context<'_, S>,
    ) {
        struct Line(String);
        impl tracing::field::Visit for Line {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
                self.0.push_str(&format!(" {}={value:?}", field.name()));
            }
        }
        let mut line = Line(attributes.metadata().name().to_owned());
        attributes.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
}

/// Spans that are made on this thread from here on.
pub(super) fn watched(spans: &Spans) -> tracing::subscriber::DefaultGuard {
    tracing::subscriber::set_default(tracing_subscriber::registry().with(spans.clone()))
}

fn spans_of(work: impl FnOnce()) -> Vec<String> {
    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    tracing::subscriber::with_default(subscriber, work);
    let lines = spans.0.lock().unwrap();
    lines.clone()
}

#[test]
fn led_01_a_confirmation_leaves_a_span_without_arguments_and_an_entry() {
    let ledger = ledger();
    let spans = spans_of(|| {
        let recorded = say(&ledger, &session(), PAY, NOW);
        assert_eq!(recorded, Recorded { recorded: true, reason: None });
        assert_eq!(serde_json::to_value(recorded).unwrap(), json!({ "recorded": true }));
    });
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    let hash = ledger.args_hash(PAY).unwrap();
    for part in [
        "human_in_loop approval",
        "kind=\"confirmation\"",
        "outcome=\"approved\"",
        "actor.role=\"user\"",
        "tool=\"pay\"",
        &hash,
    ] {
        assert!(span.contains(part), "{part} is not in {span}");
    }
    assert!(!span.contains("bob") && !span.contains("5000"), "{span}");
    assert_eq!(ask(&ledger, &call(PAY, session()), NOW), Reason::Confirmed);
}

#[test]
fn led_02_without_a_context_there_is_a_span_and_no_entry() {
    let ledger = ledger();
    for context in [Context::default(), Context::session(""), Context::trace("  ")] {
        let spans = spans_of(|| {
            let recorded = say(&ledger, &context, PAY, NOW);
            assert_eq!(recorded, Recorded { recorded: true, reason: Some(Unledgered::NoContext) });
        });
        assert_eq!(spans.len(), 1);
        assert_eq!(ask(&ledger, &call(PAY, context), NOW), Reason::NoContext);
    }
    assert_eq!(ask(&ledger, &call(PAY, session()), NOW), Reason::NoConfirmation);
}

#[test]
fn led_03_a_ledger_that_is_off_leaves_a_span_and_blocks_nothing() {
    let off = LedgerOptions { switch: Switch::Off, ..LedgerOptions::default() };
    let ledger = Ledger::in_memory(off).unwrap();
    let spans = spans_of(|| {
        let recorded = say(&ledger, &session(), PAY, NOW);
        assert_eq!(recorded, Recorded { recorded: true, reason: Some(Unledgered::LedgerOff) });
    });
    assert_eq!(spans.len(), 1);
    let checked = block_on(ledger.check(Some(&Rule::default()), &call(PAY, session()), NOW)).unwrap();
    assert_eq!((checked.allowed, checked.confirmed, checked.reason), (true, false, Reason::NoData));
    for (said, switch) in [
        (None, Switch::On),
        (Some(""), Switch::On),
        (Some("on"), Switch::On),
        (Some("off"), Switch::Off),
        (Some(" OFF "), Switch::Off),
    ] {
        assert_eq!(Switch::said(said), switch, "{said:?}");
    }
}

#[test]
fn led_04_arguments_that_cannot_be_hashed_tie_the_entry_to_the_tool_only() {
    let ledger = ledger();
    let recorded = say(&ledger, &session(), Args::Json(r#"{"a":1,"a":2}"#), NOW);
    assert_eq!(recorded, Recorded { recorded: true, reason: Some(Unledgered::UnhashableArgs) });
    assert_eq!(ask(&ledger, &call(PAY, session()), NOW), Reason::Confirmed, "any arguments of this tool");
    say(&ledger, &session(), Args::Json("not JSON"), NOW);
    let other = Call::new("refund", PAY, session());
    assert_eq!(ask(&ledger, &other, NOW), Reason::NoConfirmation, "and no other tool");
}

#[test]
fn led_05_what_is_no_tool_is_not_recorded_and_leaves_no_span() {
    let ledger = ledger();
    let spans = spans_of(|| {
        for tool in ["", "  ", "a\0b", "a\nb", &"x".repeat(201)] {
            let recorded = block_on(ledger.record(&session(), &Said::by_user(tool, PAY), NOW)).unwrap();
            assert_eq!(recorded, Recorded { recorded: false, reason: Some(Unledgered::InvalidInput) });
            assert!(block_on(ledger.check(None, &Call::new(tool, PAY, session()), NOW)).is_err());
        }
        let said = Said::by_user("pay", PAY);
        let recorded = block_on(ledger.record(&Context::session("a\0"), &said, NOW)).unwrap();
        assert_eq!(recorded.reason, Some(Unledgered::InvalidInput));
        let recorded = block_on(record(None, &session(), &said, NOW)).unwrap();
        assert_eq!(recorded, Recorded { recorded: false, reason: Some(Unledgered::NoClient) });
    });
    assert!(spans.is_empty(), "{spans:?}");
}

#[test]
fn led_07_one_entry_confirms_one_call_and_two_calls_need_two() {
    let ledger = ledger();
    let call = call(PAY, session());
    say(&ledger, &session(), PAY, NOW);
    assert_eq!(
        [ask(&ledger, &call, NOW), ask(&ledger, &call, NOW)],
        [Reason::Confirmed, Reason::NoConfirmation]
    );
    say(&ledger, &session(), PAY, NOW);
    say(&ledger, &session(), PAY, NOW);
    let three: Vec<Reason> = (0..3).map(|_| ask(&ledger, &call, NOW)).collect();
    assert_eq!(three, [Reason::Confirmed, Reason::Confirmed, Reason::NoConfirmation]);
}

#[test]
fn led_08_of_checks_at_the_same_time_as_many_succeed_as_there_are_entries() {
    let ledger = ledger();
    for entries in [1_usize, 3] {
        for round in 0..200 {
            let context = Context::session(format!("s{entries}-{round}"));
            for _ in 0..entries {
                say(&ledger, &context, PAY, NOW);
            }
            let confirmed = std::thread::scope(|scope| {
                let ask = || ask(&ledger, &call(PAY, context.clone()), NOW) == Reason::Confirmed;
                let checks: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
                checks
                    .into_iter()
                    .filter(|_| true)
                    .map(|check| usize::from(check.join().unwrap()))
                    .sum::<usize>()
            });
            assert_eq!(confirmed, entries, "no yes is used twice, and none is lost");
        }
    }
}

#[test]
fn led_09_what_was_reserved_and_not_used_can_be_used_again() {
    let (ledger, rule) = (ledger(), Rule::default());
    let call = call(PAY, session());
    let hold = Duration::from_secs(30);
    say(&ledger, &session(), PAY, NOW);
    let reserve = |at| block_on(ledger.reserve(Some(&rule), &call, at, hold)).unwrap();
    let (checked, reserved) = reserve(NOW);
    assert!(checked.confirmed);
    assert_eq!(ask(&ledger, &call, NOW), Reason::NoConfirmation, "it is held");
    assert!(block_on(ledger.settle(reserved.unwrap(), Settled::Released)).unwrap());
    let (_, lapsed) = reserve(NOW);
    let (checked, taken) = reserve(later(30_000));
    assert!(checked.confirmed, "whoever held it did not settle in time");
    assert!(!block_on(ledger.settle(lapsed.unwrap(), Settled::Used)).unwrap(), "and has it no more");
    assert!(block_on(ledger.settle(taken.unwrap(), Settled::Used)).unwrap());
    assert_eq!(ask(&ledger, &call, later(60_000)), Reason::NoConfirmation);
}

#[test]
fn led_10_led_11_an_entry_counts_for_the_rules_limit_and_an_hour_at_most() {
    let ledger = ledger();
    let call = call(PAY, session());
    say(&ledger, &session(), PAY, NOW);
    assert_eq!(ask(&ledger, &call, later(600_001)), Reason::Expired);
    assert_eq!(ask(&ledger, &call, later(600_000)), Reason::Confirmed);
    let day = Rule { within_ms: 86_400_000, ..Rule::default() };
    let ask = |at| block_on(ledger.check(Some(&day), &call, at)).unwrap().reason;
    say(&ledger, &session(), PAY, NOW);
    assert_eq!(ask(later(61 * 60_000)), Reason::NoConfirmation, "gone");
    assert_eq!(ask(later(60 * 60_000)), Reason::Confirmed);
    say(&ledger, &session(), PAY, NOW);
    assert_eq!(block_on(ledger.forget(later(61 * 60_000))).unwrap(), 1);
}

#[test]
fn led_12_led_13_an_entry_is_its_sessions_or_else_its_traces() {
    let ledger = ledger();
    let in_trace = |session: &str, trace: &str| Context {
        session: Some(session.to_owned()),
        trace: Some(trace.to_owned()),
    };
    say(&ledger, &in_trace("s1", "t1"), PAY, NOW);
    assert_eq!(ask(&ledger, &call(PAY, in_trace("s2", "t1")), NOW), Reason::NoConfirmation);
    assert_eq!(ask(&ledger, &call(PAY, Context::trace("t1")), NOW), Reason::NoConfirmation);
    assert_eq!(ask(&ledger, &call(PAY, in_trace("s1", "t2")), NOW), Reason::Confirmed);
    say(&ledger, &Context::trace("t1"), PAY, NOW);
    assert_eq!(ask(&ledger, &call(PAY, Context::trace("t2")), NOW), Reason::NoConfirmation);
    assert_eq!(ask(&ledger, &call(PAY, Context::session("t1")), NOW), Reason::NoConfirmation);
    assert_eq!(ask(&ledger, &call(PAY, Context::trace("t1")), NOW), Reason::Confirmed);
}

#[test]
fn led_15_another_ledger_sees_nothing_of_it() {
    let ledger = ledger();
    say(&ledger, &session(), PAY, NOW);
    let restarted = Ledger::in_memory(LedgerOptions::default()).unwrap();
    let call = call(PAY, session());
    assert_eq!(ask(&restarted, &call, NOW), Reason::NoConfirmation);
    assert_eq!(ask(&ledger.of_app("another"), &call, NOW), Reason::NoConfirmation);
    assert_eq!(ask(&ledger, &call, NOW), Reason::Confirmed);
}

/// Whether a type can be written out: what is chosen depends on it.
struct Writes<T>(PhantomData<T>);

trait CannotWrite {
    fn out(&self) -> bool {
        false
    }
}

impl<T> CannotWrite for Writes<T> {}

impl<T: Serialize> Writes<T> {
    fn out(&self) -> bool {
        true
    }
}

#[test]
fn led_16_clones_share_one_ledger_and_no_copy_can_be_written_out() {
    let ledger = Ledger::in_memory(LedgerOptions { private: true, ..LedgerOptions::default() }).unwrap();
    let clone = ledger.clone();
    say(&clone, &session(), PAY, NOW);
    assert_eq!(ask(&ledger, &call(PAY, session()), NOW), Reason::Confirmed, "with the same key");
    assert_eq!(ask(&clone, &call(PAY, session()), NOW), Reason::NoConfirmation);
    assert!(Writes::<Checked>(PhantomData).out());
    assert!(!Writes::<Ledger>(PhantomData).out() && !Writes::<Hasher>(PhantomData).out());
}

#[test]
fn led_18_confirmations_from_another_process_are_hashed_here() {
    let private = LedgerOptions { private: true, ..LedgerOptions::default() };
    for options in [LedgerOptions::default(), private] {
        let ledger = Ledger::in_memory(options).unwrap();
        let brought = Explicit::new("job-1", "pay", Args::Json(r#"{"amount":5e3,"to":"bob"}"#));
        let call = Call { explicit: vec![brought], ..call(PAY, session()) };
        assert_eq!(ask(&ledger, &call, NOW), Reason::Confirmed);
        let other = Explicit::new("job-2", "pay", Args::Json("{}"));
        let call = Call { explicit: vec![other], ..call };
        assert_eq!(ask(&ledger, &call, NOW), Reason::ArgsMismatch);
    }
}

#[test]
fn led_19_the_age_of_a_confirmation_from_elsewhere_counts_and_none_is_from_the_future() {
    let ledger = ledger();
    let at = |back: i64| Age::At(i64::try_from(NOW.0).unwrap() - back);
    for (number, (age, expected)) in [
        (Age::New, Some(Reason::Confirmed)),
        (Age::Millis(0), Some(Reason::Confirmed)),
        (Age::Millis(600_000), Some(Reason::Confirmed)),
        (Age::Millis(600_001), Some(Reason::Expired)),
        (at(600_000), Some(Reason::Confirmed)),
        (at(600_001), Some(Reason::Expired)),
        (Age::Millis(-1), None),
        (Age::Millis(i64::MIN), None),
        (Age::Millis(i64::MAX), Some(Reason::Expired)),
        (at(-1), None),
        (Age::At(-1), None),
    ]
    .into_iter()
    .enumerate()
    {
        let reference = format!("r{number}");
        let brought = Explicit { age, ..Explicit::new(&reference, "pay", PAY) };
        let call = Call { explicit: vec![brought], ..call(PAY, session()) };
        let found = block_on(ledger.check(Some(&Rule::default()), &call, NOW)).map(|checked| checked.reason);
        assert_eq!(found.ok(), expected, "{age:?}");
    }
}

#[test]
fn led_20_a_reference_works_once_also_when_it_is_built_again() {
    let ledger = ledger();
    let once = |reference: &'static str| Call {
        explicit: vec![Explicit::new(reference, "pay", PAY)],
        ..call(PAY, Context::default())
    };
    assert_eq!(ask(&ledger, &once("a"), NOW), Reason::Confirmed);
    assert_eq!(ask(&ledger, &once("a"), NOW), Reason::AlreadyUsed, "a retry that builds it again");
    assert_eq!(ask(&ledger, &once("b"), NOW), Reason::Confirmed, "a new one per attempt");
    assert!(block_on(ledger.check(Some(&Rule::default()), &once(""), NOW)).is_err());
}

#[test]
fn led_22_the_hash_is_of_the_arguments_before_anything_is_left_out() {
    let secret = Args::Json(r#"{"phone":"+49 170 1234567"}"#);
    let redacted = Args::Json(r#"{"phone":"[phone]"}"#);
    let ledger = Ledger::in_memory(LedgerOptions { private: true, ..LedgerOptions::default() }).unwrap();
    let spans = spans_of(|| {
        say(&ledger, &session(), secret, NOW);
    });
    assert!(spans[0].contains(&ledger.args_hash(secret).unwrap()), "{spans:?}");
    assert_ne!(ledger.args_hash(secret), ledger.args_hash(redacted));
    assert_eq!(ask(&ledger, &call(redacted, session()), NOW), Reason::ArgsMismatch);
    assert_eq!(ask(&ledger, &call(secret, session()), NOW), Reason::Confirmed);
}

#[test]
fn led_24_keyed_hashes_of_two_processes_never_match() {
    let store: Arc<dyn LedgerStore> = Arc::new(InMemory::default());
    let private = || LedgerOptions { private: true, ..LedgerOptions::default() };
    let one = Ledger::on(Arc::clone(&store), private()).unwrap();
    let other = Ledger::on(Arc::clone(&store), private()).unwrap();
    let plain = Ledger::on(store, LedgerOptions::default()).unwrap();
    say(&one, &session(), PAY, NOW);
    assert_eq!(ask(&other, &call(PAY, session()), NOW), Reason::ArgsMismatch);
    assert_eq!(ask(&plain, &call(PAY, session()), NOW), Reason::ArgsMismatch);
    assert_eq!(ask(&one, &call(PAY, session()), NOW), Reason::Confirmed);
}

#[test]
fn led_32_without_a_rule_nothing_is_blocked_and_nothing_is_used() {
    let ledger = ledger();
    say(&ledger, &session(), PAY, NOW);
    let call = call(PAY, session());
    let checked = block_on(ledger.check(None, &call, NOW)).unwrap();
    assert_eq!((checked.allowed, checked.reason), (true, Reason::NoRule));
    assert_eq!(ask(&ledger, &call, NOW), Reason::Confirmed);
}

#[test]
fn led_33_the_two_fields_of_a_check_can_be_passed_over_and_can_be_missing() {
    #[derive(Deserialize)]
    struct OldServer {
        tool: String,
    }
    #[derive(Serialize, Deserialize)]
    struct NewCheck {
        tool: String,
        #[serde(flatten)]
        sent: Sent,
    }
    let sent = Sent { ledger: Some(true), confirmations: Some(vec![json!({ "ref": "a" })]) };
    let check = serde_json::to_string(&NewCheck { tool: "pay".to_owned(), sent: sent.clone() }).unwrap();
    assert_eq!(serde_json::from_str::<OldServer>(&check).unwrap().tool, "pay");
    assert_eq!(serde_json::from_str::<NewCheck>(&check).unwrap().sent, sent);
    let from_old: NewCheck = serde_json::from_str(r#"{"tool":"pay"}"#).unwrap();
    assert!(!from_old.sent.is_data() && sent.is_data());
    assert!(Checked::of(Reason::NoData, Mode::Enforce).allowed);
}

#[test]
fn led_34_observing_lets_the_call_through_and_says_why_it_would_not_have() {
    let ledger = ledger();
    let rule = |mode| Rule { mode, ..Rule::default() };
    let ask = |mode| block_on(ledger.check(Some(&rule(mode)), &call(PAY, session()), NOW)).unwrap();
    let spans = spans_of(|| {
        let observed = ask(Mode::Observe);
        assert_eq!((observed.allowed, observed.reason), (true, Reason::NoConfirmation));
        let enforced = ask(Mode::Enforce);
        assert_eq!((enforced.allowed, enforced.reason), (false, Reason::NoConfirmation));
    });
    assert!(spans[0].contains("ledger check") && spans[0].contains("mode=\"observe\""), "{spans:?}");
    assert!(
        spans[1].contains("reason=\"no_confirmation\"") && spans[1].contains("allowed=false"),
        "{spans:?}"
    );
}

#[test]
fn led_35_no_text_is_read_whatever_the_language() {
    let ledger = ledger();
    for (tool, args) in [("予約", r#"{"お名前":"田中"}"#), ("überweisen", r#"{"satz":"nein, bitte nicht"}"#)]
    {
        let context = Context::session("会話");
        block_on(ledger.record(&context, &Said::by_user(tool, Args::Json(args)), NOW)).unwrap();
        assert_eq!(ask(&ledger, &Call::new(tool, Args::Json(args), context), NOW), Reason::Confirmed);
    }
}

#[test]
fn led_37_a_run_of_our_own_is_written_down_and_used_up_in_one_step() {
    let ledger = ledger();
    let hash = ledger.args_hash(PAY).unwrap();
    let run = |id| OwnRun { tool: "pay", input_hash: &hash, id };
    let spans = spans_of(|| {
        assert!(block_on(ledger.note_run(&run("call-1/h_01/1"), NOW)).unwrap());
    });
    assert!(spans[0].contains("human_in_loop approval") && spans[0].contains("sha256:"), "{spans:?}");
    assert!(!block_on(ledger.note_run(&run("call-1/h_01/1"), NOW)).unwrap(), "another server's try");
    assert!(block_on(ledger.note_run(&run("call-1/h_01/2"), NOW)).unwrap(), "after a rewind by the caller");
    assert_eq!(ask(&ledger, &call(PAY, session()), NOW), Reason::NoConfirmation, "nobody else can use it");
}
