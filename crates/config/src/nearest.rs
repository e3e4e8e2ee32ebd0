//! The known name that somebody may have meant.

/// Words that others use for what is called otherwise here.
const CALLED: [(&str, &str); 10] = [
    ("hosts", "ranks"),
    ("hosts", "k"),
    ("nodes", "ranks"),
    ("gpus", "ranks"),
    ("bandwidth", "link"),
    ("speed", "link"),
    ("rate", "link"),
    ("latency", "delay"),
    ("bytes", "size"),
    ("oversubscribed", "oversubscription"),
];
/// Of words that are shorter than this too many names have a part.
const SHORTEST_PART: usize = 4;

/// The name most like `text`, if any is like it at all: a few letters differ, the first word of the
/// name was left out (`dctcp_gain`), the text is a part of the name (`flowlet`), or others call it so.
pub fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let text = text.to_lowercase();
    let lacks_word =
        |name: &str| name.strip_suffix(text.as_str()).is_some_and(|word| word.ends_with('_'));
    let distance = |name: &str| match lacks_word(name) {
        true => 1,
        false => strsim::damerau_levenshtein(&text, name),
    };
    let typo = names
        .clone()
        .map(|name| (distance(name), name))
        .min()
        .filter(|(distance, name)| *distance <= (name.len().max(text.len()) / 2).min(4));
    let called = CALLED.iter().filter(|(other, _)| *other == text).map(|(_, name)| *name);
    let called = called.filter_map(|called| names.clone().find(|name| *name == called)).next();
    let has_part = |name: &&str| text.len() >= SHORTEST_PART && name.contains(text.as_str());
    let part = names.clone().filter(has_part).min_by_key(|name| !name.starts_with(text.as_str()));
    // One or two letters that differ are a slip, more of them another word.
    match typo {
        Some((0..=1, name)) => Some(name),
        Some((2, name)) => called.or(Some(name)),
        other => called.or(part).or(other.map(|(_, name)| name)),
    }
}
