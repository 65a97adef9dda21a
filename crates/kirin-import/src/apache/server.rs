//! What a server answers: its files, programs, redirects and servers behind it.

use toml::{Table, Value};

use crate::apache::access::{Accounts, access, is_access};
use crate::apache::backend::Balancers;
use crate::apache::file_names::FileNames;
use crate::apache::options::{note_other, option};
use crate::apache::php::Php;
use crate::apache::places::{Mount, is_at_or_below, redirect};
use crate::apache::rewrite::{Rewriter, Rule};
use crate::apache::tree::Directive;
use crate::draft::Draft;
use crate::report::Place;
use crate::section::Section;
use crate::steps::effects::{Effect, Scoped, ScopedStep, steps_of};
use crate::steps::{ExpressionPaths, PathPattern, Scope};

/// An answer of a server, before what is added to it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) scope: Scope,
    pub(crate) route: Section,
    pub(crate) closed: Option<String>,
    /// The directory of its files.
    pub(crate) mount: Option<Mount>,
}

impl Answer {
    fn closed(scope: Scope, place: &Place, reason: String) -> Self {
        let mut route = Section::default();
        route.comment(place.to_string());
        Self { scope, route, closed: Some(reason), mount: None }
    }

    fn denied(scope: Scope, place: &Place) -> Self {
        let mut route = Section::default();
        route.comment(place.to_string());
        route.set("deny", 403);
        Self { scope, route, closed: None, mount: None }
    }
}

/// Reads the directives of a server.
pub(crate) struct ServerReader<'a> {
    pub(crate) draft: &'a mut Draft,
    pub(crate) balancers: Balancers,
    pub(crate) php: Php,
    pub(crate) accounts: Accounts,
    /// What holds for all requests.
    pub(crate) effects: Vec<Scoped>,
    /// The sections of directories, with their paths.
    pub(crate) directories: Vec<(String, Vec<Directive>)>,
    /// What holds for paths.
    locations: Vec<Scoped>,
    /// Refusals, which come before all other answers.
    refusals: Vec<Answer>,
    answers: Vec<Answer>,
}

