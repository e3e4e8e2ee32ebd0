//! What the tests share.

/// A correct experiment without sweep; tests change a line of it or add to it.
#[allow(unreachable_pub)]
pub const GOOD: &str = r#"title = "A test"
[fabric]
topology = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
[workload]
pattern = "all-to-all"
size = "16KB"
[balance]
scheme = "ecmp"
"#;
