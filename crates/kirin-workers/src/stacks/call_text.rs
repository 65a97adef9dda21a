//! The text of a call: `name (file:line)`.

use std::path::Path;
use std::sync::Arc;

/// Writes calls as text. File names are shortened if they are below a directory.
pub(crate) struct CallText {
    /// The directory that is left out, with a slash at its end.
    directory: String,
}

impl CallText {
    pub(crate) fn new(directory: Option<&Path>) -> Self {
        let directory = directory.map(|directory| format!("{}/", directory.display()));
        Self { directory: directory.unwrap_or_default() }
    }

    /// Returns the text of a call.
    pub(crate) fn of(&self, name: &str, file: &str, line: u32) -> Arc<str> {
        let file = file.strip_prefix(&self.directory).unwrap_or(file);
        format!("{} ({}:{line})", plain(name), plain(file)).into()
    }
}

/// Replaces what would end a frame of a folded stack, or a line of a log.
pub(crate) fn plain(text: &str) -> String {
    text.replace(|is: char| is == ';' || is.is_control(), "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_below_the_directory_is_relative_to_it() {
        let text = CallText::new(Some(Path::new("/srv/shop")));
        assert_eq!(&*text.of("cart", "/srv/shop/lib/cart.py", 7), "cart (lib/cart.py:7)");
        assert_eq!(&*text.of("cart", "/srv/shopping/cart.py", 7), "cart (/srv/shopping/cart.py:7)");
        let text = CallText::new(None);
        assert_eq!(&*text.of("cart", "/srv/cart.py", 7), "cart (/srv/cart.py:7)");
    }

    #[test]
    fn a_call_is_one_frame_in_one_line() {
        let text = CallText::new(None);
        assert_eq!(&*text.of("a;b", "c\nd\u{85}é", 0), "a?b (c?d?é:0)");
    }
}