impl<'a> ServerReader<'a> {
    pub(crate) fn new(draft: &'a mut Draft, accounts: Accounts, effects: Vec<Scoped>) -> Self {
        Self {
            draft,
            balancers: Balancers::default(),
            php: Php::default(),
            accounts,
            effects,
            directories: Vec::new(),
            locations: Vec::new(),
            refusals: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Returns the steps of the directives of a server.
    pub(crate) fn steps(mut self, directives: &[Directive], scope: &Scope) -> Vec<ScopedStep> {
        self.php.find(directives, self.draft);
        let everything = PathPattern::everything();
        self.body(directives, &everything, None);
        let mut proxies = Vec::new();
        for directive in directives {
            match directive.name.as_str() {
                "directory" | "directorymatch" => self.directory(directive),
                "location" | "locationmatch" => self.location(directive),
                "proxy" if self.balancers.read(directive, self.draft) => {}
                "proxy" | "proxymatch" => {
                    let rules = access(directive.body(), &self.accounts, self.draft);
                    proxies.extend(rules.map(|effect| Scoped { scope: Scope::default(), effect }));
                    self.draft.notes.carried(&directive.place, &directive.line, "");
                }
                _ => {}
            }
        }
        self.directories.sort_by_key(|(path, _)| path.len());
        let mut rewriter = Rewriter::default();
        for directive in directives {
            self.rewrite(directive, &mut rewriter);
        }
        self.directory_rewrites(directives);
        let kinds: [&[&str]; 3] = [
            &["redirect", "redirectmatch", "redirectpermanent", "redirecttemp"],
            &["proxypass", "proxypassmatch"],
            &["alias", "aliasmatch", "scriptalias", "scriptaliasmatch"],
        ];
        for kind in kinds {
            for directive in directives.iter().filter(|d| kind.contains(&d.name.as_str())) {
                self.answer(directive, None);
            }
        }
        self.document_root(directives);
        self.finish(scope, &proxies)
    }

    /// Reads what a body adds to the routes of paths. `directory` is the path of a section.
    fn body(&mut self, body: &[Directive], path: &PathPattern, only: Option<&mut Vec<Scoped>>) {
        let scope = match path {
            path if *path == PathPattern::everything() => Scope::default(),
            path => Scope::of_paths(vec![path.clone()]),
        };
        let mut effects = Vec::new();
        for directive in body {
            match directive.name.as_str() {
                "limit" | "limitexcept" => self.limit(directive, &scope),
                "files" | "filesmatch" => {
                    if self.files(directive, path) {
                        effects.push(Scoped { scope: scope.clone(), effect: Effect::FilesOnly });
                    }
                }
                name if name.starts_with("php_") && is_engine_off(directive) => {
                    effects.push(Scoped { scope: scope.clone(), effect: Effect::FilesOnly });
                    let text = "Only files answer there.";
                    self.draft.notes.carried(&directive.place, &directive.line, text);
                }
                "allowoverride" if directive.argument(0).eq_ignore_ascii_case("none") => {
                    let text = "Kirin reads no `.htaccess`";
                    self.draft.notes.by_itself(&directive.place, &directive.line, text);
                }
                name if is_access(name) || is_read_elsewhere(name) => {}
                _ => match option(directive) {
                    Some((found, outcome)) => {
                        self.draft.notes.add(&directive.place, &directive.line, outcome);
                        let scoped = |effect| Scoped { scope: scope.clone(), effect };
                        effects.extend(found.into_iter().map(scoped));
                    }
                    None => note_other(directive, self.draft),
                },
            }
        }
        if let Some(effect) = access(body, &self.accounts, self.draft) {
            effects.push(Scoped { scope, effect });
        }
        only.unwrap_or(&mut self.effects).extend(effects);
    }

    /// Reads `<Limit>` and `<LimitExcept>`: other methods are refused.
    fn limit(&mut self, section: &Directive, scope: &Scope) {
        let rules = access(section.body(), &self.accounts, self.draft);
        if let Some(Effect::Access(keys)) = &rules
            && keys.keys.is_empty()
        {
            self.draft.notes.carried(&section.place, &section.line, "");
            return;
        }
        let methods: Vec<_> =
            section.arguments.iter().map(|m| Value::from(m.to_uppercase())).collect();
        let methods = Table::from_iter([("methods".to_owned(), Value::Array(methods))]);
        let conditions = if section.name == "limit" {
            methods
        } else {
            Table::from_iter([("not".to_owned(), Value::Table(methods))])
        };
        let scope = Scope { conditions, ..scope.clone() };
        self.refusals.push(Answer::denied(scope, &section.place));
        self.draft.notes.carried(&section.place, &section.line, "These methods are refused.");
    }

    /// Reads `<Files>`: names that are refused. Returns whether all scripts are among them.
    fn files(&mut self, section: &Directive, path: &PathPattern) -> bool {
        let rules = access(section.body(), &self.accounts, self.draft);
        let open = match &rules {
            None => true,
            Some(Effect::Access(keys)) => keys.keys.is_empty(),
            Some(_) => false,
        };
        let names = FileNames::read(section);
        if open {
            for directive in
                section.body().iter().filter(|d| !is_access(&d.name) && d.name != "sethandler")
            {
                let text = "write a route such as `path = \"*.css\"`";
                self.draft.notes.left_out(&directive.place, &directive.line, text);
            }
            return false;
        }
        if names == FileNames::Hidden {
            let text = "names that begin with a dot are never served";
            self.draft.notes.by_itself(&section.place, &section.line, text);
            return false;
        }
        match names.paths(path.start()) {
            Some(paths) => {
                let answer = match rules {
                    Some(Effect::Access(keys)) if keys.get("deny").is_some() => {
                        Answer::denied(Scope::of_paths(paths), &section.place)
                    }
                    _ => Answer::closed(
                        Scope::of_paths(paths),
                        &section.place,
                        "the files had rules of their own".to_owned(),
                    ),
                };
                self.refusals.push(answer);
                let text = "Of each name its end counts. A script with a path behind its name is \
                            refused in this directory only.";
                self.draft.notes.carried(&section.place, &section.line, text);
            }
            None => {
                let text = "protection is not carried over: Kirin has no such names of files. The \
                            routes are closed";
                self.draft.notes.left_out(&section.place, &section.line, text);
                let reason = "names of files that Kirin cannot write".to_owned();
                let scope = Scope::of_paths(vec![path.clone()]);
                self.refusals.push(Answer::closed(scope, &section.place, reason));
            }
        }
        names.has_scripts()
    }

    fn directory(&mut self, section: &Directive) {
        let path = section.argument(0);
        let pattern = section.name == "directorymatch" || path.contains(['*', '?', '[', '~']);
        if !pattern {
            let path = path.trim_end_matches('/').to_owned();
            self.directories.push((path, section.body().to_vec()));
            self.draft.notes.carried(&section.place, &section.line, "");
            return;
        }
        let rules = access(section.body(), &self.accounts, self.draft);
        let open = match &rules {
            None => true,
            Some(Effect::Access(keys)) => keys.keys.is_empty(),
            Some(_) => false,
        };
        if open {
            let text = "write a route for the paths of these directories (docs/routes.md)";
            self.draft.notes.left_out(&section.place, &section.line, text);
            return;
        }
        if path.contains("/\\.") || section.argument(1).contains("/\\.") {
            let text = "names that begin with a dot are never served";
            self.draft.notes.by_itself(&section.place, &section.line, text);
            return;
        }
        let text = "protection is not carried over: Kirin has no patterns of directories. All \
                    routes are closed";
        self.draft.notes.left_out(&section.place, &section.line, text);
        let reason = "a pattern of directories".to_owned();
        self.refusals.push(Answer::closed(Scope::default(), &section.place, reason));
    }

    fn location(&mut self, section: &Directive) {
        let first = section.argument(0);
        let expression = match (section.name.as_str(), first) {
            ("locationmatch", expression) => Some(expression),
            (_, "~") => Some(section.argument(1)),
            _ => None,
        };
        let paths = match expression {
            Some(expression) => ExpressionPaths::read(expression),
            None => PathPattern::below(first)
                .map_or(ExpressionPaths::Unknown, |path| ExpressionPaths::Same(vec![path])),
        };
        let ExpressionPaths::Same(paths) = paths else {
            let rules = access(section.body(), &self.accounts, self.draft);
            let text = "Kirin has no such expression for paths";
            if rules.is_some() {
                let text = format!("protection is not carried over: {text}. The routes are closed");
                self.draft.notes.left_out(&section.place, &section.line, &text);
                let scope = Scope::of_paths(paths.closed());
                let reason = "an expression of paths".to_owned();
                self.refusals.push(Answer::closed(scope, &section.place, reason));
            } else {
                self.draft.notes.left_out(&section.place, &section.line, text);
            }
            return;
        };
        self.draft.notes.carried(&section.place, &section.line, "");
        for path in paths {
            let mut effects = Vec::new();
            self.body(section.body(), &path, Some(&mut effects));
            self.locations.extend(effects);
            for directive in section.body() {
                self.answer(directive, Some(&path));
            }
            self.handler(section, &path);
        }
    }

    /// Reads the handler of a location.
    fn handler(&mut self, section: &Directive, path: &PathPattern) {
        let find = |name: &str| section.body().iter().find(|directive| directive.name == name);
        let Some(handler) = find("sethandler") else { return };
        let scope = Scope::of_paths(vec![path.clone()]);
        let psgi = section.body().iter().find(|directive| {
            directive.name == "perlsetvar" && directive.argument(0).eq_ignore_ascii_case("psgi_app")
        });
        let mut route = Section::default();
        route.comment(section.place.to_string());
        let name = handler.argument(0);
        if name == "server-status" && self.is_restricted(path) {
            route.set("try", vec!["status"]);
            self.draft.notes.carried(&handler.place, &handler.line, "The status page of Kirin.");
        } else if let Some(psgi) = psgi {
            let mut app = Section::new("[[app]]");
            app.comment(psgi.place.to_string());
            let name = format!("app-{}", self.draft.apps.len() + 1);
            app.set("name", name.as_str());
            app.set("load", psgi.argument(1));
            self.draft.apps.push(app);
            route.set("try", vec![format!("app:{name}")]);
            if !path.start().is_empty() {
                route.set("rewrite", "/");
            }
            self.draft.notes.carried(&handler.place, &handler.line, "");
            self.draft.notes.carried(&psgi.place, &psgi.line, "");
        } else if let Some(url) = name.strip_prefix("proxy:") {
            let place = section.place.to_string();
            match self.balancers.target(url, &[], &place, self.draft) {
                Some(target) => route.set("try", vec![target.place]),
                None => return self.close(handler, scope, "the address of the handler"),
            }
            self.draft.notes.carried(&handler.place, &handler.line, "");
        } else {
            return self.close(handler, scope, "the handler is not there in Kirin");
        }
        self.answers.push(Answer { scope, route, closed: None, mount: None });
    }

    fn is_restricted(&self, path: &PathPattern) -> bool {
        let scope = Scope::of_paths(vec![path.clone()]);
        let last = self.locations.iter().rev().find_map(|scoped| match &scoped.effect {
            Effect::Access(keys) if scoped.scope == scope => Some(keys),
            _ => None,
        });
        last.is_some_and(|keys| keys.get("allow").is_some() || keys.get("basic_auth").is_some())
    }

    fn close(&mut self, directive: &Directive, scope: Scope, reason: &str) {
        let text = if directive.line.to_lowercase().contains("perl") {
            "run the application by `plackup -s Kirin`, or as an `[[app]]` (docs/perl.md). The \
             route is closed"
        } else {
            "Kirin cannot carry it over. The route is closed"
        };
        self.draft.notes.left_out(&directive.place, &directive.line, text);
        self.answers.push(Answer::closed(scope, &directive.place, reason.to_owned()));
    }

    fn rewrite(&mut self, directive: &Directive, rewriter: &mut Rewriter) {
        let Some((rule, outcome)) = rewriter.read(directive) else { return };
        let mut outcome = outcome;
        let mut route = Section::default();
        route.comment(directive.place.to_string());
        match rule {
            Rule::Answer(scope, keys) => {
                route.keys = keys.keys;
                self.answers.push(Answer { scope, route, closed: None, mount: None });
            }
            Rule::Closed(scope, reason) => {
                self.refusals.push(Answer::closed(scope, &directive.place, reason));
            }
            Rule::Proxy(scope, url) => {
                let start = url.strip_suffix("$1").unwrap_or(&url).to_owned();
                let place = directive.place.to_string();
                match self.balancers.target(&start, &[], &place, self.draft) {
                    Some(target) => {
                        route.set("try", vec![target.place]);
                        let path = target.path.trim_end_matches('/');
                        let own = scope.paths.first().map_or("", PathPattern::start);
                        if path != own {
                            route.set("rewrite", if path.is_empty() { "/" } else { path });
                        }
                        self.answers.push(Answer { scope, route, closed: None, mount: None });
                    }
                    None => {
                        let reason = "the address of a proxy".to_owned();
                        self.answers.push(Answer::closed(scope, &directive.place, reason));
                        let text = "Kirin has no such address. The route is closed";
                        outcome = crate::report::Outcome::LeftOut(text.to_owned());
                    }
                }
            }
            Rule::Front(page) if page.ends_with(".php") => {
                self.php.runs = true;
                self.php.front = Some(page);
            }
            Rule::Front(page) => {
                let effect = Effect::Fallback(page);
                self.effects.push(Scoped { scope: Scope::default(), effect });
            }
            Rule::None => {}
        }
        self.draft.notes.add(&directive.place, &directive.line, outcome);
    }

    /// Reads the rules of the directories below the document root.
    fn directory_rewrites(&mut self, directives: &[Directive]) {
        let Some(root) = document_root(directives) else { return };
        let below: Vec<_> = self
            .directories
            .iter()
            .filter_map(|(path, body)| {
                let url = if is_at_or_below(&root, path) { "" } else { path.strip_prefix(&root)? };
                Some((url.to_owned(), body.clone()))
            })
            .collect();
        for (url, body) in below {
            let mut rewriter = Rewriter::of_directory(url);
            body.iter().for_each(|directive| self.rewrite(directive, &mut rewriter));
        }
    }

    /// Reads a directive that answers requests, in a server or in a location.
    fn answer(&mut self, directive: &Directive, location: Option<&PathPattern>) {
        let mut route = Section::default();
        route.comment(directive.place.to_string());
        let place = directive.place.to_string();
        match directive.name.as_str() {
            "redirect" | "redirectmatch" | "redirectpermanent" | "redirecttemp" => {
                let (answer, outcome) = redirect(directive, location);
                self.draft.notes.add(&directive.place, &directive.line, outcome);
                if let Some((scope, keys, closed)) = answer {
                    route.keys = keys.keys;
                    self.answers.push(Answer { scope, route, closed, mount: None });
                }
            }
            "proxypass" => self.proxy_pass(directive, location, route, &place),
            "proxypassmatch" if directive.argument(1).contains("fcgi://") => {}
            "proxypassmatch" => {
                let scope = Scope::of_paths(ExpressionPaths::read(directive.argument(0)).closed());
                self.close(directive, scope, "an expression of paths");
            }
            "alias" | "scriptalias" => {
                let Some(mount) = Mount::alias(directive, location) else {
                    let text = "Kirin cannot write the path";
                    self.draft.notes.left_out(&directive.place, &directive.line, text);
                    return;
                };
                mount.write(&mut route, directive.name == "scriptalias");
                self.draft.notes.carried(&directive.place, &directive.line, "");
                let scope = Scope::of_paths(vec![mount.path.clone()]);
                self.answers.push(Answer { scope, route, closed: None, mount: Some(mount) });
            }
            "aliasmatch" | "scriptaliasmatch" => {
                let text = "Kirin has no expressions of paths: write routes (docs/routes.md)";
                self.draft.notes.left_out(&directive.place, &directive.line, text);
            }
            _ => {}
        }
    }

    fn proxy_pass(
        &mut self,
        directive: &Directive,
        location: Option<&PathPattern>,
        mut route: Section,
        place: &str,
    ) {
        let (path, url, options) = match location {
            Some(path) => (Some(path.clone()), directive.argument(0), 1),
            None => (PathPattern::below(directive.argument(0)), directive.argument(1), 2),
        };
        let Some(path) = path else {
            let text = "Kirin cannot write the path";
            self.draft.notes.left_out(&directive.place, &directive.line, text);
            return;
        };
        if url == "!" {
            // The files of the document root answer there.
            self.draft.notes.carried(&directive.place, &directive.line, "Files answer there.");
            let scope = Scope::of_paths(vec![path]);
            let mount = Some(Mount::root());
            self.answers.push(Answer { scope, route, closed: None, mount });
            return;
        }
        let scope = Scope::of_paths(vec![path.clone()]);
        let options = directive.arguments.get(options..).unwrap_or_default();
        let Some(target) = self.balancers.target(url, options, place, self.draft) else {
            return self.close(directive, scope, "the address of a proxy");
        };
        route.set("try", vec![target.place]);
        let target_path = target.path.trim_end_matches('/');
        if target_path != path.start() {
            route.set("rewrite", if target_path.is_empty() { "/" } else { target_path });
        }
        let text = "The server gets the host of the client. `host = \"upstream\"` sends its own.";
        self.draft.notes.carried(&directive.place, &directive.line, text);
        self.answers.push(Answer { scope, route, closed: None, mount: None });
    }

    /// Adds the files of the document root, for all other paths.
    fn document_root(&mut self, directives: &[Directive]) {
        let found = directives.iter().rfind(|directive| directive.name == "documentroot");
        let root = found.map(|found| found.argument(0).trim_end_matches('/').to_owned());
        let mut last = Section::default();
        if let (Some(found), Some(root)) = (found, &root) {
            let comment = found.place.to_string();
            let php = self.php.place(root, &comment, self.draft);
            last.comment(comment);
            let files = format!("files:{}", if root.is_empty() { "/" } else { root });
            last.set("try", [Some(files), php].into_iter().flatten().collect::<Vec<_>>());
            let text = if self.php.runs {
                ""
            } else {
                "Kirin runs no scripts there: what is in the directory is shown as it is."
            };
            self.draft.notes.carried(&found.place, &found.line, text);
        }
        let mount =
            Mount { path: PathPattern::everything(), directory: root.clone().unwrap_or_default() };
        for answer in &mut self.answers {
            if answer.mount.as_ref().is_some_and(Mount::is_root) {
                if root.is_none() {
                    answer.closed = Some("there is no document root".to_owned());
                }
                answer.route.keys.clone_from(&last.keys);
                answer.mount = Some(mount.clone());
            }
        }
        if root.is_some() {
            let scope = Scope::default();
            self.answers.push(Answer { scope, route: last, closed: None, mount: Some(mount) });
        }
    }

    /// Returns the steps of all answers, with what is added to them.
    fn finish(mut self, scope: &Scope, proxies: &[Scoped]) -> Vec<ScopedStep> {
        let mut steps = Vec::new();
        let refusals = std::mem::take(&mut self.refusals);
        let answers = std::mem::take(&mut self.answers);
        let mut with_directories = Vec::new();
        for answer in answers {
            let mut effects = self.effects.clone();
            match &answer.mount {
                Some(mount) => effects.extend(self.of_directories(mount)),
                None => effects.extend(proxies.iter().cloned()),
            }
            with_directories.push((answer, effects));
        }
        // Directories may have refused more.
        let more = std::mem::take(&mut self.refusals);
        let refusals =
            refusals.into_iter().chain(more).map(|answer| (answer, self.effects.clone()));
        let all: Vec<_> =
            refusals.collect::<Vec<_>>().into_iter().chain(with_directories).collect();
        for (answer, mut effects) in all {
            effects.extend(self.locations.iter().cloned());
            if answer.route.get("deny").is_some() {
                // What serves more clients must not open a refusal.
                effects.retain(|scoped| !matches!(scoped.effect, Effect::Access(_)));
            }
            let both = scope.both(&answer.scope).ok().flatten();
            let inner = both.unwrap_or_else(|| scope.clone());
            let closed = answer.closed.as_deref();
            match steps_of(&answer.route, closed, &inner, &effects, "", false) {
                Some(found) => steps.extend(found),
                None => {
                    let reason = Some("the conditions of its rules cannot be combined");
                    steps.extend(
                        steps_of(&answer.route, reason, &inner, &[], "", false).unwrap_or_default(),
                    );
                }
            }
        }
        steps
    }

    /// Returns what the sections of directories add to the files of a mount.
    fn of_directories(&mut self, mount: &Mount) -> Vec<Scoped> {
        let mut effects = Vec::new();
        for (directory, body) in self.directories.clone() {
            let Some(path) = mount.path_of(&directory) else { continue };
            self.body(&body, &path, Some(&mut effects));
        }
        effects
    }
}

/// Returns the last document root of directives.
pub(crate) fn document_root(directives: &[Directive]) -> Option<String> {
    let root = directives.iter().rfind(|directive| directive.name == "documentroot")?;
    Some(root.argument(0).trim_end_matches('/').to_owned())
}

/// Returns whether a directive turns PHP off.
fn is_engine_off(directive: &Directive) -> bool {
    directive.argument(0) == "engine" && matches!(directive.argument(1), "off" | "Off" | "0")
}

/// Returns whether a directive is read by another function than `body`.
fn is_read_elsewhere(name: &str) -> bool {
    let names = [
        "directory",
        "directorymatch",
        "location",
        "locationmatch",
        "proxy",
        "proxymatch",
        "documentroot",
        "redirect",
        "redirectmatch",
        "redirectpermanent",
        "redirecttemp",
        "proxypass",
        "proxypassmatch",
        "alias",
        "aliasmatch",
        "scriptalias",
        "scriptaliasmatch",
        "rewriteengine",
        "rewritecond",
        "rewriterule",
        "rewritebase",
        "rewritemap",
        "rewriteoptions",
        "servername",
        "serveralias",
        "virtualhost",
        "listen",
        "customlog",
        "logformat",
        "transferlog",
        "sslcertificatefile",
        "sslcertificatekeyfile",
        "sslcertificatechainfile",
        "sslcacertificatefile",
        "sslverifyclient",
        "sslengine",
        "user",
        "sethandler",
        "sslverifydepth",
        "remoteipheader",
        "remoteiptrustedproxy",
        "remoteipinternalproxy",
    ];
    names.contains(&name)
}
