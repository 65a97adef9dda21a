//! Kirin's extension of the meta commands, in the `P` flag.
//!
//! memcached's protocol.txt promises that every meta command accepts a `P` and an `L` token, and
//! that memcached ignores them. They are hints for proxies between client and server. So these
//! tokens are harmless to any memcached, and memcached will not give the letter another meaning.
//! Any client that can send meta flags can use them.
//!
//! Only the arguments in this table have a meaning. All others are ignored.
//!
//! | token | command | meaning |
//! |---|---|---|
//! | `Ptags=a,b` | `ms` | the item carries the tags `a` and `b` |
//! | `Ptag` | `md` | the key is a tag: every item that carries it is deleted, or with `I` made stale |
//! | `Pprefix` | `md` | the key is a prefix: the same for every item whose key starts with it |

/// The most tags in one command.
pub const TAGS_PER_COMMAND: usize = 16;

/// The longest tag in bytes. It is as long as a key, since a tag may begin with the name of a site.
pub const TAG_LIMIT_BYTES: usize = 250;

/// The meaning of a `P` flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extension<'a> {
    /// It has no meaning for Kirin.
    #[default]
    None,
    /// It has the tags of the item to store.
    Tags(Tags<'a>),
    /// The key is a tag.
    Tag,
    /// The key is a prefix.
    Prefix,
}

/// A comma-separated list of tags. None of them is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tags<'a>(&'a [u8]);

impl<'a> Tags<'a> {
    /// Lists the tags.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|byte| *byte == b',')
    }
}

/// The reason why a list of tags was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtensionError {
    EmptyTag,
    TagTooLong,
    TooManyTags,
}

impl ExtensionError {
    /// Returns the line that the client gets.
    pub(super) fn line(self) -> &'static str {
        match self {
            ExtensionError::EmptyTag => "CLIENT_ERROR empty tag",
            ExtensionError::TagTooLong => "CLIENT_ERROR tag longer than 250 bytes",
            ExtensionError::TooManyTags => "CLIENT_ERROR more than 16 tags",
        }
    }
}

impl<'a> Extension<'a> {
    pub(super) fn parse(argument: &'a [u8]) -> Result<Extension<'a>, ExtensionError> {
        if let Some(list) = argument.strip_prefix(b"tags=") {
            let tags = Tags(list);
            if tags.iter().count() > TAGS_PER_COMMAND {
                return Err(ExtensionError::TooManyTags);
            }
            for tag in tags.iter() {
                if tag.is_empty() {
                    return Err(ExtensionError::EmptyTag);
                }
                if tag.len() > TAG_LIMIT_BYTES {
                    return Err(ExtensionError::TagTooLong);
                }
            }
            return Ok(Extension::Tags(tags));
        }
        Ok(match argument {
            b"tag" => Extension::Tag,
            b"prefix" => Extension::Prefix,
            _ => Extension::None,
        })
    }
}
