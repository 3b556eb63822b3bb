//! What a yes names beside its values: details, deeds and recipients, which must be those that the question has.

use alloc::vec::Vec;

use super::grammar::{Item, Kind};
use super::lexicon::{Class, Language};
use super::order::INDEFINITE;
use super::text::{Token, is_ideograph, is_one_of, longest, matches};
use super::value::{Value, spans};

/// A kind of value in a question. A word for a detail may point to it, so that it need not be in the question itself:
/// "that's my email" to a question that has an address.
type Test = fn(&Value) -> bool;

/// Kinds of values and the words that point to them.
const POINTERS: &[(Test, &str)] = &[
    (is_number, NUMBERS),
    (is_day, DAYS),
    (is_time, TIMES),
    (is_sum, SUMS),
    (|value| is_day(value) || is_time(value), MEETINGS),
];

const NUMBERS: &str = "number|phone|phone number|code|plate|card|account|nummer|telefonnummer|karte|konto|número|\
    teléfono|telefone|código|tarjeta|cuenta|cartão|conta|téléphone|numéro|carte|compte|番号|電話番号|カード|口座|नंबर|\
    फोन नंबर|कार्ड|खाता";
const DAYS: &str = "date|day|datum|tag|fecha|día|data|dia|jour|日付|日時|तारीख|दिन";
const TIMES: &str = "time|zeit|uhrzeit|hora|heure|時間|日時|समय";
const SUMS: &str = "amount|money|price|total|payment|transfer|betrag|geld|preis|summe|zahlung|überweisung|importe|\
    dinero|precio|pago|transferencia|montant|argent|prix|paiement|virement|valor|dinheiro|preço|pagamento|\
    transferência|金額|料金|支払い|送金|राशि|पैसे|पैसा|कीमत|भुगतान";
const MEETINGS: &str = "appointment|booking|reservation|termin|buchung|reservierung|cita|reserva|rendez vous|\
    réservation|consulta|予約|अपॉइंटमेंट|बुकिंग";
const ADDRESSES: &str =
    "email|e mail|mail|address|adresse|correo|dirección|endereço|メール|メールアドレス|住所|ईमेल|पता";
const NAMES: &str = "name|nombre|nom|nome|名前|नाम";
/// Words for the whole of it.
const WHOLE: &str = "detail|details";

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Figures { figures, .. } if figures.len() >= 3)
        || matches!(value, Value::Letters(_))
}

fn is_day(value: &Value) -> bool {
    matches!(value, Value::Weekday(_) | Value::Month(_) | Value::Ordinal(_) | Value::Relative(_))
}

fn is_time(value: &Value) -> bool {
    matches!(value, Value::Time(_) | Value::Part(_))
}

fn is_sum(value: &Value) -> bool {
    matches!(value, Value::Money { .. })
}

/// Whether the detail `item` of the reply is one that the question, or the input, has in some form.
pub(super) fn is_asked(language: Language, asked: &[Token], reply: &[Token], item: &Item) -> bool {
    let words = &reply[item.start..item.end];
    let in_list = |list: &str| longest(words, 0, list) == words.len();
    let new = item.start > 0 && is_one_of(&reply[item.start - 1].text, INDEFINITE);
    let named = (0..asked.len()).any(|at| {
        let same = |(i, said): (usize, &Token)| {
            asked.get(at + i).is_some_and(|t| {
                t.text == said.text
                    || super::veto::is_inflected(&t.text, &said.text)
                    || said.text.len() > 3 && t.text.ends_with(said.text.as_str())
            })
        };
        words.iter().enumerate().all(same)
    });
    if named || in_list(WHOLE) {
        return true;
    }
    if new && !matches!(language, Language::Ja | Language::Hi) {
        return false;
    }
    let values = spans(language, asked);
    let has = |test: fn(&Value) -> bool| values.iter().any(|span| span.readings.iter().flatten().any(test));
    let written =
        asked.iter().any(|t| t.text.contains('@') || is_one_of(&t.text, "at|arroba|arobase|dot|punkt"));
    let name = asked.iter().any(|t| t.capital) || matches!(language, Language::Ja | Language::Hi);
    POINTERS.iter().any(|(test, list)| in_list(list) && has(*test))
        || in_list(ADDRESSES) && (written || has(|v| matches!(v, Value::Figures { .. })))
        || in_list(NAMES) && name
}

