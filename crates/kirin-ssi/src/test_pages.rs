//! The data for pages in this crate's tests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::{
    FoundItem, IncludeTarget, RenderProblem, RenderProgress, RenderSource, Rendering, Requested,
    Requesting, Scope, Syntax, Template, Zone,
};

/// Items of a store, variables named `v_VALUE` and `arg_v_VALUE`, and requests whose responses
/// arrive when the test says so.
#[derive(Default)]
pub(crate) struct TestPages {
    pub(crate) items: HashMap<String, Arc<Template>>,
    /// The keys of items that are not known yet.
    pub(crate) unknown: HashSet<String>,
    pub(crate) requested: Vec<(IncludeTarget, String)>,
    /// The value of the variable `evil`.
    pub(crate) evil: &'static str,
}

impl TestPages {
    pub(crate) fn new(items: &[(&str, &str)]) -> Self {
        let items = items.iter().map(|(key, page)| ((*key).to_owned(), compile(page))).collect();
        Self { items, ..Self::default() }
    }
}

impl RenderSource for TestPages {
    fn item(&mut self, key: &[u8]) -> FoundItem {
        let key = String::from_utf8_lossy(key).into_owned();
        // Each item is known when it is asked for again.
        if self.unknown.remove(&key) {
            return FoundItem::Unknown;
        }
        self.items.get(&key).cloned().map_or(FoundItem::Missing, FoundItem::Template)
    }

    fn variable(&mut self, name: &str) -> Option<Bytes> {
        let host = match name {
            "http_host" => Some("Example.org"),
            "evil" => Some(self.evil),
            _ => None,
        };
        let value =
            host.or_else(|| name.strip_prefix("v_")).or_else(|| name.strip_prefix("arg_v_"));
        value.map(|value| Bytes::copy_from_slice(value.as_bytes()))
    }

    fn date(&mut self, zone: Zone, format: &str) -> Bytes {
        Bytes::from(format!("{zone:?} {format}"))
    }

    fn request(&mut self, include: Requesting<'_>, _: &Scope, _: usize) -> Requested {
        let Requesting { target, name, alternate } = include;
        let name = String::from_utf8_lossy(name).into_owned();
        let name = match alternate {
            Some(alternate) if name != "/refused" => {
                format!("{name} or {}", String::from_utf8_lossy(alternate))
            }
            _ => name,
        };
        match &name[..] {
            "/refused" => Requested::Failed,
            "/memory" => Requested::Template(compile("memory")),
            _ => {
                self.requested.push((target, name));
                Requested::Pending
            }
        }
    }
}

pub(crate) fn compile(page: &str) -> Arc<Template> {
    Arc::new(Template::compile(
        &Bytes::copy_from_slice(page.as_bytes()),
        Syntax { ssi: true, esi: true },
    ))
}

/// Renders a page in both syntaxes. The response to each request is `<TARGET>`. `/fail…` fails,
/// `/empty` is empty. Requests for which nothing waits get their responses at the end, the last
/// request first.
pub(crate) fn render(page: &str, items: &[(&str, &str)]) -> (String, Option<RenderProblem>) {
    let shown = render_site(page, TestPages::new(items));
    // It makes no difference when items become known.
    let keys = items.iter().map(|(key, _)| (*key).to_owned());
    let unknown = keys.chain(["gone".to_owned()]).collect();
    assert_eq!(render_site(page, TestPages { unknown, ..TestPages::new(items) }), shown, "{page}");
    shown
}

fn render_site(page: &str, mut site: TestPages) -> (String, Option<RenderProblem>) {
    let mut rendering = Rendering::new(compile(page));
    let answer = |rendering: &mut Rendering, site: &TestPages, id: usize| {
        let name = &site.requested[id].1;
        let body = (!name.starts_with("/fail")).then(|| match &name[..] {
            "/empty" => vec![],
            name => vec![Bytes::from(format!("<{name}")), Bytes::from_static(b">")],
        });
        rendering.fill(id, body);
    };
    loop {
        match rendering.run(&mut site) {
            RenderProgress::Done => break,
            RenderProgress::Unknown => {}
            RenderProgress::Wait(id) => answer(&mut rendering, &site, id),
        }
    }
    for id in (0..site.requested.len()).rev() {
        answer(&mut rendering, &site, id);
    }
    assert!(rendering.is_settled_whole());
    let problem = rendering.problem();
    (String::from_utf8(rendering.take_ready().concat()).unwrap(), problem)
}
