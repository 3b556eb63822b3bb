//! Whether what a model passes to a tool was ever said.
//!
//! Small models invent arguments: asked to cancel "my booking", they cancel booking 12345. So each text and number
//! of a call is looked for in what the caller said: as words, as digits, as words for digits, letter by letter,
//! as a weekday or "tomorrow" for a date. What is nowhere is named, and whoever runs the call refuses it and has
//! the model ask.
//!
//! This errs towards support. It is a net for inventions, not a proof: what matters is read back and confirmed.
//! Enumerated values, booleans, constants and defaults are never inventions, as the tool itself offers them.

mod calendar;
mod heard;
mod numbers;

use serde_json::Value;

use calendar::{Clock, Day};
use heard::Heard;

/// Deeper arguments than this are not looked into.
const DEEPEST: usize = 16;

/// JSON Pointers of the texts and numbers in `arguments` that nothing in `said` supports, in order.
///
/// `said` is what the caller said, an utterance each; answers of tools that were read to the model belong there too
/// if their values may be passed on. `today` (`2026-11-30`) makes "tomorrow" mean one day only; without it, such
/// words support any date. Never fails: what cannot be understood in `schema` is treated as absent.
pub fn ungrounded(arguments: &Value, schema: &Value, said: &[String], today: Option<&str>) -> Vec<String> {
    let heard = Heard::new(said);
    let mut walk = Walk { root: schema, heard: &heard, today: today.and_then(Day::parse), found: Vec::new() };
    walk.value(arguments, schema, "", 0);
    walk.found
}

struct Walk<'a> {
    root: &'a Value,
    heard: &'a Heard,
    today: Option<Day>,
    found: Vec<String>,
}

impl<'a> Walk<'a> {
    fn value(&mut self, value: &Value, schema: &'a Value, path: &str, depth: usize) {
        let schema = self.resolved(schema);
        if depth > DEEPEST || offers(schema, value) {
            return;
        }
        let is_supported = match value {
            Value::Null | Value::Bool(_) => true,
            Value::Number(number) => self.number(number, schema, path),
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.value(
                        item,
                        schema.get("items").unwrap_or(&Value::Null),
                        &format!("{path}/{at}"),
                        depth + 1,
                    );
                }
                true
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let escaped = name.replace('~', "~0").replace('/', "~1");
                    let property = property(schema, name);
                    self.value(member, property, &format!("{path}/{escaped}"), depth + 1);
                }
                true
            }
        };
        if !is_supported {
            self.found.push(path.to_owned());
        }
    }

    /// The schema behind a `$ref`, or the schema itself.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let target =
            schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        target.and_then(|path| self.root.pointer(path)).unwrap_or(schema)
    }

    fn number(&self, number: &serde_json::Number, schema: &Value, path: &str) -> bool {
        let Some(value) = number.as_f64() else { return false };
        self.heard.number(value) || (is_in_cents(schema, path) && self.heard.number(value / 100.0))
    }

    fn text(&self, text: &str) -> bool {
        let text = text.trim();
        if let Some((day, clock)) = calendar::moment(text) {
            return day.is_none_or(|day| self.day(day)) && clock.is_none_or(|clock| self.clock(clock));
        }
        self.heard.text(text)
    }

    fn day(&self, day: Day) -> bool {
        let heard = self.heard;
        let by_number = heard.number(f64::from(day.day)) && heard.allows_month(day.month);
        by_number || heard.weekday(day) || heard.relative_day(day, self.today)
    }

    fn clock(&self, clock: Clock) -> bool {
        self.heard.clock(clock)
    }
}

/// Whether the schema itself offers this value.
fn offers(schema: &Value, value: &Value) -> bool {
    let is_listed = schema.get("enum").and_then(Value::as_array).is_some_and(|values| values.contains(value));
    let is_given = ["const", "default"].iter().any(|key| schema.get(key) == Some(value));
    let alternatives =
        ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    is_listed || is_given || alternatives.into_iter().any(|schema| offers(schema, value))
}

fn property<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let own = schema.get("properties").and_then(|properties| properties.get(name));
    let of_alternative = || {
        let keys = ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
        keys.into_iter().find_map(|schema| schema.get("properties")?.get(name))
    };
    own.or_else(of_alternative).unwrap_or(&Value::Null)
}

