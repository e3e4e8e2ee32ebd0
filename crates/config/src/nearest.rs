//! The known name that somebody may have meant.

/// The name most like `text`, if any is like it at all.
pub fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_lowercase();
    names
        .map(|name| (strsim::damerau_levenshtein(&text, name), name))
        .min()
        .filter(|(distance, name)| *distance <= (name.len().max(text.len()) / 2).min(4))
        .map(|(_, name)| name)
}
