pub(crate) fn is_affirmation(_l: &str, words: &str) -> bool {
    matches!(words.trim().trim_end_matches('.').to_lowercase().as_str(), "yes" | "yes please" | "yep")
}
pub(crate) fn is_hold_word(_l: &str, words: &str) -> bool {
    words.contains("hold on")
}
pub(crate) fn is_continuer(_l: &str, words: &str) -> bool {
    words.eq_ignore_ascii_case("mm-hm")
}
pub(crate) fn is_trailing(_l: &str, words: &str) -> bool {
    words.ends_with(" and")
}
