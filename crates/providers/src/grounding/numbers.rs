//! Words for numbers in English, German, Spanish and French.

/// What a word adds to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// 0 to 9.
    Unit(u64),
    /// 10 to 19, and whole numbers below 100 in one word: nothing follows them.
    Teen(u64),
    /// 20, 30, … 90: a unit may follow.
    Ten(u64),
    /// Two digits or more in one word, from languages that join them.
    Whole(u64),
    /// 100, 1,000, 1,000,000.
    Times(u64),
}

/// Words by value, folded to plain letters. Articles (`a`, `un`, `ein`) are left out: they are everywhere.
const WORDS: &[(u64, &str)] = &[
    (0, "zero null nul cero zero nought"),
    (1, "one first single alone myself eins erste ersten erster uno primero premier"),
    (2, "two second couple pair both twice zwei zwo zweite zweiten dos deux segundo deuxieme"),
    (3, "three third drei dritte dritten tres trois tercero troisieme"),
    (4, "four fourth vier vierte vierten cuatro quatre"),
    (5, "five fifth funf fuenf funfte funften cinco cinq"),
    (6, "six sixth sechs sechste sechsten seis"),
    (7, "seven seventh sieben siebte siebten siete sept"),
    (8, "eight eighth acht achte achten ocho huit"),
    (9, "nine ninth neun neunte neunten nueve neuf"),
    (10, "ten tenth zehn zehnte zehnten diez dix"),
    (11, "eleven eleventh elf elfte elften onze"),
    (12, "twelve twelfth dozen zwolf zwoelf zwolfte zwolften dutzend doce docena douze"),
    (13, "thirteen thirteenth dreizehn trece treize"),
    (14, "fourteen fourteenth vierzehn catorce quatorze"),
    (15, "fifteen fifteenth funfzehn fuenfzehn quince quinze"),
    (16, "sixteen sixteenth sechzehn dieciseis seize"),
    (17, "seventeen seventeenth siebzehn diecisiete"),
    (18, "eighteen eighteenth achtzehn dieciocho"),
    (19, "nineteen nineteenth neunzehn diecinueve"),
    (20, "twenty twentieth zwanzig zwanzigste zwanzigsten veinte vingt"),
    (30, "thirty thirtieth dreissig dreissigste dreissigsten treinta trente"),
    (40, "forty fortieth fourty vierzig cuarenta quarante"),
    (50, "fifty fiftieth funfzig fuenfzig cincuenta cinquante"),
    (60, "sixty sixtieth sechzig sesenta soixante"),
    (70, "seventy seventieth siebzig setenta septante"),
    (80, "eighty eightieth achtzig ochenta huitante"),
    (90, "ninety ninetieth neunzig noventa nonante"),
    (100, "hundred hundredth hundert cien ciento cent cents"),
    (1_000, "thousand thousandth tausend mil mille"),
    (1_000_000, "million millions millionen millon millones"),
];

/// The part of a number that a word stands for.
pub(super) fn part(word: &str) -> Option<Part> {
    // No word for a number is longer; a longer text is no word.
    if word.len() > 64 {
        return None;
    }
    plain(word).or_else(|| german(word).map(Part::Whole))
}

fn plain(word: &str) -> Option<Part> {
    let (value, _) = WORDS.iter().find(|(_, words)| words.split(' ').any(|known| known == word))?;
    Some(match *value {
        value @ 0..=9 => Part::Unit(value),
        value @ 10..=19 => Part::Teen(value),
        value @ 20..=90 => Part::Ten(value),
        value => Part::Times(value),
    })
}

fn value(word: &str) -> Option<u64> {
    match plain(word)? {
        Part::Unit(value)
        | Part::Teen(value)
        | Part::Ten(value)
        | Part::Whole(value)
        | Part::Times(value) => Some(value),
    }
}

