use super::*;

type Spoken = Result<String, String>;

fn table(rows: &[(&str, &str, &str)], say: impl Fn(&str, Language) -> Spoken) {
    for (tag, value, want) in rows {
        assert_eq!(say(value, Language::of(tag)).as_deref(), Ok(*want), "{tag} {value}");
    }
}

fn refused(values: &[&str], say: impl Fn(&str, Language) -> Spoken) {
    for value in values {
        for tag in ["en", "de", "ja", "xx"] {
            assert!(say(value, Language::of(tag)).is_err(), "{tag} {value}");
        }
    }
}

#[test]
fn dates_and_times_are_said_as_people_say_them() {
    table(
        &[
            ("en", "2026-12-03T15:00", "Thursday the 3rd of December at 3 pm"),
            ("en-GB", "2024-02-29T00:00:00", "Thursday the 29th of February at midnight"),
            ("en", "2026-01-01 12:00", "Thursday the 1st of January at 12 noon"),
            ("en", "2026-06-22T09:05:00+02:00", "Monday the 22nd of June at 9:05 am"),
            ("en", "2026-06-11T15:30Z", "Thursday the 11th of June at 3:30 pm UTC"),
            ("en", "2026-06-13T00:30", "Saturday the 13th of June at 12:30 am"),
            ("de", "2026-12-03T15:00", "Donnerstag, den 3. Dezember um 15 Uhr"),
            ("de-AT", "2026-12-05T09:30", "Samstag, den 5. Dezember um 9 Uhr 30"),
            ("es", "2026-12-03T15:00", "jueves 3 de diciembre a las 15:00"),
            ("fr", "2026-12-01T15:30", "mardi 1er décembre à 15 heures 30"),
            ("pt", "2026-12-03T15:30", "quinta-feira, 3 de dezembro às 15 horas e 30"),
            ("ja", "2026-12-03T15:30", "12月3日木曜日15時30分"),
            ("hi", "2026-12-03T15:00", "गुरुवार, 3 दिसंबर, 15 बजे"),
            ("xx", "2026-12-03T15:00", "2026-12-03, 15:00"),
        ],
        |value, language| date_time(value, language, false),
    );
    table(
        &[
            ("en", "2026-12-03", "Thursday the 3rd of December 2026"),
            ("ja", "2026-12-03", "2026年12月3日木曜日"),
        ],
        |value, language| date(value, language, true),
    );
    table(&[("en", "23:59:30", "11:59 and 30 seconds pm"), ("de", "00:00", "0 Uhr")], time);
}

#[test]
fn what_is_no_moment_is_refused() {
    refused(
        &[
            "",
            "2026-13-01T10:00",
            "2026-02-29T10:00",
            "2026-1-1T10:00",
            "2026-01-01",
            "tomorrow",
            "0000-01-01T10:00",
        ],
        |value, language| date_time(value, language, false),
    );
    refused(
        &["", "24:00", "1:00", "10:60", "10:00+99:00", "10:00:00:00", "10", "１０:００", "10:00+é"],
        time,
    );
    refused(&["2026-00-10", "2026-04-31", "1900-02-29", "+026-01-01"], |v, l| date(v, l, false));
}

#[test]
fn money_is_said_in_units_and_hundredths() {
    for (tag, amount, currency, want) in [
        ("en", "1250.50", "EUR", "1,250 euros and 50 cents"),
        ("en", "1", "usd", "1 dollar"),
        ("en", "0.01", "GBP", "1 penny"),
        ("en", "-3.05", "EUR", "minus 3 euros and 5 cents"),
        ("en", "1000000", "JPY", "1,000,000 yen"),
        ("en", "12.50", "SEK", "12.50 S E K"),
        ("de", "1250.50", "EUR", "1.250 Euro und 50 Cent"),
        ("de", "12.5", "SEK", "12,50 S E K"),
        ("es", "2.10", "EUR", "2 euros con 10 céntimos"),
        ("fr", "1250", "EUR", "1250 euros"),
        ("pt", "2", "BRL", "2 reais"),
        ("ja", "1250", "JPY", "1250円"),
        ("hi", "2.50", "INR", "2 रुपये और 50 पैसे"),
        ("xx", "1250.50", "EUR", "1250.50 EUR"),
    ] {
        assert_eq!(money(amount, currency, Language::of(tag)).as_deref(), Ok(want), "{tag} {amount}");
    }
    for (amount, currency) in
        [("1.005", "EUR"), ("1.5", "JPY"), ("a", "EUR"), ("1", "euro"), ("1e3", "EUR"), ("", "EUR")]
    {
        assert!(money(amount, currency, Language::English).is_err(), "{amount} {currency}");
    }
}

#[test]
fn numbers_keep_their_decimals() {
    table(&[("en", "1250.5", "1,250.5"), ("de", "-1250.50", "minus 1.250,50"), ("xx", "007", "7")], number);
    refused(&["", "1,5", "NaN", "1.", ".5", "--1"], number);
}

#[test]
fn an_email_is_spelled_only_where_it_must_be() {
    table(
        &[
            ("en", "anna@example.com", "anna at example dot com"),
            ("en", "x7q@example.com", "x 7 q at example dot com"),
            ("en", "Anna.Smith42@my-shop.co.uk", "anna dot smith 4 2 at m y dash shop dot c o dot u k"),
            ("de", "a_b@beispiel.de", "a Unterstrich b at beispiel Punkt d e"),
            ("fr", "marie@example.com", "marie arobase example point com"),
            ("xx", "anna@example.com", "anna@example.com"),
        ],
        email,
    );
    refused(
        &["", "anna", "@example.com", "anna@", "a@b", "a b@example.com", "a@b@c.de", "a\n@b.de", "a@.de"],
        email,
    );
}

#[test]
fn digits_come_in_groups() {
    table(
        &[
            ("en", "5551234", "5 5 5, 1 2 3 4"),
            ("en", "555-1234", "5 5 5, 1 2 3 4"),
            ("en", "4111111111111111", "4 1 1 1, 1 1 1 1, 1 1 1 1, 1 1 1 1"),
            ("en", "b ab 12", "B, A B, 1 2"),
            ("en", "7", "7"),
        ],
        digits,
    );
    table(
        &[
            ("en", "+49 30 1234567", "plus 4 9, 3 0, 1 2 3, 4 5 6 7"),
            ("es", "+34 600 123 456", "más 3 4, 6 0 0, 1 2 3, 4 5 6"),
            ("de", "(030) 12 34", "0 3 0, 1 2, 3 4"),
        ],
        phone,
    );
    refused(&["", "  ", "1;2", "<1>"], digits);
    refused(&["", "12", "+", "call me", "123456789012345678901"], phone);
}

#[test]
fn lists_end_with_and() {
    let items: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
    assert_eq!(list(&items, Language::English).as_deref(), Ok("a, b and c"));
    assert_eq!(list(&items[..2], Language::German).as_deref(), Ok("a und b"));
    assert_eq!(list(&items[..1], Language::French).as_deref(), Ok("a"));
    assert!(list(&[], Language::English).is_err());
}
