//! Just enough JSON to write a record.

/// An object with these keys; the values are JSON.
pub(crate) fn object(fields: &[(&str, String)]) -> String {
    let fields: Vec<_> = fields.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
    format!("{{{}}}", fields.join(", "))
}

/// A list; the items are JSON.
pub(crate) fn list(items: &[String]) -> String {
    format!("[{}]", items.join(", "))
}

/// A string that needs no escapes.
pub(crate) fn text(plain: &str) -> String {
    format!("\"{plain}\"")
}

/// Seconds, to the microsecond.
pub(crate) fn seconds(seconds: f64) -> String {
    format!("{seconds:.6}")
}

/// Many of them.
pub(crate) fn all_seconds(all: &[f64]) -> String {
    list(&all.iter().map(|one| seconds(*one)).collect::<Vec<_>>())
}