/// German joins its numbers into one word: `zweihundertfünfundzwanzig`.
fn german(word: &str) -> Option<u64> {
    for (times, factor) in [("tausend", 1_000), ("hundert", 100)] {
        if let Some((many, rest)) = word.split_once(times) {
            let many = if many.is_empty() { 1 } else { german_below(many)? };
            let rest = rest.strip_prefix("und").unwrap_or(rest);
            let rest = if rest.is_empty() { 0 } else { german(rest).or_else(|| german_below(rest))? };
            return many.checked_mul(factor)?.checked_add(rest);
        }
    }
    if word.contains("und") { german_below(word) } else { None }
}

/// Below 100.
fn german_below(word: &str) -> Option<u64> {
    if matches!(word, "ein" | "eine") {
        return Some(1);
    }
    if let Some((unit, ten)) = word.split_once("und") {
        let unit = if unit == "ein" { 1 } else { value(unit).filter(|unit| (1..10).contains(unit))? };
        return Some(unit + value(ten).filter(|ten| (20..100).contains(ten))?);
    }
    value(word)
}

/// Reads the longest number at the beginning of `parts`: its value, and how many parts it takes.
pub(super) fn longest(parts: &[Part]) -> Option<(u64, usize)> {
    let (mut total, mut current, mut room) = (0_u64, 0_u64, u64::MAX);
    let mut taken = 0;
    for part in parts {
        // `room` is what may still follow: below 10 after a ten, below 100 after a hundred, nothing after a unit.
        (total, current, room) = match *part {
            Part::Unit(unit) if taken == 0 || (room >= 10 && unit > 0) => (total, current + unit, 1),
            Part::Teen(teen) if taken == 0 || room >= 100 => (total, current + teen, 1),
            Part::Ten(ten) if taken == 0 || room >= 100 => (total, current + ten, 10),
            Part::Whole(whole) if taken == 0 => (total, whole, 1),
            Part::Times(100) if current < 100 && (taken == 0 || current > 0) => {
                (total, current.max(1) * 100, 100)
            }
            Part::Times(times) if times > 100 && (taken == 0 || (current > 0 && current < 1000)) => {
                (total.checked_add(current.max(1).checked_mul(times)?)?, 0, 1000)
            }
            Part::Unit(_) | Part::Teen(_) | Part::Ten(_) | Part::Whole(_) | Part::Times(_) => break,
        };
        taken += 1;
    }
    (taken > 0).then_some((total + current, taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Option<(u64, usize)> {
        longest(&words.split(' ').map_while(part).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        for (words, expected) in [
            ("seven", (7, 1)),
            ("twenty six", (26, 2)),
            ("twenty twenty six", (20, 1)),
            ("nineteen eighty four", (19, 1)),
            ("five five five", (5, 1)),
            ("two hundred fifty", (250, 3)),
            ("thousand two hundred", (1200, 3)),
            ("twelve hundred", (1200, 2)),
            ("three million two hundred thousand five", (3_200_005, 6)),
            ("twenty zero", (20, 1)),
        ] {
            assert_eq!(read(words), Some(expected), "{words}");
        }
        assert_eq!(read("hello"), None);
    }

    #[test]
    fn german_numbers_are_one_word() {
        for (word, expected) in [
            ("einundzwanzig", 21),
            ("zweihundertfunfzig", 250),
            ("dreitausendvierhundertsiebenundachtzig", 3487),
            ("hunderteins", 101),
            ("tausendundeins", 1001),
        ] {
            assert_eq!(part(word), Some(Part::Whole(expected)), "{word}");
        }
        for word in ["hund", "undine", "wunder", "bundestag", "hundertmal", &"hundert".repeat(50)] {
            assert_eq!(part(word), None, "{word}");
        }
    }

    #[test]
    fn the_largest_numbers_overflow_nothing() {
        let words = vec![Part::Times(1_000_000); 40];
        assert!(longest(&words).is_some());
    }
}
