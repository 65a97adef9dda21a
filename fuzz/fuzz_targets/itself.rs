//! A site whose page includes itself wherever it can, which is the worst case. The targets for
//! includes share it.

use std::sync::Arc;

use bytes::Bytes;
use kirin_ssi::{
    RenderProgress, Rendering, Requested, Requesting, Scope, RenderSource, Syntax, Template, Zone,
};

struct Itself {
    page: Arc<Template>,
    requested: usize,
}

impl RenderSource for Itself {
    fn item(&mut self, key: &[u8]) -> Option<Arc<Template>> {
        (key != b"gone").then(|| Arc::clone(&self.page))
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
    let page = Arc::new(Template::compile(&Bytes::copy_from_slice(page), syntax));
    let mut source = Itself { page: Arc::clone(&page), requested: 0 };
    let mut rendering = Rendering::new(page);
    let answer = |id: usize| (id % 2 == 0).then(|| vec![Bytes::from_static(b"answer")]);
    while let RenderProgress::Wait(id) = rendering.run(&mut source) {
        let _ = rendering.take_ready();
        rendering.fill(id, answer(id));
    }
    for id in 0..source.requested {
        rendering.fill(id, answer(id));
    }
    assert!(rendering.is_settled_whole());
    let _ = rendering.take_ready();
    assert!(rendering.take_ready().is_empty());
}
