//! Rendering: from a compiled page to the pieces that are sent.

use crate::template::{Part, Template};
use bytes::Bytes;
use std::sync::Arc;

/// Includes inside includes, at most. A cycle ends here too.
pub const MAX_DEPTH: usize = 16;

/// Includes in one page with all that it includes, at most: a few items that include each other twice must not
/// make an endless page.
const MAX_INCLUDES: usize = 4096;

/// Says what a key holds.
pub trait Source {
    /// The compiled content under `key`.
    fn template(&mut self, key: &[u8]) -> Option<Arc<Template>>;
}

/// What rendering came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Rendered {
    /// Everything was there.
    Whole(Vec<Bytes>),
    /// The page names a key that holds nothing; the page as it is without it, and the first such key.
    Missing(Vec<Bytes>, Bytes),
    /// The page includes itself, too deep or too much; the page as it is without, and the key where it was cut.
    Cut(Vec<Bytes>, Bytes),
}

/// Fills `template` from `source`.
pub fn render(template: &Template, source: &mut impl Source) -> Rendered {
    let mut rendering = Rendering { pieces: Vec::new(), includes: 0, missing: None, cut: None };
    rendering.fill(template, source, 0);
    match (rendering.cut, rendering.missing) {
        (Some(key), _) => Rendered::Cut(rendering.pieces, key),
        (None, Some(key)) => Rendered::Missing(rendering.pieces, key),
        (None, None) => Rendered::Whole(rendering.pieces),
    }
}

struct Rendering {
    pieces: Vec<Bytes>,
    includes: usize,
    missing: Option<Bytes>,
    cut: Option<Bytes>,
}

impl Rendering {
    fn fill(&mut self, template: &Template, source: &mut impl Source, depth: usize) {
        for part in template.parts() {
            match part {
                Part::Literal(bytes) => self.pieces.push(bytes.clone()),
                Part::Include(key) => self.include(key, source, depth + 1),
            }
        }
    }

    fn include(&mut self, key: &Bytes, source: &mut impl Source, depth: usize) {
        self.includes += 1;
        if depth > MAX_DEPTH || self.includes > MAX_INCLUDES {
            self.cut.get_or_insert_with(|| key.clone());
            return;
        }
        match source.template(key) {
            Some(template) => self.fill(&template, source, depth),
            None => {
                self.missing.get_or_insert_with(|| key.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    struct Items(HashMap<&'static str, &'static str>);

    impl Source for Items {
        fn template(&mut self, key: &[u8]) -> Option<Arc<Template>> {
            let page = self.0.get(std::str::from_utf8(key).unwrap())?;
            Some(Arc::new(Template::compile(&Bytes::from_static(page.as_bytes()))))
        }
    }

    fn render_page(page: &'static str, items: &[(&'static str, &'static str)]) -> (String, Rendered) {
        let template = Template::compile(&Bytes::from_static(page.as_bytes()));
        let rendered = render(&template, &mut Items(items.iter().copied().collect()));
        let (Rendered::Whole(pieces) | Rendered::Missing(pieces, _) | Rendered::Cut(pieces, _)) = &rendered;
        (String::from_utf8(pieces.concat()).unwrap(), rendered)
    }

    #[test]
    fn includes_are_filled_also_inside_includes() {
        let (page, rendered) =
            render_page("<!--# include a -->!", &[("a", "hello <!--# include b -->"), ("b", "world")]);
        assert_eq!(page, "hello world!");
        assert!(matches!(rendered, Rendered::Whole(_)));
    }

    #[test]
    fn a_missing_key_is_named() {
        let (page, rendered) = render_page("a<!--# include gone -->b", &[]);
        assert_eq!(page, "ab");
        assert!(matches!(rendered, Rendered::Missing(_, key) if key == "gone"));
    }

    #[test]
    fn a_cycle_is_cut_and_the_page_goes_on() {
        let (page, rendered) = render_page("<!--# include a -->end", &[("a", "x<!--# include a -->")]);
        assert_eq!(page, "x".repeat(MAX_DEPTH) + "end");
        assert!(matches!(rendered, Rendered::Cut(..)));
    }

    #[test]
    fn doubling_includes_do_not_explode() {
        let (page, rendered) =
            render_page("<!--# include a -->", &[("a", "x<!--# include a --><!--# include a -->")]);
        assert!(page.len() <= MAX_INCLUDES);
        assert!(matches!(rendered, Rendered::Cut(..)));
    }
}