/// Whether a sum is counted in hundredths of what callers name.
fn is_in_cents(schema: &Value, path: &str) -> bool {
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let words = format!("{path} {description}").to_lowercase();
    ["cents", "pence", "minor unit", "_cent"].iter().any(|word| words.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A Monday.
    const TODAY: Option<&str> = Some("2026-11-30");

    fn found(arguments: &Value, said: &[&str]) -> Vec<String> {
        let said: Vec<String> = said.iter().map(|&words| words.to_owned()).collect();
        ungrounded(arguments, &json!({}), &said, TODAY)
    }

    fn is_grounded(value: impl Into<Value>, said: &str) -> bool {
        found(&json!({ "a": value.into() }), &[said]).is_empty()
    }

    #[track_caller]
    fn check(said: &str, grounded: &[Value], invented: &[Value]) {
        for value in grounded {
            assert!(is_grounded(value.clone(), said), "{said:?} supports {value}");
        }
        for value in invented {
            assert!(!is_grounded(value.clone(), said), "{said:?} does not support {value}");
        }
    }

    #[test]
    fn an_invented_booking_number_is_found() {
        let arguments = json!({"booking_id": "12345", "reason": "sick"});
        assert_eq!(found(&arguments, &["Cancel my booking please, I am sick."]), ["/booking_id"]);
        assert_eq!(found(&arguments, &["Cancel my booking.", "It's 12345.", "I'm sick."]), [""; 0]);
    }

    #[test]
    fn what_a_small_model_really_invents_is_found() {
        let doe = json!({"name": "John Doe", "date": "2026-12-01", "time": "10:00"});
        assert_eq!(found(&doe, &["I'd like to make an appointment."]), ["/name", "/date", "/time"]);
        let anna = json!({"name": "Anna Schmidt", "date": "2026-11-30", "time": "15:00"});
        let said = "Book me for Thursday at three in the afternoon, my name is Anna Schmidt.";
        assert_eq!(found(&anna, &[said]), ["/date"]);
        let tom = json!({"name": "Tom Reed", "date": "2026-11-31", "time": "10:00"});
        assert_eq!(
            found(&tom, &["Can I come tomorrow at ten? I'm Tom Reed."]),
            ["/date"],
            "November has 30 days"
        );
        let moved = json!({"booking_id": "B 4", "date": "2026-12-04", "time": "09:30"});
        assert_eq!(found(&moved, &["Move booking B 4 to Friday the fourth at half past nine."]), [""; 0]);
    }

    #[test]
    fn names_must_have_been_said() {
        let said = "Hi, this is Anna Schmidt, I'd like to see doctor Jones.";
        check(
            said,
            &[json!("Anna Schmidt"), json!("anna schmidt"), json!("Anna Schmid"), json!("Dr. Jones")],
            &[json!("John Doe"), json!("Anna Doe"), json!("Anna Miller")],
        );
        check(
            "Je m'appelle Zoë Lefèvre",
            &[json!("Zoe Lefevre"), json!("Zoë Lefèvre")],
            &[json!("Zara Lefèvre")],
        );
        check("山田太郎です", &[json!("山田太郎")], &[json!("田中")]);
    }

    #[test]
    fn spelled_letters_make_words() {
        check("It's S C H M I D T", &[json!("Schmidt")], &[json!("Schulze")]);
        check("A as in alpha, double n, A", &[json!("Anna")], &[json!("Hanna")]);
        check("A wie Anton, N wie Nordpol, N wie Nordpol, A", &[json!("Anna")], &[json!("Berta")]);
        check("B for Bravo 7 4 X-ray", &[json!("B74X")], &[json!("B75X")]);
    }

    #[test]
    fn mail_addresses_are_heard_in_words() {
        for said in ["anna at example dot com", "it's anna@example.com", "A N N A at example dot com"] {
            check(
                said,
                &[json!("anna@example.com")],
                &[json!("anna@gmail.com"), json!("john.doe@example.com")],
            );
        }
        check("anna dot schmidt underscore 2 at web dot de", &[json!("anna.schmidt_2@web.de")], &[]);
    }

    #[test]
    fn numbers_are_heard_as_digits_and_as_words() {
        check(
            "two hundred and fifty euros",
            &[json!(250), json!(250.0), json!("250")],
            &[json!(25), json!(2500)],
        );
        check("It's 1,250.75", &[json!(1250.75)], &[json!(1250), json!(75.5)]);
        check("a thousand two hundred", &[json!(1200)], &[json!(1201)]);
        check("twelve fifty", &[json!(12.5), json!(1250)], &[json!(12.6)]);
        check("three point five", &[json!(3.5)], &[json!(3.6)]);
        check("a table for a couple", &[json!(2)], &[json!(4)]);
        check("half a dozen", &[json!(6)], &[json!(7)]);
        check("no number here", &[], &[json!(1), json!(0), json!(4)]);
    }

    #[test]
    fn numbers_are_heard_in_other_languages() {
        check("für einundzwanzig Personen", &[json!(21)], &[json!(12)]);
        check("zweihundertfünfzig Euro", &[json!(250)], &[json!(205)]);
        check("una mesa para cuatro", &[json!(4)], &[json!(5)]);
        check("une table pour huit", &[json!(8)], &[json!(18)]);
    }

    #[test]
    fn digits_one_by_one_make_long_numbers() {
        let said = "five five five, oh one, double nine";
        check(
            said,
            &[json!("555-0199"), json!("+1 555 0199"), json!(5_550_199)],
            &[json!("555-0198"), json!("12345")],
        );
        check("my number is 030 12 34 56", &[json!("030123456"), json!("030 123456")], &[json!("030123457")]);
        let turns = ["it starts with 4711", "and then 0815"];
        assert!(found(&json!({"n": "47110815"}), &turns).is_empty(), "a number may come in two turns");
    }

    #[test]
    fn dates_are_heard_as_days_weekdays_and_relative_words() {
        check("on the 12th of December", &[json!("2026-12-12")], &[json!("2026-12-13"), json!("2026-11-12")]);
        check("the twenty-first", &[json!("2026-12-21")], &[json!("2026-12-22")]);
        check("on Thursday", &[json!("2026-12-03"), json!("2026-12-10")], &[json!("2026-12-04")]);
        check("am Donnerstag", &[json!("2026-12-03")], &[json!("2026-12-04")]);
        check("tomorrow", &[json!("2026-12-01")], &[json!("2026-12-02")]);
        check("the day after tomorrow", &[json!("2026-12-02")], &[json!("2026-12-05")]);
        check("sometime next week", &[json!("2026-12-08")], &[]);
        check("as soon as possible", &[], &[json!("2026-12-01")]);
        assert!(ungrounded(&json!(["2027-01-05"]), &json!({}), &["tomorrow".into()], None).is_empty());
    }

    #[test]
    fn times_are_heard_in_the_ways_people_say_them() {
        check("at three", &[json!("15:00"), json!("03:00")], &[json!("16:00"), json!("15:30")]);
        check("at 3 pm", &[json!("15:00")], &[json!("14:00")]);
        check("half past three", &[json!("15:30")], &[json!("15:15"), json!("18:30")]);
        check("a quarter to four", &[json!("15:45")], &[json!("15:15")]);
        check("ten to four", &[json!("15:50")], &[json!("15:40")]);
        check("at noon", &[json!("12:00")], &[json!("13:00")]);
        check("um halb vier", &[json!("15:30")], &[json!("15:15")]);
        check(
            "Thursday at 3:30",
            &[json!("2026-12-03T15:30:00Z"), json!("3:30 PM")],
            &[json!("2026-12-03T10:30")],
        );
    }

    #[test]
    fn free_text_needs_most_of_its_words() {
        let said = "My back has been hurting since I moved the sofa, so I need a checkup.";
        check(
            said,
            &[json!("back hurting since moving the sofa"), json!("check-up")],
            &[json!("migraine"), json!("patient reports persistent migraine and nausea")],
        );
    }

    #[test]
    fn what_the_tool_offers_is_never_an_invention() {
        let schema = json!({"properties": {
            "kind": {"enum": ["cleaning", "checkup"]}, "urgent": {"type": "boolean"},
            "length": {"type": "integer", "default": 30}, "version": {"const": "v2"},
            "where": {"anyOf": [{"enum": ["north", "south"]}, {"type": "string"}]},
            "room": {"$ref": "#/$defs/room"},
        }, "$defs": {"room": {"enum": ["A", "B"]}}});
        let offered = json!({"kind": "cleaning", "urgent": true, "length": 30, "version": "v2", "where": "north",
            "room": "B", "note": null, "empty": ""});
        assert_eq!(ungrounded(&offered, &schema, &[], None), [""; 0]);
        let other = json!({"kind": "surgery", "length": 45, "where": "east", "room": "C"});
        assert_eq!(ungrounded(&other, &schema, &[], None), ["/kind", "/length", "/where", "/room"]);
    }

    #[test]
    fn inventions_are_found_at_any_depth_and_named_by_pointer() {
        let arguments = json!({"guests": [{"name": "Anna"}, {"name": "Bob"}], "a/b": {"c~d": 7}});
        assert_eq!(found(&arguments, &["just Anna"]), ["/guests/1/name", "/a~1b/c~0d"]);
    }

    #[test]
    fn cents_are_hundredths_of_what_was_said() {
        let schema = json!({"properties": {"amount": {"type": "integer", "description": "In cents."}}});
        let said = ["a hundred and fifty dollars".to_owned()];
        assert_eq!(ungrounded(&json!({"amount": 15_000}), &schema, &said, None), [""; 0]);
        assert_eq!(ungrounded(&json!({"amount": 16_000}), &schema, &said, None), ["/amount"]);
    }

    #[test]
    fn nothing_said_and_odd_input_do_no_harm() {
        let odd =
            json!({"a": "…", "b": "\u{0}", "c": [[[]]], "d": 1e300, "e": -0.0, "f": "9999-99-99T99:99"});
        let found = ungrounded(&odd, &json!("no schema"), &[], Some("no day"));
        assert!(found.contains(&"/d".to_owned()) && found.contains(&"/f".to_owned()), "{found:?}");
        let long = vec!["one two three ".repeat(2_000)];
        assert!(!ungrounded(&json!({"n": "987654"}), &json!({}), &long, None).is_empty());
    }
}
