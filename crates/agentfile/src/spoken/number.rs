//! Numbers and amounts of money, from decimal text: binary fractions never touch them.

use super::Language;
use super::currency::{decimals, names};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    whole: String,
    fraction: String,
}

/// `1250.5` as `1,250.5`.
pub(crate) fn number(text: &str, language: Language) -> Result<String, String> {
    let decimal = parse(text)?;
    let mut said = signed(&decimal, language, group(&decimal.whole, language));
    if !decimal.fraction.is_empty() {
        said.push(decimal_mark(language));
        said.push_str(&decimal.fraction);
    }
    Ok(said)
}

/// `1250.50` and `EUR` as `1,250 euros and 50 cents`.
pub(crate) fn money(text: &str, currency: &str, language: Language) -> Result<String, String> {
    let code = currency.trim().to_ascii_uppercase();
    if code.len() != 3 || !code.bytes().all(|b| b.is_ascii_uppercase()) {
        return Err(format!("\"{currency}\" is not a currency like EUR"));
    }
    let decimal = parse(text)?;
    let places = decimals(&code);
    let fraction = decimal.fraction.trim_end_matches('0');
    if fraction.len() > places {
        return Err(format!("\"{text}\" has more decimals than {code} has"));
    }
    let minor = format!("{fraction:0<places$}");
    let minor = minor.trim_start_matches('0');
    let Some(names) = names(&code, language) else {
        let cents = if minor.is_empty() { "" } else { &format!("{fraction:0<places$}") };
        return Ok(spelled(&decimal, cents, &code, language));
    };
    let space = if language == Language::Japanese { "" } else { " " };
    let unit = |count: &str, one: usize| {
        let name = names[if count == "1" { one } else { one + 1 }];
        format!("{}{space}{name}", group(count, language))
    };
    let said = match (decimal.whole.as_str(), minor) {
        (whole, "") => unit(whole, 0),
        ("0", minor) => unit(minor, 2),
        (whole, minor) => format!("{}{}{}", unit(whole, 0), and(language), unit(minor, 2)),
    };
    Ok(signed(&decimal, language, said))
}

fn spelled(decimal: &Decimal, cents: &str, code: &str, language: Language) -> String {
    let mut amount = group(&decimal.whole, language);
    if !cents.is_empty() {
        amount.push(decimal_mark(language));
        amount.push_str(cents);
    }
    let letters: Vec<String> = code.chars().map(String::from).collect();
    let code = if language == Language::Neutral { code.to_owned() } else { letters.join(" ") };
    signed(decimal, language, format!("{amount} {code}"))
}

fn parse(text: &str) -> Result<Decimal, String> {
    let wrong = || format!("\"{text}\" is not a number like 1250.50");
    let trimmed = text.trim();
    let digits = trimmed.strip_prefix('-');
    let (negative, digits) = (digits.is_some(), digits.unwrap_or(trimmed));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let is_number =
        |part: &str| !part.is_empty() && part.len() <= 30 && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !fraction.is_none_or(is_number) {
        return Err(wrong());
    }
    let whole = whole.trim_start_matches('0');
    Ok(Decimal {
        negative,
        whole: if whole.is_empty() { "0".to_owned() } else { whole.to_owned() },
        fraction: fraction.unwrap_or_default().to_owned(),
    })
}

fn signed(decimal: &Decimal, language: Language, said: String) -> String {
    let zero = decimal.whole == "0" && decimal.fraction.bytes().all(|b| b == b'0');
    match language {
        _ if !decimal.negative || zero => said,
        Language::Portuguese | Language::Spanish => format!("menos {said}"),
        Language::French => format!("moins {said}"),
        Language::Japanese => format!("マイナス{said}"),
        Language::Hindi => format!("माइनस {said}"),
        Language::Neutral => format!("-{said}"),
        Language::English | Language::German => format!("minus {said}"),
    }
}

fn group(digits: &str, language: Language) -> String {
    let mark = match language {
        Language::English => ",",
        Language::German | Language::Spanish | Language::Portuguese => ".",
        // Voices read these digits best unbroken.
        Language::French | Language::Japanese | Language::Hindi | Language::Neutral => {
            return digits.to_owned();
        }
    };
    let mut said = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            said.push_str(mark);
        }
        said.push(digit);
    }
    said
}

fn decimal_mark(language: Language) -> char {
    match language {
        Language::German | Language::Spanish | Language::French | Language::Portuguese => ',',
        Language::English | Language::Japanese | Language::Hindi | Language::Neutral => '.',
    }
}

fn and(language: Language) -> &'static str {
    match language {
        Language::English => " and ",
        Language::German => " und ",
        Language::Spanish => " con ",
        Language::French => " et ",
        Language::Portuguese => " e ",
        Language::Hindi => " और ",
        Language::Japanese => "",
        Language::Neutral => ", ",
    }
}
