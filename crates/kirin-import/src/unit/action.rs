//! `action` of a step: what a route does.

use toml::{Table, Value};

use crate::report::Outcome;
use crate::section::Section;
use crate::steps::PathPattern;
use crate::text::is_settable;
use crate::unit::json::{Entry, Json, Node};
use crate::unit::targets::Targets;
use crate::unit::variables::template;

/// The most `fallback`s inside each other.
const MOST_FALLBACKS: usize = 16;

/// What an action does.
#[derive(Debug, Default)]
pub(crate) struct Action {
    /// The keys of the route.
    pub(crate) route: Section,
    /// The name of the routes to which it passes.
    pub(crate) routes: Option<String>,
    /// Why the route must be closed, because Kirin cannot do what protects it.
    pub(crate) closed: Option<String>,
    /// Whether the rewrite is only for files: it names a directory.
    rewrite_for_files: bool,
    /// What happened to each key: its line, the key with its value, and the outcome.
    pub(crate) notes: Vec<(usize, String, Outcome)>,
}

/// Reads the action of a step for these paths.
pub(crate) fn read(node: &Node, paths: &[PathPattern], targets: &mut Targets) -> Action {
    let mut action = Action::default();
    action.read(node, paths, targets, 0);
    action.check_rewrite();
    action
}

/// Returns whether an action refuses clients.
pub(crate) fn refuses(node: &Node) -> bool {
    node.get("return").and_then(Node::count).is_some_and(|status| status >= 400)
}

impl Action {
    fn read(&mut self, node: &Node, paths: &[PathPattern], targets: &mut Targets, depth: usize) {
        for entry in node.entries() {
            let outcome = match entry.key.as_str() {
                "share" => self.share(&entry.node, paths),
                "index" => self.text_key(&entry.node, |route, text| {
                    route.set("index", vec![text.to_owned()]);
                }),
                "pass" => self.pass(&entry.node, targets),
                "proxy" => self.proxy(&entry.node, targets),
                "return" => self.answer(&entry.node, node.get("location"), paths),
                "location" => continue,
                "rewrite" => self.rewrite(&entry.node, paths),
                "response_headers" => self.response_headers(&entry.node),
                "follow_symlinks" => self.follow(&entry.node),
                "chroot" => by_itself("`files:` never leaves its directory"),
                "traverse_mounts" => left_out("`files:` does not look at mounts"),
                "types" => {
                    self.closed = Some("only some media types were served".to_owned());
                    left_out(
                        "PROTECTION NOT CARRIED OVER: Kirin has no filter by media type. The \
                         route is closed. Write routes such as `path = \"*.png\"`",
                    )
                }
                "fallback" if depth < MOST_FALLBACKS => {
                    self.fallback(&entry.node, paths, targets, depth);
                    continue;
                }
                "targets" | "script" => continue,
                _ => left_out("not known here"),
            };
            self.note(entry, outcome);
        }
    }

    /// Closes a route whose programs would see a path that is only for files.
    fn check_rewrite(&mut self) {
        let places = self.route.get("try").and_then(Value::as_array).into_iter().flatten();
        let mut places = places.filter_map(Value::as_str);
        if self.rewrite_for_files && places.any(|place| !place.starts_with("files:")) {
            self.closed = Some("its program would see the path of the directory".to_owned());
        }
    }

    fn note(&mut self, entry: &Entry, outcome: Outcome) {
        let directive = format!("\"{}\": {}", entry.key, entry.node.summary());
        self.notes.push((entry.line, directive, outcome));
    }

    fn text_key(&mut self, node: &Node, set: impl FnOnce(&mut Section, &str)) -> Outcome {
        match node.text() {
            Some(text) => {
                set(&mut self.route, text);
                carried("")
            }
            None => left_out("it is no text"),
        }
    }

    /// Appends a place to `try`.
    fn place(&mut self, place: String) {
        crate::draft::append(&mut self.route, "try", Value::from(place));
    }

    fn share(&mut self, node: &Node, paths: &[PathPattern]) -> Outcome {
        let mut outcome = carried("");
        for share in node.elements() {
            let Some(share) = share.text() else { return left_out("it is no text") };
            outcome = self.share_one(share, paths);
        }
        outcome
    }