/// "Yes, the email": a detail and nothing said of it is a yes to that alone, if it is one of several.
///
/// Not if it is the object of something that is told or confirmed ("make the booking", "I confirm the transfer"), nor
/// if the words before it are those of the question ("from my account").
pub(super) fn is_partial(language: Language, items: &[Item], asked: &[Token], reply: &[Token]) -> bool {
    let points = match language {
        Language::En => "that|this|it|these|those|make|do|confirm",
        Language::De => "dies|es|so|ist|sind",
        Language::Es => "eso|es|ese|esa|son|está",
        Language::Fr => "c|ça|cela|ce|est|sont",
        Language::Pt => "é|isso|esse|essa|está|são",
        Language::Ja => "す|合",
        Language::Hi => "है|हैं|यह|ये|यही|वाला|वाली",
    };
    let details: Vec<&Item> = items.iter().filter(|item| item.class() == Some(Class::Detail)).collect();
    let shared = "from|for|with|under|by|von|für|mit|unter|de|con|para|avec|pour|com";
    let placed = |t: &Token| is_one_of(&t.text, shared) && asked.iter().any(|other| other.text == t.text);
    let one = details.len() == 1 && !reply.iter().any(|t| is_one_of(&t.text, points) || placed(t));
    let Some(detail) = details.first() else { return false };
    // "stimmt" behind "das Datum" is said of that, not of everything.
    let affirms = items.iter().filter(|item| {
        let of_it = item.start >= detail.end && !reply[item.start].starts_clause;
        matches!(item.class(), Some(Class::Yes | Class::Grant | Class::Weak)) && !of_it
    });
    let plain = |item: &Item| {
        matches!(item.class(), Some(Class::Yes | Class::Neutral | Class::Detail))
            && !matches!(item.kind, Kind::Value(_))
    };
    let tag = &asked[asked.len().saturating_sub(5)..];
    let itself = (0..tag.len()).any(|at| tag[at].text == reply[detail.start].text);
    let whole = items.iter().any(|item| longest(reply, item.start, WHOLE) > 0);
    one && !whole && !itself && affirms.count() == 1 && items.iter().all(plain)
}

/// What is to be done, by the beginnings of words for it; those of one row are forms of one deed.
const DEEDS: &[&str] = &[
    "book|reserv|schedul|buch|agend|marque|marcar|予約|बुक",
    "send|sende|schick|envi|envoy|mande|mandar|送|振り込|振込|भेज|transf|wire|überweis|virer|vire|virez|pay|zahl|pague|pagar|págue|\
     charge|debit|cobr|送金",
    "order|buy|bestell|kauf|compr|command|achet|encomend|注文",
    "refund|erstatt|reembols|rembours|返金",
    "cancel|delet|stornier|absag|lösch|annul|supprim|anul|elimin|apag|キャンセル|取り消|रद्द|कैंसिल",
    "move|reschedul|verschieb|verleg|déplac|変更",
];

pub(super) fn deed(tokens: &[Token], at: usize) -> Option<usize> {
    let begins = |stem: &str| {
        if stem.chars().next().is_some_and(is_ideograph) {
            return matches(tokens, at, stem) > 0;
        }
        let folded = super::text::fold_text(stem);
        tokens[at].text.starts_with(folded.as_str())
    };
    // The longest beginning decides: "reschedule" is no "schedule", and 送金 is no other 送.
    let best = |row: &&str| row.split('|').filter(|stem| begins(stem)).map(str::len).max().unwrap_or(0);
    let (row, len) = DEEDS.iter().map(best).enumerate().max_by_key(|(_, len)| *len)?;
    (len > 0).then_some(row)
}

/// The row of [`DEEDS`] that undoes something.
pub(super) const UNDOING: usize = 4;

/// A word that gives a value or a name a part that the question does not give it: "by three", "from Bob".
pub(super) fn bounds(language: Language, items: &[Item], asked: &[Token], reply: &[Token]) -> Option<usize> {
    let words = match language {
        Language::En => "by|from|until|with|as",
        Language::De => "von|vom|ab|bis|gegen|nach",
        Language::Es => "desde|hasta|hacia|sobre",
        Language::Fr => "dès|depuis|vers|jusqu|jusque|sans",
        Language::Pt => "desde|até|partir",
        Language::Ja => "から|まで|より|頃|ごろ|以降",
        Language::Hi => "तक|से",
    };
    let counts = |item: &&Item| match item.class() {
        Some(class) => class == Class::Neutral && item.end == item.start + 1,
        None => true,
    };
    items.iter().filter(counts).flat_map(|item| item.start..item.end).find(|at| {
        let len = longest(reply, *at, words);
        let said = &reply[*at..*at + len];
        let known = asked.windows(len.max(1)).any(|w| w.iter().zip(said).all(|(a, b)| a.text == b.text));
        let aside = reply.get(at + len).is_none_or(|t| is_one_of(&t.text, "that|this|it|dem|mir|mich"));
        let inside = matches!(language, Language::Ja | Language::Hi) || !aside;
        len > 0 && !known && inside
    })
}

