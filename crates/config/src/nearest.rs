//! The known name that somebody may have meant.

/// The name most like `text`, if any is like it at all: a few letters differ, or the first word of the
/// name was left out (`dctcp_gain`).
pub fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_lowercase();
    let lacks_word =
        |name: &str| name.strip_suffix(text.as_str()).is_some_and(|word| word.ends_with('_'));
    names
        .map(|name| match lacks_word(name) {
            true => (1, name),
            false => (strsim::damerau_levenshtein(&text, name), name),
        })
        .min()
        .filter(|(distance, name)| *distance <= (name.len().max(text.len()) / 2).min(4))
        .map(|(_, name)| name)
}
