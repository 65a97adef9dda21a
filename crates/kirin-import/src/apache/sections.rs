//! Sections of a server: files, directories, locations and methods.

use toml::{Table, Value};

use crate::apache::access::{access, is_access};
use crate::apache::file_names::FileNames;
use crate::apache::server::{Answer, ServerReader};
use crate::apache::tree::Directive;
use crate::section::Section;
use crate::steps::effects::Effect;
use crate::steps::{ExpressionPaths, PathPattern, Scope};

impl ServerReader<'_> {
    /// Reads `<Limit>` and `<LimitExcept>`: other methods are refused.
    pub(super) fn limit(&mut self, section: &Directive, scope: &Scope) {
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
    pub(super) fn files(&mut self, section: &Directive, path: &PathPattern) -> bool {
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
                let text = "PROTECTION NOT CARRIED OVER: Kirin has no such names of files. The \
                            routes are closed";
                self.draft.notes.left_out(&section.place, &section.line, text);
                let reason = "names of files that Kirin cannot write".to_owned();
                let scope = Scope::of_paths(vec![path.clone()]);
                self.refusals.push(Answer::closed(scope, &section.place, reason));
            }
        }
        names.has_scripts()
    }

    pub(super) fn directory(&mut self, section: &Directive) {
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
        let text = "PROTECTION NOT CARRIED OVER: Kirin has no patterns of directories. All \
                    routes are closed";
        self.draft.notes.left_out(&section.place, &section.line, text);
        let reason = "a pattern of directories".to_owned();
        self.refusals.push(Answer::closed(Scope::default(), &section.place, reason));
    }

    pub(super) fn location(&mut self, section: &Directive) {
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
                let text = format!("PROTECTION NOT CARRIED OVER: {text}. The routes are closed");
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
    pub(super) fn handler(&mut self, section: &Directive, path: &PathPattern) {
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

    pub(super) fn is_restricted(&self, path: &PathPattern) -> bool {
        let scope = Scope::of_paths(vec![path.clone()]);
        let last = self.locations.iter().rev().find_map(|scoped| match &scoped.effect {
            Effect::Access(keys) if scoped.scope == scope => Some(keys),
            _ => None,
        });
        last.is_some_and(|keys| keys.get("allow").is_some() || keys.get("basic_auth").is_some())
    }

    pub(super) fn close(&mut self, directive: &Directive, scope: Scope, reason: &str) {
        let text = if directive.line.to_lowercase().contains("perl") {
            "run the application by `plackup -s Kirin`, or as an `[[app]]` (docs/perl.md). The \
             route is closed"
        } else {
            "Kirin cannot carry it over. The route is closed"
        };
        self.draft.notes.left_out(&directive.place, &directive.line, text);
        self.answers.push(Answer::closed(scope, &directive.place, reason.to_owned()));
    }
}
