//! Times of day and the names of days, per language.

use super::lexicon::Language;
use super::number::{Number, number};
use super::text::{Token, is_one_of, longest};
use super::value::Half;

/// A time on the twelve-hour dial, and the half of the day if it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// 0 to 11.
    pub(super) hour: u8,
    pub(super) minute: u8,
    pub(super) half: Option<Half>,
}

impl Clock {
    /// From hours as on a 24-hour clock; 1 to 12 may be either half.
    pub(super) fn from_24(hour: u8, minute: u8) -> Option<Self> {
        if hour > 24 || minute > 59 {
            return None;
        }
        let half = match hour {
            0 | 24 => Some(Half::Am),
            13..=23 => Some(Half::Pm),
            _ => None,
        };
        Some(Self { hour: hour % 12, minute, half })
    }

    fn of(hour: u64, minute: u64) -> Option<Self> {
        Self::from_24(u8::try_from(hour).ok()?, u8::try_from(minute).ok()?)
    }

    /// `minutes` before the full hour `hour`.
    fn before(hour: u64, minutes: u64) -> Option<Self> {
        Self::of(if hour == 0 { 23 } else { hour - 1 }, 60_u64.checked_sub(minutes)?)
            .map(|clock| if hour == 1 { Self { half: None, ..clock } } else { clock })
    }

    /// Whether `said` repeats this time and adds nothing: the half of the day may be left out, not brought in.
    pub(super) fn covers(self, said: Self) -> bool {
        let halves = said.half.is_none() || self.half == said.half;
        self.hour == said.hour && self.minute == said.minute && halves
    }
}

/// "seven thirty": two numbers that can be a time.
pub(super) fn bare(hour: &Number, minute: &Number) -> Option<Clock> {
    if minute.figures.len() != 2 || hour.figures.len() > 2 || hour.value == Some(0) {
        return None;
    }
    Clock::of(hour.value?, minute.value?)
}

type Found = Option<(Clock, usize)>;

/// The time that begins at `at`, if the words say that it is one.
pub(super) fn time(language: Language, tokens: &[Token], at: usize) -> Found {
    let (clock, next) = figures(tokens, at).or_else(|| match language {
        Language::En => english(tokens, at),
        Language::De => german(tokens, at),
        Language::Es => spanish(tokens, at),
        Language::Fr => french(tokens, at),
        Language::Pt => portuguese(tokens, at),
        Language::Ja => japanese(tokens, at),
        Language::Hi => hindi(tokens, at),
    })?;
    let (clock, next) = with_suffix(language, tokens, clock, next);
    let follows = tokens.get(next).is_some_and(|t| !t.starts_clause);
    Some(match part_of_day(language, tokens, next).filter(|_| follows && clock.half.is_none()) {
        Some((half, next)) => (Clock { half: Some(half), ..clock }, next),
        None => (clock, next),
    })
}

fn word(tokens: &[Token], at: usize, list: &str) -> bool {
    tokens.get(at).is_some_and(|t| is_one_of(&t.text, list))
}

fn plain(language: Language, tokens: &[Token], at: usize) -> Option<(u64, usize)> {
    let found = number(language, tokens, at).filter(|n| !n.ordinal)?;
    Some((found.value?, found.next))
}

/// A number of minutes: 0 to 59.
fn minutes(language: Language, tokens: &[Token], at: usize) -> Option<(u64, usize)> {
    plain(language, tokens, at).filter(|(n, _)| *n < 60)
}

/// Minutes right after the hour: of two figures, or in English "oh five".
fn minutes_after(language: Language, tokens: &[Token], at: usize) -> Option<(u64, usize)> {
    if language == Language::En && word(tokens, at, "oh|o") {
        return minutes(language, tokens, at + 1).filter(|(minute, _)| *minute < 10);
    }
    let two_figures = tokens.get(at).is_some_and(|t| t.text.len() == 2);
    minutes(language, tokens, at).filter(|(minute, _)| *minute > 9 || two_figures)
}

