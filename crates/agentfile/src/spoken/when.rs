//! Dates and times.

use super::Language;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Date {
    year: u32,
    month: usize,
    day: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Time {
    hour: u32,
    minute: u32,
    second: u32,
    utc: bool,
}

const ENGLISH_DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const GERMAN_DAYS: [&str; 7] =
    ["Sonntag", "Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag"];
const SPANISH_DAYS: [&str; 7] = ["domingo", "lunes", "martes", "miércoles", "jueves", "viernes", "sábado"];
const FRENCH_DAYS: [&str; 7] = ["dimanche", "lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi"];
const PORTUGUESE_DAYS: [&str; 7] =
    ["domingo", "segunda-feira", "terça-feira", "quarta-feira", "quinta-feira", "sexta-feira", "sábado"];
const JAPANESE_DAYS: [&str; 7] = ["日曜日", "月曜日", "火曜日", "水曜日", "木曜日", "金曜日", "土曜日"];
const HINDI_DAYS: [&str; 7] = ["रविवार", "सोमवार", "मंगलवार", "बुधवार", "गुरुवार", "शुक्रवार", "शनिवार"];

const ENGLISH_MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const GERMAN_MONTHS: [&str; 12] = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
];
const SPANISH_MONTHS: [&str; 12] = [
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
];
const FRENCH_MONTHS: [&str; 12] = [
    "janvier",
    "février",
    "mars",
    "avril",
    "mai",
    "juin",
    "juillet",
    "août",
    "septembre",
    "octobre",
    "novembre",
    "décembre",
];
const PORTUGUESE_MONTHS: [&str; 12] = [
    "janeiro",
    "fevereiro",
    "março",
    "abril",
    "maio",
    "junho",
    "julho",
    "agosto",
    "setembro",
    "outubro",
    "novembro",
    "dezembro",
];
const HINDI_MONTHS: [&str; 12] =
    ["जनवरी", "फ़रवरी", "मार्च", "अप्रैल", "मई", "जून", "जुलाई", "अगस्त", "सितंबर", "अक्टूबर", "नवंबर", "दिसंबर"];

/// `2026-12-03` as `Thursday the 3rd of December`, with the year if asked for.
pub(crate) fn date(text: &str, language: Language, year: bool) -> Result<String, String> {
    let date = parse_date(text).ok_or_else(|| format!("\"{text}\" is not a date like 2026-12-03"))?;
    Ok(say_date(date, language, year))
}

/// `15:00` as `3 pm`.
pub(crate) fn time(text: &str, language: Language) -> Result<String, String> {
    let time = parse_time(text).ok_or_else(|| format!("\"{text}\" is not a time like 15:00"))?;
    Ok(say_time(time, language))
}

/// `2026-12-03T15:00` as `Thursday the 3rd of December at 3 pm`.
pub(crate) fn date_time(text: &str, language: Language, year: bool) -> Result<String, String> {
    let parts = text.split_once(['T', 't', ' ']).and_then(|(d, t)| Some((parse_date(d)?, parse_time(t)?)));
    let (date, time) =
        parts.ok_or_else(|| format!("\"{text}\" is not a date and time like 2026-12-03T15:00"))?;
    let (day, hour) = (say_date(date, language, year), say_time(time, language));
    Ok(match language {
        Language::English => format!("{day} at {hour}"),
        Language::German => format!("{day} um {hour}"),
        Language::Spanish => format!("{day} a las {hour}"),
        Language::French => format!("{day} à {hour}"),
        Language::Portuguese => format!("{day} às {hour}"),
        Language::Japanese => format!("{day}{hour}"),
        Language::Hindi | Language::Neutral => format!("{day}, {hour}"),
    })
}

fn say_date(date: Date, language: Language, with_year: bool) -> String {
    let Date { year, month, day } = date;
    let (w, m) = (weekday(date), month - 1);
    let tail = |joint: &str| if with_year { format!("{joint}{year}") } else { String::new() };
    match language {
        Language::English => {
            format!("{} the {day}{} of {}{}", ENGLISH_DAYS[w], ordinal(day), ENGLISH_MONTHS[m], tail(" "))
        }
        Language::German => format!("{}, den {day}. {}{}", GERMAN_DAYS[w], GERMAN_MONTHS[m], tail(" ")),
        Language::Spanish => format!("{} {day} de {}{}", SPANISH_DAYS[w], SPANISH_MONTHS[m], tail(" de ")),
        Language::French => {
            let first = if day == 1 { "1er".to_owned() } else { day.to_string() };
            format!("{} {first} {}{}", FRENCH_DAYS[w], FRENCH_MONTHS[m], tail(" "))
        }
        Language::Portuguese => {
            format!("{}, {day} de {}{}", PORTUGUESE_DAYS[w], PORTUGUESE_MONTHS[m], tail(" de "))
        }
        Language::Japanese => {
            let year = if with_year { format!("{year}年") } else { String::new() };
            format!("{year}{month}月{day}日{}", JAPANESE_DAYS[w])
        }
        Language::Hindi => format!("{}, {day} {}{}", HINDI_DAYS[w], HINDI_MONTHS[m], tail(" ")),
        Language::Neutral => format!("{year:04}-{month:02}-{day:02}"),
    }
}

