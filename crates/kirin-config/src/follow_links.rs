//! The `follow_links` key of a route.

use kirin_files::FollowLinks;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `follow_links`: `true`, `false` or `"owner"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowLinksKey(pub FollowLinks);

impl<'de> Deserialize<'de> for FollowLinksKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FollowLinksVisitor)
    }
}

impl Serialize for FollowLinksKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            FollowLinks::Inside => serializer.serialize_bool(false),
            FollowLinks::SameOwner => serializer.serialize_str("owner"),
            FollowLinks::All => serializer.serialize_bool(true),
        }
    }
}

struct FollowLinksVisitor;

impl Visitor<'_> for FollowLinksVisitor {
    type Value = FollowLinksKey;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("true, false or \"owner\"")
    }

    fn visit_bool<E: de::Error>(self, all: bool) -> Result<Self::Value, E> {
        Ok(FollowLinksKey(if all { FollowLinks::All } else { FollowLinks::Inside }))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        match text {
            "owner" => Ok(FollowLinksKey(FollowLinks::SameOwner)),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}
