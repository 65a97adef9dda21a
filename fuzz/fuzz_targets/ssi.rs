//! Includes: no page panics, rendering ends, whatever is answered and in whatever order.
#![no_main]

use bytes::Bytes;
use kirin_ssi::{Progress, Rendering, Requested, Source, Target, Template, Zone};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

/// Every key holds the page itself: the worst circle there is. Requests are answered with their names.
struct Itself {
    page: Arc<Template>,
    requested: Vec<(usize, Bytes)>,
}

impl Source for Itself {
    fn item(&mut self, _: &[u8]) -> Option<Arc<Template>> {
        Some(Arc::clone(&self.page))
    }

    fn variable(&mut self, name: &str) -> Option<Bytes> {
        name.ends_with('y').then(|| Bytes::copy_from_slice(name.as_bytes()))
    }

    fn date(&mut self, _: Zone, format: &str) -> Bytes {
        Bytes::copy_from_slice(format.as_bytes())
    }

    fn request(&mut self, _: Target, name: &[u8], id: usize) -> Requested {
        match name.len() % 3 {
            0 => Requested::Failed,
            1 => Requested::Template(Arc::clone(&self.page)),
            _ => {
                self.requested.push((id, Bytes::copy_from_slice(name)));
                Requested::Pending
            }
        }
    }
}

fuzz_target!(|page: &[u8]| {
    let template = Arc::new(Template::compile(&Bytes::copy_from_slice(page)));
    let mut site = Itself { page: Arc::clone(&template), requested: Vec::new() };
    let mut rendering = Rendering::new(template);
    while let Progress::Wait(_) = rendering.run(&mut site) {
        let _ = rendering.take_ready();
        for (id, name) in site.requested.drain(..) {
            rendering.fill(id, (id % 2 == 0).then(|| vec![name]));
        }
    }
    for (id, name) in site.requested.drain(..).rev() {
        rendering.fill(id, Some(vec![name]));
    }
    assert!(rendering.is_settled_whole());
    let _ = rendering.take_ready();
});