fn say_time(time: Time, language: Language) -> String {
    let Time { hour, minute, second, utc } = time;
    let said = match language {
        Language::English => english_time(time),
        Language::German => parts(time, [" Uhr", "", "und", " Sekunden"]),
        Language::French => {
            parts(time, [if hour <= 1 { " heure" } else { " heures" }, "", "et", " secondes"])
        }
        Language::Portuguese => {
            let hours = if hour <= 1 { " hora" } else { " horas" };
            let minutes = if minute == 0 { String::new() } else { format!(" e {minute}") };
            let seconds = if second == 0 { String::new() } else { format!(" e {second} segundos") };
            format!("{hour}{hours}{minutes}{seconds}")
        }
        Language::Japanese => {
            let minutes = if minute == 0 { String::new() } else { format!("{minute}分") };
            let seconds = if second == 0 { String::new() } else { format!("{second}秒") };
            format!("{hour}時{minutes}{seconds}")
        }
        Language::Hindi if minute == 0 && second == 0 => format!("{hour} बजे"),
        Language::Spanish | Language::Hindi | Language::Neutral => {
            let seconds = if second == 0 { String::new() } else { format!(":{second:02}") };
            format!("{hour:02}:{minute:02}{seconds}")
        }
    };
    if utc { format!("{said} UTC") } else { said }
}

/// Hour, unit, minutes, seconds: `15 Uhr 30 und 5 Sekunden`.
fn parts(time: Time, [hours, minutes, and, seconds]: [&str; 4]) -> String {
    let mut said = format!("{}{hours}", time.hour);
    if time.minute > 0 || time.second > 0 {
        said.push_str(&format!(" {}{minutes}", time.minute));
    }
    if time.second > 0 {
        said.push_str(&format!(" {and} {}{seconds}", time.second));
    }
    said
}

fn english_time(Time { hour, minute, second, .. }: Time) -> String {
    let half = if hour < 12 { "am" } else { "pm" };
    let twelve = if hour.is_multiple_of(12) { 12 } else { hour % 12 };
    match (hour, minute, second) {
        (0, 0, 0) => "midnight".to_owned(),
        (12, 0, 0) => "12 noon".to_owned(),
        (_, 0, 0) => format!("{twelve} {half}"),
        (_, _, 0) => format!("{twelve}:{minute:02} {half}"),
        (_, _, _) => format!("{twelve}:{minute:02} and {second} seconds {half}"),
    }
}

fn ordinal(day: u32) -> &'static str {
    match day {
        11..=13 => "th",
        _ if day % 10 == 1 => "st",
        _ if day % 10 == 2 => "nd",
        _ if day % 10 == 3 => "rd",
        _ => "th",
    }
}

/// Day of the week, Sunday first, by counting days from a Sunday in the Gregorian calendar.
fn weekday(Date { year, month, day }: Date) -> usize {
    const BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let past = year - 1;
    let leap_day = u32::from(month > 2 && is_leap(year));
    let days = past * 365 + past / 4 - past / 100 + past / 400 + BEFORE[month - 1] + leap_day + day;
    (days % 7) as usize
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn parse_date(text: &str) -> Option<Date> {
    let mut fields = text.split('-');
    let (year, month, day) = (fields.next()?, fields.next()?, fields.next()?);
    if fields.next().is_some() || year.len() != 4 {
        return None;
    }
    let (year, month, day) = (parse_number(year)?, two_digits(month)?, two_digits(day)?);
    let longest = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    (year >= 1 && (1..=longest).contains(&day)).then_some(Date { year, month: month as usize, day })
}

fn parse_time(text: &str) -> Option<Time> {
    let (clock, utc) = split_zone(text)?;
    let mut fields = clock.split(':');
    let (hour, minute) = (two_digits(fields.next()?)?, two_digits(fields.next()?)?);
    let second = match fields.next() {
        Some(second) => parse_second(second)?,
        None => 0,
    };
    let fits = hour < 24 && minute < 60 && second < 60 && fields.next().is_none();
    fits.then_some(Time { hour, minute, second, utc })
}

/// The clock's part, and whether it is universal time. Any other zone is taken as the place's own.
fn split_zone(text: &str) -> Option<(&str, bool)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, true));
    }
    let Some(at) = text.find(['+', '-']) else { return Some((text, false)) };
    let (clock, zone) = text.split_at(at);
    let (hours, minutes) = zone[1..].split_once(':')?;
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    (hours < 24 && minutes < 60).then_some((clock, hours == 0 && minutes == 0))
}

fn parse_second(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    parse_number(fraction.get(..fraction.len().min(9))?)?;
    two_digits(whole)
}

fn two_digits(text: &str) -> Option<u32> {
    (text.len() == 2).then(|| parse_number(text)).flatten()
}

fn parse_number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