/// "15:00", "7:30".
fn figures(tokens: &[Token], at: usize) -> Found {
    let text = &tokens.get(at)?.text;
    let dotted = word(tokens, at + 1, "uhr|h|pm|am");
    let mut parts = text.split(|c| c == ':' || c == '.' && dotted);
    let hour: u64 = parts.next()?.parse().ok()?;
    let minute = parts.next()?.parse().ok()?;
    let clock = Clock::of(hour, minute)?;
    // "08:30" is a 24-hour clock's way to write it.
    let half = if text.starts_with('0') && hour > 0 { Some(Half::Am) } else { clock.half };
    Some((Clock { half, ..clock }, at + 1))
}

/// "pm", "Uhr", "o'clock" after a time.
fn with_suffix(language: Language, tokens: &[Token], clock: Clock, next: usize) -> (Clock, usize) {
    let mut next = next;
    if word(tokens, next, "uhr|horas|heures|h|बजे") {
        next += 1;
    }
    if language == Language::En {
        let clock_word = longest(tokens, next, "o clock|oclock");
        next += clock_word;
    }
    let spelled = usize::from(word(tokens, next, "a|p") && word(tokens, next + 1, "m"));
    let half = match tokens.get(next).map(|t| t.text.as_str()) {
        Some("pm") => Some(Half::Pm),
        Some("p") if spelled == 1 => Some(Half::Pm),
        Some("am") if language == Language::En => Some(Half::Am),
        Some("a") if spelled == 1 && language == Language::En => Some(Half::Am),
        _ => return (clock, next),
    };
    (Clock { half, ..clock }, next + 1 + spelled)
}

fn english(tokens: &[Token], at: usize) -> Found {
    let language = Language::En;
    if word(tokens, at, "noon|midday") {
        return Some((Clock { hour: 0, minute: 0, half: Some(Half::Pm) }, at + 1));
    }
    if word(tokens, at, "midnight") {
        return Some((Clock { hour: 0, minute: 0, half: Some(Half::Am) }, at + 1));
    }
    let start = at + usize::from(word(tokens, at, "a|at"));
    let (offset, joint) = if word(tokens, start, "half") {
        (30, start + 1)
    } else if word(tokens, start, "quarter") {
        (15, start + 1)
    } else {
        minutes(language, tokens, at).unwrap_or((60, at))
    };
    let joint = joint + usize::from(word(tokens, joint, "minutes"));
    if offset < 60
        && word(tokens, joint, "past|after|to|of|before|till")
        && let Some((hour, next)) = plain(language, tokens, joint + 1).filter(|(h, _)| *h <= 12)
    {
        let past = word(tokens, joint, "past|after");
        return Some((if past { Clock::of(hour, offset)? } else { Clock::before(hour, offset)? }, next));
    }
    // "Half seven" is half past it.
    if offset == 30
        && let Some((hour, next)) =
            plain(language, tokens, start + 1).filter(|(hour, _)| (1..=12).contains(hour))
        && word(tokens, start, "half")
    {
        return Some((Clock::of(hour, 30)?, next));
    }
    let marked = word(tokens, at, "at");
    let (hour, after) = plain(language, tokens, at + usize::from(marked)).filter(|(h, _)| *h <= 24)?;
    let (minute, next) = minutes_after(language, tokens, after).unwrap_or((0, after));
    let suffixed = word(tokens, next, "am|pm|oclock") || longest(tokens, next, "o clock|p m|a m") > 0;
    if marked || suffixed { Some((Clock::of(hour, minute)?, next)) } else { None }
}

fn german(tokens: &[Token], at: usize) -> Found {
    let language = Language::De;
    if word(tokens, at, "mittags|mittag") {
        return Some((Clock { hour: 0, minute: 0, half: Some(Half::Pm) }, at + 1));
    }
    let marked = usize::from(word(tokens, at, "um|gegen|ab"));
    let start = at + marked;
    if word(tokens, start, "halb") {
        let (hour, next) = plain(language, tokens, start + 1)?;
        return Some((Clock::before(hour, 30)?, next));
    }
    if word(tokens, start, "dreiviertel") {
        let (hour, next) = plain(language, tokens, start + 1)?;
        return Some((Clock::before(hour, 15)?, next));
    }
    let (offset, joint) = if word(tokens, start, "viertel") {
        (15, start + 1)
    } else {
        minutes(language, tokens, start).unwrap_or((60, start))
    };
    if offset < 60
        && word(tokens, joint, "nach|vor")
        && let Some((hour, next)) = plain(language, tokens, joint + 1).filter(|(h, _)| *h <= 24)
    {
        let past = word(tokens, joint, "nach");
        return Some((if past { Clock::of(hour, offset)? } else { Clock::before(hour, offset)? }, next));
    }
    let (hour, after) = hour_word(tokens, start)?;
    if word(tokens, after, "uhr") {
        let (minute, next) = minutes(language, tokens, after + 1).unwrap_or((0, after + 1));
        return Some((Clock::of(hour, minute)?, next));
    }
    if marked == 0 || hour > 24 {
        return None;
    }
    let (minute, next) = minutes(language, tokens, after).filter(|(m, _)| *m > 9).unwrap_or((0, after));
    Some((Clock::of(hour, minute)?, next))
}

