//! Directives that answer requests: rewrite rules, redirects, proxies and aliases.

use crate::apache::places::{Mount, is_at_or_below, redirect};
use crate::apache::rewrite::{Rewriter, Rule};
use crate::apache::server::{Answer, ServerReader, document_root};
use crate::apache::tree::Directive;
use crate::section::Section;
use crate::steps::effects::{Effect, Scoped};
use crate::steps::{ExpressionPaths, PathPattern, Scope};

impl ServerReader<'_> {
    pub(super) fn rewrite(&mut self, directive: &Directive, rewriter: &mut Rewriter) {
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
    pub(super) fn directory_rewrites(&mut self, directives: &[Directive]) {
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
    pub(super) fn answer(&mut self, directive: &Directive, location: Option<&PathPattern>) {
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

    pub(super) fn proxy_pass(
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
        if target.lacking.is_empty() {
            let text =
                "The server gets the host of the client. `host = \"upstream\"` sends its own.";
            self.draft.notes.carried(&directive.place, &directive.line, text);
        } else {
            let text =
                format!("the route is there, but Kirin has no {}", target.lacking.join(", "));
            self.draft.notes.left_out(&directive.place, &directive.line, &text);
        }
        self.answers.push(Answer { scope, route, closed: None, mount: None });
    }
}