/// Words after which something must follow: a reply that ends in one is cut off.
pub(super) fn is_cut_off(language: Language, last: &Token) -> bool {
    let words = match language {
        Language::En => "the|a|an|to|of|in|on|at|for|with|from|by|my|your|our|under",
        Language::De => "den|dem|ein|eine|für|mit|von|vom|um|im|zum|zur|mein|meine",
        Language::Es => "el|la|los|un|una|de|del|a|en|con|por|para|mi",
        Language::Fr => "le|la|les|un|une|de|du|des|à|au|pour|avec|sur|mon|ma",
        Language::Pt => "o|a|os|as|um|uma|de|do|da|em|no|na|com|por|para|meu|minha",
        Language::Ja | Language::Hi => "",
    };
    is_one_of(&last.text, words)
}

/// The sentences of a question that ask, if what is to be done is in them; else all of it. What is said beside them ("You
/// can cancel until Friday.") is not what a yes is to.
pub(super) fn asking(question: &str, whole: &[Token]) -> Vec<Token> {
    let ends = |c: char| matches!(c, '.' | '!' | '?' | '。' | '？' | '！');
    let asks = question.split_inclusive(ends).filter(|sentence| sentence.ends_with(['?', '？']));
    let tokens: Vec<Token> = asks.flat_map(super::text::tokens).collect();
    if (0..tokens.len()).any(|at| deed(&tokens, at).is_some()) { tokens } else { whole.to_vec() }
}

/// "I send it myself": the caller takes the deed over, where the verb is that of the question because we ask in the first
/// person too. Where the words stand.
pub(super) fn is_callers_own(language: Language, asked: &[Token], reply: &[Token]) -> Option<(usize, usize)> {
    let own = match language {
        Language::Es => "yo",
        Language::Pt => "eu",
        Language::En | Language::De | Language::Fr | Language::Ja | Language::Hi => return None,
    };
    let said = |at: &usize| deed(reply, *at).is_some() && asked.iter().any(|t| t.text == reply[*at].text);
    let who = reply.iter().position(|t| is_one_of(&t.text, own))?;
    let verb = (0..reply.len()).find(said)?;
    Some((who.min(verb), who.max(verb) + 1))
}

/// Whether the grant `item` tells us to do something else than what the question is about ("book it" where cancelling
/// was asked). Where the question names no deed, any may be meant.
pub(super) fn is_other_deed(asked: &[Token], reply: &[Token], item: &Item) -> bool {
    let Some(told) = (item.start..item.end).find_map(|at| deed(reply, at)) else { return false };
    let mut named = (0..asked.len()).filter_map(|at| deed(asked, at)).peekable();
    named.peek().is_some() && !named.any(|row| row == told)
}

/// "Send it to me" where the question names somebody else: where the words stand.
pub(super) fn other_recipient(
    language: Language,
    asked: &[Token],
    reply: &[Token],
) -> Option<(usize, usize)> {
    let (to, selves) = match language {
        Language::En => ("to", "to me|to us|to myself"),
        Language::De => ("an", "an mich|an uns"),
        Language::Es => ("a", "a mí mismo|a nosotros|para mí"),
        Language::Fr => ("à", "à moi|à nous|à moi même"),
        Language::Pt => ("para", "para mim|pra mim|para nós"),
        Language::Ja => ("様に", "私に|わたしに|自分に"),
        Language::Hi => ("को", "मुझे|मुझको|हमें"),
    };
    let named = |at: usize| {
        let len = matches(asked, at, to);
        let name = asked.get(at + len).is_some_and(|t| t.capital);
        len > 0 && (name || matches!(language, Language::Ja | Language::Hi))
    };
    let own = "you|your|ihnen|ihr|ihre|usted|su|sus|vous|votre|vos|você|seu|sua|आपको|お客様に";
    let to_caller = |at: usize| {
        let len = matches(asked, at, to);
        len > 0 && longest(asked, at + len, own) > 0 || longest(asked, at, "आपको|お客様に") > 0
    };
    if (0..asked.len()).any(to_caller) || !(0..asked.len()).any(named) {
        return None;
    }
    (0..reply.len()).map(|at| (at, at + longest(reply, at, selves))).find(|(at, end)| end > at)
}