/// "ein Uhr", and "7.30 Uhr" whose point is no decimal mark.
fn hour_word(tokens: &[Token], at: usize) -> Option<(u64, usize)> {
    if word(tokens, at, "ein") && word(tokens, at + 1, "uhr") {
        return Some((1, at + 1));
    }
    plain(Language::De, tokens, at)
}

/// Minutes as Romance languages say them after the hour: "y media", "et quart", "menos cuarto", "e meia", "30".
fn romance_minutes(language: Language, tokens: &[Token], at: usize, hour: u64) -> Option<(Clock, usize)> {
    let (and, less, half, quarter) = match language {
        Language::Fr => ("et", "moins", "demi|demie", "quart"),
        Language::Pt => ("e", "menos", "meia", "quarto"),
        Language::En | Language::De | Language::Es | Language::Ja | Language::Hi => {
            ("y|con", "menos", "media", "cuarto")
        }
    };
    if word(tokens, at, less) {
        let article = at + 1 + usize::from(word(tokens, at + 1, "le|um|un"));
        if word(tokens, article, quarter) {
            return Some((Clock::before(hour, 15)?, article + 1));
        }
        let (minute, next) = minutes(language, tokens, article)?;
        return Some((Clock::before(hour, minute)?, next));
    }
    let joined = usize::from(word(tokens, at, and));
    if joined == 1 && word(tokens, at + 1, half) {
        return Some((Clock::of(hour, 30)?, at + 2));
    }
    if joined == 1 && word(tokens, at + 1, quarter) {
        return Some((Clock::of(hour, 15)?, at + 2));
    }
    let after_hours = at > 0 && word(tokens, at - 1, "heure|heures|h") && !tokens.get(at)?.starts_clause;
    let (minute, next) = match minutes_after(language, tokens, at + joined) {
        Some(found) => found,
        None => minutes(language, tokens, at + joined)
            .filter(|_| joined == 1 || after_hours && language == Language::Fr)?,
    };
    Some((Clock::of(hour, minute)?, next))
}

fn spanish(tokens: &[Token], at: usize) -> Found {
    let noon = longest(tokens, at, "mediodia");
    if noon > 0 {
        return Some((Clock { hour: 0, minute: 0, half: Some(Half::Pm) }, at + noon));
    }
    let marked = longest(tokens, at, "a las|a la|las|la");
    let (hour, after) = match plain(Language::Es, tokens, at + marked) {
        Some(found) => found,
        None if marked > 0 && word(tokens, at + marked, "una") => (1, at + marked + 1),
        None => return None,
    };
    if hour > 24 {
        return None;
    }
    if let Some(found) = romance_minutes(Language::Es, tokens, after, hour)
        && (marked > 0 || number(Language::Es, tokens, after).is_none_or(|n| n.next != found.1))
    {
        return Some(found);
    }
    (marked > 0 || word(tokens, after, "horas")).then_some((Clock::of(hour, 0)?, after))
}

fn french(tokens: &[Token], at: usize) -> Found {
    let named = [("midi", Half::Pm), ("minuit", Half::Am)];
    if let Some((_, half)) = named.iter().find(|(name, _)| word(tokens, at, name)) {
        let next = at + 1;
        let clock = romance_minutes(Language::Fr, tokens, next, 12).filter(|_| word(tokens, next, "et"));
        let (clock, next) = clock.unwrap_or((Clock { hour: 0, minute: 0, half: None }, next));
        return Some((Clock { half: Some(*half), ..clock }, next));
    }
    let (hour, after) = match plain(Language::Fr, tokens, at) {
        Some(found) => found,
        None if word(tokens, at, "une") => (1, at + 1),
        None => return None,
    };
    if hour > 24 || !word(tokens, after, "heure|heures|h") {
        return None;
    }
    Some(romance_minutes(Language::Fr, tokens, after + 1, hour).unwrap_or((Clock::of(hour, 0)?, after + 1)))
}

