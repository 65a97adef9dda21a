//! What a server answers: its files, programs, redirects and servers behind it.

use crate::apache::access::{Accounts, access, is_access};
use crate::apache::backend::Balancers;
use crate::apache::options::{note_other, option};
use crate::apache::php::Php;
use crate::apache::places::Mount;
use crate::apache::rewrite::Rewriter;
use crate::apache::tree::Directive;
use crate::draft::Draft;
use crate::report::Place;
use crate::section::Section;
use crate::steps::effects::{Effect, Scoped, ScopedStep, steps_of};
use crate::steps::{PathPattern, Scope};

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
    pub(super) fn closed(scope: Scope, place: &Place, reason: String) -> Self {
        let mut route = Section::default();
        route.comment(place.to_string());
        Self { scope, route, closed: Some(reason), mount: None }
    }

    pub(super) fn denied(scope: Scope, place: &Place) -> Self {
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
    pub(super) locations: Vec<Scoped>,
    /// Refusals, which come before all other answers.
    pub(super) refusals: Vec<Answer>,
    pub(super) answers: Vec<Answer>,
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
            if kind.contains(&"alias") {
                self.hide_scripts(directives);
            }
            for directive in directives.iter().filter(|d| kind.contains(&d.name.as_str())) {
                self.answer(directive, None);
            }
        }
        self.document_root(directives);
        self.finish(scope, &proxies)
    }

    /// Reads what a body adds to the routes of paths. `directory` is the path of a section.
    pub(super) fn body(
        &mut self,
        body: &[Directive],
        path: &PathPattern,
        only: Option<&mut Vec<Scoped>>,
    ) {
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

    /// Refuses scripts in PHP if nothing of the configuration runs them. Apache may run them by a
    /// file that was not imported, and their source must not be shown.
    fn hide_scripts(&mut self, directives: &[Directive]) {
        let found = directives.iter().rfind(|directive| directive.name == "documentroot");
        let Some(found) = found.filter(|_| !self.php.runs) else { return };
        let paths = PathPattern::ending("/", ".php").into_iter().collect();
        let mut answer = Answer::denied(Scope::of_paths(paths), &found.place);
        answer.route.comment("The source of scripts is not shown. To run them, see docs/proxy.md.");
        // `ProxyPass PATH !` leaves a path to the files, too.
        let is_files = |answer: &Answer| answer.mount.as_ref().is_some_and(Mount::is_root);
        let first = self.answers.iter().position(is_files).unwrap_or(self.answers.len());
        self.answers.insert(first, answer);
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
                "Nothing here runs scripts in PHP, so they are refused."
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
