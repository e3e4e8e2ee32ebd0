//! Tables whose order counts.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// Names and values, in an order that JSON keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InOrder<V>(pub Vec<(String, V)>);

impl<V> Default for InOrder<V> {
    fn default() -> InOrder<V> {
        InOrder(Vec::new())
    }
}

impl<V: Serialize> Serialize for InOrder<V> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for InOrder<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<InOrder<V>, D::Error> {
        struct Entries<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
            type Value = InOrder<V>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a table")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<InOrder<V>, M::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(InOrder(all))
            }
        }
        from.deserialize_map(Entries(PhantomData))
    }
}