    fn share_one(&mut self, share: &str, paths: &[PathPattern]) -> Outcome {
        let uri = share.strip_suffix("$uri").or_else(|| share.strip_suffix("${uri}"));
        let directory = uri.map(|directory| directory.trim_end_matches('/'));
        match directory {
            Some(directory) if !directory.contains('$') => {
                let directory = if directory.is_empty() { "/" } else { directory };
                self.place(format!("files:{directory}"));
                carried("")
            }
            Some(directory) => self.share_of_variable(directory, paths),
            None if share.contains('$') => {
                left_out("Kirin has one variable in the name of a directory, in front of `$uri`")
            }
            None if share.ends_with('/') => {
                self.place(format!("files:{}", share.trim_end_matches('/')));
                carried("The directory is taken for one with `$uri`, as before Unit 1.26.")
            }
            None => self.share_file(share, paths),
        }
    }

    /// Carries `/www/$host$uri`: the variable becomes a directory by `rewrite`.
    fn share_of_variable(&mut self, directory: &str, paths: &[PathPattern]) -> Outcome {
        let cut = directory.find('$').and_then(|start| directory.get(..start)?.rfind('/'));
        let parts = cut.and_then(|cut| directory.split_at_checked(cut));
        let rewrite = parts.and_then(|(_, variable)| template(variable).ok());
        match (parts, rewrite, paths) {
            (Some((root, _)), Some(rewrite), [path]) if !root.is_empty() => {
                self.place(format!("files:{root}"));
                self.rewrite_for_files = true;
                self.route.set("rewrite", format!("{rewrite}{}", path.start()));
                carried("")
            }
            _ => {
                self.closed = Some("the directory has a variable that Kirin lacks".to_owned());
                left_out("Kirin cannot find this directory: write a route for each of them")
            }
        }
    }

    /// Carries a share of a single file.
    fn share_file(&mut self, share: &str, paths: &[PathPattern]) -> Outcome {
        let Some((directory, name)) = share.rsplit_once('/') else {
            return left_out("the path of a file must be absolute");
        };
        let root = if directory.is_empty() { "/" } else { directory };
        let exact = paths.iter().all(|path| matches!(path, PathPattern::Exact(_)));
        if exact && !paths.is_empty() {
            self.place(format!("files:{root}"));
            self.route.set("rewrite", format!("/{name}"));
            return carried("");
        }
        if self.route.get("try").is_none() {
            self.place(format!("files:{root}"));
            return left_out(
                "a route of Kirin answers with the files of a directory, not with one file for \
                 all paths: it has the directory now",
            );
        }
        let is_below = |place: &Value| place.as_str() == Some(&format!("files:{root}"));
        let places = self.route.get("try").and_then(Value::as_array);
        if places.is_some_and(|places| places.iter().any(is_below)) {
            self.route.set("fallback", name);
            return carried("For pages only: scripts and pictures that are missing get 404.");
        }
        left_out("the page of a `fallback` is below the directory of `files:`")
    }

    fn pass(&mut self, node: &Node, targets: &mut Targets) -> Outcome {
        let Some(pass) = node.text() else { return left_out("it is no text") };
        if pass == "routes" || pass.starts_with("routes/") {
            self.routes = Some(pass.to_owned());
            return carried("The steps of these routes stand in its place.");
        }
        match targets.place(pass) {
            Some(place) => {
                self.place(place);
                carried("")
            }
            None => {
                self.closed = Some(format!("`{pass}` is not in the configuration"));
                left_out("there is no such application or upstream, or the name has a variable")
            }
        }
    }

    fn proxy(&mut self, node: &Node, targets: &mut Targets) -> Outcome {
        let address = node.text().and_then(|text| text.strip_prefix("http://"));
        let Some(address) =
            address.filter(|address| !address.contains(['/', '$']) || address.starts_with("unix:"))
        else {
            self.closed = Some("the address of `proxy` is not one of Kirin".to_owned());
            return left_out("the address is `http://HOST:PORT` or `http://unix:PATH`");
        };
        let place = targets.server(address);
        self.place(place);
        carried("")
    }