fn portuguese(tokens: &[Token], at: usize) -> Found {
    let noon = longest(tokens, at, "ao meio dia|meio dia");
    if noon > 0 {
        return Some((Clock { hour: 0, minute: 0, half: Some(Half::Pm) }, at + noon));
    }
    let marked = longest(tokens, at, "às|as|à|para as");
    if let Some((minute, next)) = minutes(Language::Pt, tokens, at)
        && longest(tokens, next, "para as|para a|pras|pra") > 0
    {
        let skip = longest(tokens, next, "para as|para a|pras|pra");
        let (hour, end) = plain(Language::Pt, tokens, next + skip)?;
        return Some((Clock::before(hour, minute)?, end));
    }
    let (hour, after) = match plain(Language::Pt, tokens, at + marked) {
        Some(found) => found,
        None if marked > 0 && word(tokens, at + marked, "uma") => (1, at + marked + 1),
        None => return None,
    };
    if hour > 24 {
        return None;
    }
    let hours = usize::from(word(tokens, after, "horas|hora|h"));
    if let Some(found) = romance_minutes(Language::Pt, tokens, after + hours, hour)
        && (marked + hours > 0 || word(tokens, after, "e"))
    {
        return Some(found);
    }
    (marked + hours > 0).then_some((Clock::of(hour, 0)?, after + hours))
}

fn japanese(tokens: &[Token], at: usize) -> Found {
    if longest(tokens, at, "正午") > 0 {
        return Some((Clock { hour: 0, minute: 0, half: Some(Half::Pm) }, at + 2));
    }
    let prefix = longest(tokens, at, "午前|午後|朝|夜|夕方|昼");
    let half = (prefix > 0).then(|| if longest(tokens, at, "午前|朝") > 0 { Half::Am } else { Half::Pm });
    let (hour, after) = plain(Language::Ja, tokens, at + prefix)?;
    if !word(tokens, after, "時") {
        return None;
    }
    let (minute, next) = if word(tokens, after + 1, "半") {
        (30, after + 2)
    } else if let Some((minute, next)) =
        minutes(Language::Ja, tokens, after + 1).filter(|(_, n)| word(tokens, *n, "分"))
    {
        (minute, next + 1)
    } else {
        (0, after + 1)
    };
    let clock = Clock::of(hour, minute)?;
    Some((Clock { half: half.or(clock.half), ..clock }, next))
}

fn hindi(tokens: &[Token], at: usize) -> Found {
    if longest(tokens, at, "डेढ़ बजे") > 0 {
        return Some((Clock::of(1, 30)?, at + 2));
    }
    if longest(tokens, at, "ढाई बजे") > 0 {
        return Some((Clock::of(2, 30)?, at + 2));
    }
    let fractions = [("साढ़े", 30), ("सवा", 15)];
    if let Some((_, minute)) = fractions.iter().find(|(name, _)| word(tokens, at, name)) {
        let (hour, next) = plain(Language::Hi, tokens, at + 1)?;
        return Some((Clock::of(hour, *minute)?, next));
    }
    if word(tokens, at, "पौने") {
        let (hour, next) = plain(Language::Hi, tokens, at + 1)?;
        return Some((Clock::before(hour, 15)?, next));
    }
    let (hour, after) = plain(Language::Hi, tokens, at)?;
    if word(tokens, after, "बजकर") {
        let (minute, next) = minutes(Language::Hi, tokens, after + 1)?;
        return Some((Clock::of(hour, minute)?, next + usize::from(word(tokens, next, "मिनट"))));
    }
    if word(tokens, after, "बजे") {
        return Some((Clock::of(hour, 0)?, after + 1));
    }
    None
}

