//! A site whose page includes itself wherever it can, which is the worst case. The targets for
//! includes share it.

use std::sync::Arc;

use bytes::Bytes;
use kirin_ssi::{
    FoundItem, RenderProgress, RenderSource, Rendering, Requested, Requesting, Scope, Syntax,
    Template, Zone,
};

struct Itself {
    page: Arc<Template>,
    requested: usize,
    /// Every other item is not known when it is first asked for.
    asked: usize,
}

impl RenderSource for Itself {
    fn item(&mut self, key: &[u8]) -> FoundItem {
        self.asked += 1;
        match key {
            _ if self.asked % 3 == 0 => FoundItem::Unknown,
            b"gone" => FoundItem::Missing,
            _ => FoundItem::Template(Arc::clone(&self.page)),
        }
    }

    fn variable(&mut self, name: &str) -> Option<Bytes> {
        (name.len() % 2 == 0).then(|| Bytes::copy_from_slice(name.as_bytes()))
    }

    fn date(&mut self, _: Zone, format: &str) -> Bytes {
        Bytes::copy_from_slice(format.as_bytes())
    }

    fn request(&mut self, include: Requesting<'_>, _: &Scope, id: usize) -> Requested {
        match include.name.len() % 4 {
            0 if include.alternate.is_none() => Requested::Failed,
            1 => Requested::Template(Arc::clone(&self.page)),
            _ => {
                self.requested = id + 1;
                Requested::Pending
            }
        }
    }
}

/// Compiles and renders `page`. Every other request fails. The page must end, and all of it must be
/// returned.
pub fn render(page: &[u8], syntax: Syntax) {
    let bytes = page.len();
    let page = Arc::new(Template::compile(&Bytes::copy_from_slice(page), syntax));
    let mut source = Itself { page: Arc::clone(&page), requested: 0, asked: 0 };
    let mut rendering = Rendering::new(page);
    let answer = |id: usize| (id % 2 == 0).then(|| vec![Bytes::from_static(b"answer")]);
    loop {
        match rendering.run(&mut source) {
            RenderProgress::Done => break,
            RenderProgress::Unknown => assert!(rendering.keys_ahead().count() <= bytes),
            RenderProgress::Wait(id) => {
                let _ = rendering.take_ready();
                rendering.fill(id, answer(id));
            }
        }
    }
    for id in 0..source.requested {
        rendering.fill(id, answer(id));
    }
    assert!(rendering.is_settled_whole());
    let _ = rendering.take_ready();
    assert!(rendering.take_ready().is_empty());
}