    fn answer(&mut self, node: &Node, to: Option<&Node>, paths: &[PathPattern]) -> Outcome {
        let status = node.count().unwrap_or(0);
        let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
        match (status, to.and_then(Node::text)) {
            (_, Some(to)) if is_redirect => self.redirect(status, to, paths),
            // A fallback that answers 404 is what Kirin does without it.
            (404, _) if self.route.get("try").is_some() => by_itself(
                "404 is the answer if no \
                                                                      place has one",
            ),
            (403 | 404, _) if self.route.get("try").is_none() => {
                self.route.set("deny", i64::try_from(status).unwrap_or(403));
                carried("")
            }
            (400.., _) => {
                self.closed = Some(format!("Unit answered {status}"));
                left_out(
                    "a route of Kirin refuses with 403 or 404. A Lua script can answer any \
                          status (docs/lua.md). The route is closed",
                )
            }
            _ => {
                self.closed = Some(format!("Unit answered {status}"));
                left_out("write `try = [\"lua:answer.lua\"]` (docs/lua.md). The route is closed")
            }
        }
    }

    fn redirect(&mut self, status: u64, to: &str, paths: &[PathPattern]) -> Outcome {
        let (target, rest) = match to.strip_suffix("$request_uri").or(to.strip_suffix("$uri")) {
            Some(target) => (target, true),
            None => (to, false),
        };
        let Ok(mut target) = template(target) else {
            self.closed = Some("the target of the redirect has a variable".to_owned());
            return left_out("Kirin lacks the variable. The route is closed");
        };
        let remark = if rest {
            let root =
                target.starts_with("http") && paths.iter().all(|path| path.start().is_empty());
            if root && !target.contains('{') {
                target.push('/');
            } else {
                target.push_str("{path}");
            }
            ""
        } else if paths.iter().all(|path| matches!(path, PathPattern::Exact(_))) {
            "Kirin keeps the query."
        } else {
            "Kirin appends the rest of the path, and the query."
        };
        self.route.set("redirect", target);
        self.route.set("redirect_status", i64::try_from(status).unwrap_or(308));
        carried(remark)
    }

    fn rewrite(&mut self, node: &Node, paths: &[PathPattern]) -> Outcome {
        let Some(to) = node.text() else { return left_out("it is no text") };
        if let Some(prefix) = to.strip_suffix("$uri")
            && let [path] = paths
            && let Ok(prefix) = template(prefix)
        {
            self.route.set("rewrite", format!("{prefix}{}", path.start()));
            return carried("");
        }
        let exact = paths.iter().all(|path| matches!(path, PathPattern::Exact(_)));
        match template(to) {
            Ok(to) if exact && !paths.is_empty() => {
                self.route.set("rewrite", to);
                carried("")
            }
            _ => left_out("`rewrite` of Kirin replaces the route's own path, and keeps the rest"),
        }
    }

    fn response_headers(&mut self, node: &Node) -> Outcome {
        let mut headers = Table::new();
        let mut lacking = Vec::new();
        for entry in node.entries() {
            let value = match &entry.node.value {
                Json::Null => Some(String::new()),
                Json::Text(text) => template(text).ok(),
                _ => None,
            };
            match value.filter(|_| is_settable(&entry.key)) {
                Some(value) => drop(headers.insert(entry.key.clone(), value.into())),
                None => lacking.push(entry.key.clone()),
            }
        }
        if !headers.is_empty() {
            self.route.set("headers", headers);
        }
        if lacking.is_empty() {
            return carried("On errors, too.");
        }
        left_out(&format!("Kirin cannot set {} so", lacking.join(", ")))
    }

    fn follow(&mut self, node: &Node) -> Outcome {
        match node.value {
            Json::Bool(true) => {
                self.route.set("follow_links", true);
                carried("")
            }
            _ => by_itself("`files:` follows no link out of its directory"),
        }
    }

    fn fallback(
        &mut self,
        node: &Node,
        paths: &[PathPattern],
        targets: &mut Targets,
        depth: usize,
    ) {
        self.read(node, paths, targets, depth + 1);
        if self.routes.take().is_some() {
            let text = "write the places of these routes into `try`: Kirin looks for no other \
                        route. The route is closed";
            self.closed = Some("the fallback had routes of its own".to_owned());
            self.notes.push((node.line, "fallback".to_owned(), left_out(text)));
        }
    }
}

fn carried(text: &str) -> Outcome {
    Outcome::Carried(text.to_owned())
}

fn by_itself(text: &str) -> Outcome {
    Outcome::ByItself(text.to_owned())
}

fn left_out(text: &str) -> Outcome {
    Outcome::LeftOut(text.to_owned())
}
