//! Compiled pages of files and applications, so that a page is not compiled for each request. Pages
//! of the store have theirs beside the item.

use std::collections::HashMap;
use std::sync::Arc;

use kirin_ssi::Template;

/// The memory of the templates of one loop, in bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The result of compiling a body: a template and the digest of the body, or nothing if there are
/// no directives.
pub type Compiled = Option<(Arc<Template>, u128)>;

/// The templates of one loop, by a digest that identifies a body. When half of the memory is taken,
/// templates that have not been used since the last time are dropped.
#[derive(Default)]
pub struct Templates {
    young: HashMap<u128, (Compiled, usize)>,
    old: HashMap<u128, (Compiled, usize)>,
    young_bytes: usize,
}

impl Templates {
    /// Returns what is known of the body with this digest.
    pub fn get(&mut self, of: u128) -> Option<Compiled> {
        if let Some((compiled, _)) = self.young.get(&of) {
            return Some(compiled.clone());
        }
        let (compiled, bytes) = self.old.remove(&of)?;
        self.put(of, compiled.clone(), bytes);
        Some(compiled)
    }

    /// Adds a template. `bytes` is the memory that it holds.
    pub fn put(&mut self, of: u128, compiled: Compiled, bytes: usize) {
        let bytes = bytes + 64;
        if bytes > MAX_BYTES / 2 {
            return;
        }
        if self.young_bytes + bytes > MAX_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        self.young.insert(of, (compiled, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_templates_stay_and_memory_is_bounded() {
        let mut templates = Templates::default();
        let compiled = |digest| Some((Arc::new(Template::default()), digest));
        templates.put(0, compiled(7), 100);
        assert!(templates.get(1).is_none());
        for of in 1..1000 {
            templates.put(of, None, MAX_BYTES / 100);
            assert_eq!(templates.get(0).unwrap().unwrap().1, 7);
            assert!(templates.young.len() + templates.old.len() <= 102);
        }
        assert!(templates.get(1).is_none() && templates.get(999).is_some());
        templates.put(1000, None, MAX_BYTES);
        assert!(templates.get(1000).is_none());
    }
}
