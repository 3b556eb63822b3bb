//! `/rewind N` in a chat: how far back, and what that does not undo.

use sayback_core::{AskedQuestion, Item, Rewind};

/// What `/rewind` with these words behind it asks for.
///
/// # Errors
/// What is wrong with it, for the one who typed it.
pub(crate) fn wanted(argument: &str, items: &[Item]) -> Result<Option<Rewind>, String> {
    if argument.is_empty() {
        return Ok(None);
    }
    let most = items.len();
    let number = argument.chars().all(|c| c.is_ascii_digit());
    match argument.parse::<usize>().ok().filter(|keep| number && *keep <= most) {
        Some(keep) => Ok(Some(Rewind { items: u32::try_from(keep).unwrap_or(u32::MAX) })),
        None if number => {
            Err(format!("there are {most} items, so /rewind takes 0 to {most}; nothing was taken back"))
        }
        None => Err(format!(
            "{argument:?} is no number; /rewind takes 0 to {most}, and /rewind alone lists the items"
        )),
    }
}

/// The items with their numbers.
pub(crate) fn listed(items: &[Item]) -> Vec<String> {
    items
        .iter()
        .enumerate()
        .map(|(index, item)| format!("{:>3} {}", index + 1, super::conversations::summary(item)))
        .collect()
}

/// What ran on a yes that would be taken back: it is not undone, and does not run again by itself (VC-75).
pub(crate) fn not_taken_back(to: Rewind, asked: &[AskedQuestion]) -> Vec<String> {
    let mut lines = Vec::new();
    for AskedQuestion { question, ran, .. } in asked {
        let Some(ran) = ran.as_ref().filter(|ran| ran.item >= to.items) else { continue };
        let line =
            format!("not taken back: {} ran on {:?}, for: {}", question.tool.name, ran.by, question.question);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<Item> {
        vec![
            Item::Caller { text: "hello".to_owned() },
            Item::Agent { text: "Hi.".to_owned(), complete: true },
        ]
    }

    #[test]
    fn a_number_within_the_conversation_is_taken_and_nothing_else() {
        assert_eq!(wanted("", &items()), Ok(None));
        assert_eq!(wanted("0", &items()), Ok(Some(Rewind { items: 0 })));
        assert_eq!(wanted("2", &items()), Ok(Some(Rewind { items: 2 })));
        for too_far in ["3", "4294967295", "4294967296", "99999999999999999999999"] {
            let said = wanted(too_far, &items()).unwrap_err();
            assert!(said.contains("0 to 2") && said.contains("nothing was taken back"), "{said}");
        }
        for nonsense in ["-1", "+1", "1.5", "one", "1 2", "0x1", "١"] {
            let said = wanted(nonsense, &items()).unwrap_err();
            assert!(said.contains("is no number"), "{said}");
        }
    }
}