/// "in the afternoon", "de la tarde": a half of the day, and one past its last token.
pub(super) fn part_of_day(language: Language, tokens: &[Token], at: usize) -> Option<(Half, usize)> {
    let (am, pm) = match language {
        Language::En => (
            "in the morning|morning|this morning|am",
            "in the afternoon|afternoon|this afternoon|in the evening|evening|this evening|at night|tonight|pm|p m",
        ),
        Language::De => (
            "morgens|vormittags|früh|am vormittag|am morgen|vormittag",
            "nachmittags|abends|am nachmittag|am abend|nachmittag|abend|nachts",
        ),
        Language::Es => (
            "de la mañana|por la mañana|de la madrugada",
            "de la tarde|por la tarde|de la noche|por la noche|tarde|noche",
        ),
        Language::Fr => {
            ("du matin|le matin|matin", "de l après midi|l après midi|après midi|du soir|le soir|soir")
        }
        Language::Pt => {
            ("da manhã|de manhã|manhã|da madrugada", "da tarde|à tarde|de tarde|tarde|da noite|à noite|noite")
        }
        Language::Ja => ("午前|朝", "午後|夕方|夜|昼"),
        Language::Hi => ("सुबह|सवेरे", "दोपहर|शाम|रात"),
    };
    let (morning, later) = (longest(tokens, at, am), longest(tokens, at, pm));
    match (morning, later) {
        (0, 0) => None,
        (m, l) if m >= l => Some((Half::Am, at + m)),
        (_, l) => Some((Half::Pm, at + l)),
    }
}

/// Weekdays from Monday, months from January, days counted from today; entries by bars, their names by slashes.
pub(super) fn names(language: Language) -> (&'static str, &'static str, &'static str) {
    match language {
        Language::En => (
            "monday/mondays|tuesday/tuesdays|wednesday/wednesdays|thursday/thursdays|friday/fridays|saturday/saturdays|sunday/sundays",
            "january|february|march|april|may|june|july|august|september|october|november|december",
            "today|tomorrow|day after tomorrow|next week|yesterday|this week|next month|now/right now/immediately|next year|this month|the weekend/weekend",
        ),
        Language::De => (
            "montag|dienstag|mittwoch|donnerstag|freitag|samstag/sonnabend|sonntag",
            "januar/jänner|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember",
            "heute|morgen|übermorgen|nächste woche|gestern|diese woche|nächsten monat|jetzt/sofort|nächstes jahr|wochenende",
        ),
        Language::Es => (
            "lunes|martes|miércoles|jueves|viernes|sábado|domingo",
            "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre/setiembre|octubre|noviembre|diciembre",
            "hoy|mañana|pasado mañana|la próxima semana/la semana que viene|ayer|esta semana|el próximo mes|ahora/ahora mismo/ahorita|el año que viene",
        ),
        Language::Fr => (
            "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche",
            "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre",
            "aujourd hui|demain|après demain|la semaine prochaine|hier|cette semaine|le mois prochain|maintenant/tout de suite|l année prochaine",
        ),
        Language::Pt => (
            "segunda/segunda feira|terça/terça feira|quarta/quarta feira|quinta/quinta feira|sexta/sexta feira|sábado|domingo",
            "janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro",
            "hoje|amanhã|depois de amanhã|semana que vem/próxima semana|ontem|esta semana|mês que vem|agora/agora mesmo|ano que vem",
        ),
        Language::Ja => (
            "月曜日/月曜|火曜日/火曜|水曜日/水曜|木曜日/木曜|金曜日/金曜|土曜日/土曜|日曜日/日曜",
            "1 月|2 月|3 月|4 月|5 月|6 月|7 月|8 月|9 月|10 月|11 月|12 月",
            "今日|明日/あした|明後日/あさって|来週|昨日|今週|来月|今/今すぐ|来年",
        ),
        Language::Hi => (
            "सोमवार|मंगलवार|बुधवार|गुरुवार/बृहस्पतिवार|शुक्रवार|शनिवार|रविवार/इतवार",
            "जनवरी|फरवरी|मार्च|अप्रैल|मई|जून|जुलाई|अगस्त|सितंबर|अक्टूबर|नवंबर|दिसंबर",
            "आज|कल|परसों|अगले हफ्ते|बीता कल|इस हफ्ते|अगले महीने|अभी/अब|अगले साल",
        ),
    }
}
