//! The routes of a server.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use toml::Value;

use super::base_route::{add_common_settings, base_route, close_open_status, program_of};
use super::context::Context;
use super::copies::{MAX_PATHS, OpenPath};
use super::expression_routes::{Planned, plan_expression, plan_impossible_path};
use super::files::index_has_script;
use super::globals::Globals;
use super::if_blocks::{MAX_ADDED, Place, add_if};
use super::limit_except::split_methods;
use super::location::{Kind, Location, locations};
use super::output::Output;
use super::paths::Form;
use super::programs::pass;
use super::protection::{close, protects};
use super::redirects::{rewrite_redirects, status_of};
use super::route::Route;
use super::server::Server;

/// Returns the routes of a server, in the order of the file.
pub fn site_routes<'a>(
    server: &'a Server<'a>,
    globals: &'a Globals<'a>,
    output: &'a Output,
) -> Vec<Route> {
    globals.notes.carried(server.directive, "");
    let all = locations(&server.scope);
    let context = context(server, globals, output, &all);
    let mut planned = plan(&all, &context);
    // nginx asks exact paths first, then `^~`, then expressions, then the other prefixes.
    planned.sort_by_key(Planned::rank);
    let mut builder =
        Builder { context: &context, routes: Vec::new(), known: HashSet::new(), added: 0 };
    for planned in &planned {
        builder.add(planned);
    }
    let routes = builder.finish();
    for path in context.accel_redirects.borrow().iter() {
        output.add_accel_redirect(&upstreams(&routes), &path.0, &path.1);
    }
    routes
}

/// Returns the routes of a server that leads to https, for the challenges of an authority.
pub fn challenge_routes<'a>(
    server: &'a Server<'a>,
    globals: &'a Globals<'a>,
    output: &'a Output,
) -> Vec<Route> {
    let all = locations(&server.scope);
    let context = context(server, globals, output, &all);
    let mut builder =
        Builder { context: &context, routes: Vec::new(), known: HashSet::new(), added: 0 };
    for location in all {
        let pattern = location.pattern.trim_start_matches('^');
        if pattern.starts_with("/.well-known") {
            let form = location.paths().and_then(|paths| paths.forms.into_iter().next());
            let Some(form) = form else { continue };
            builder.add(&Planned { location, form, closed: None });
        }
    }
    builder.finish()
}

/// Returns the names of the upstreams of routes.
fn upstreams(routes: &[Route]) -> Vec<String> {
    let places = routes.iter().flat_map(Route::places);
    places.filter_map(|place| place.strip_prefix("proxy:").map(str::to_owned)).collect()
}

/// Returns what is known of a server. `all` are its locations.
pub fn context<'a>(
    server: &'a Server<'a>,
    globals: &'a Globals<'a>,
    output: &'a Output,
    all: &[Location<'a>],
) -> Context<'a> {
    let mut context = Context {
        globals,
        output,
        server,
        named: HashMap::new(),
        php: None,
        error_pages: HashSet::new(),
        by_path: HashMap::new(),
        asked: HashSet::new(),
        accel_redirects: RefCell::default(),
        open_paths: Vec::new(),
        closed_site: RefCell::default(),
        protects_some: false,
    };
    for location in all {
        let scope = &location.scope;
        match location.kind {
            Kind::Named => {
                context.named.insert(location.pattern, location.clone());
            }
            Kind::Exact | Kind::Prefix(_) => {
                let is_new = !context.by_path.contains_key(location.pattern);
                let comes_last = location.kind == Kind::Prefix(false) && location.pattern != "/";
                if is_new && comes_last && context.open_paths.len() < MAX_PATHS {
                    context
                        .open_paths
                        .push(OpenPath { form: Form::below(location.pattern), number: None });
                }
                context.by_path.entry(location.pattern).or_insert_with(|| location.clone());
            }
            Kind::Expression(_) => add_open_expression(&mut context, location),
        }
        let runs_scripts = location.own("fastcgi_pass").is_some();
        let is_better = context
            .php
            .as_ref()
            .is_none_or(|known| location.is_expression() && !known.is_expression());
        if is_better && runs_scripts && location.pattern.contains(".php") {
            context.php = Some(location.clone());
        }
        context.protects_some |= protects(scope) && !location.is_for_hidden_names();
        add_paths(&mut context, scope);
    }
    add_paths(&mut context, &server.scope);
    context
}

/// Adds the paths of an expression. It may keep fewer visitors out than an earlier one.
fn add_open_expression<'a>(context: &mut Context<'a>, location: &Location<'a>) {
    if context.open_paths.len() >= MAX_PATHS {
        return;
    }
    let forms = location.paths().map(|found| found.forms).unwrap_or_default();
    let number = Some(location.directive.number);
    let is_text = |form: &Form| form.segments.iter().all(|segment| !segment.starts_with('{'));
    let is_anchored = location.pattern.trim_start_matches("(?i)").starts_with('^');
    let written = forms.into_iter().filter(|form| is_anchored || is_text(form));
    context.open_paths.extend(written.map(|form| OpenPath { form, number }));
}

/// Adds the paths that error pages and questions to other programs name.
fn add_paths<'a>(context: &mut Context<'a>, scope: &super::scope::Scope<'a>) {
    for directive in scope.list("error_page") {
        context.error_pages.extend(directive.args.last().map(String::as_str));
    }
    let asked = scope.one("auth_request").filter(|directive| !directive.is_off());
    let path = asked.map(|directive| directive.arg(0));
    context.asked.extend(path.and_then(|path| path.split('?').next()));
}

/// Returns the routes that will be built, in the order of the file.
fn plan<'a>(all: &[Location<'a>], context: &Context<'a>) -> Vec<Planned<'a>> {
    let server = context.server;
    let root = Location::of_server(server.directive, &server.scope);
    let returns = root.own("return").is_some();
    let has_content = returns
        || pass(&root).is_some()
        || root.own("try_files").is_some()
        || !root.scope.list_of_any(&["root"]).is_empty()
        // These come before every location.
        || !root.scope.own_named("if").is_empty()
        || !root.scope.own_named("rewrite").is_empty();
    let is_root = |location: &Location<'_>| {
        matches!(location.kind, Kind::Prefix(_)) && location.pattern == "/"
    };
    let mut planned = Vec::new();
    if returns {
        for location in all {
            let text = "`return` of the server answers first";
            context.left_out(location.directive, text);
        }
        planned.extend(Planned::fixed(root));
        return planned;
    }
    if has_content && !all.iter().any(is_root) {
        planned.extend(Planned::fixed(root));
    }
    for location in all {
        match location.kind {
            Kind::Named => {
                if context.globals.notes.is_open(location.directive) {
                    context
                        .by_itself(location.directive, "its place is in the routes that name it");
                }
            }
            Kind::Exact | Kind::Prefix(_) if !location.pattern.starts_with('/') => {
                context.left_out(location.directive, "no path begins so");
            }
            Kind::Exact | Kind::Prefix(_) => match Planned::fixed(location.clone()) {
                Some(fixed) => planned.push(fixed),
                None if protects(&location.scope) => {
                    planned.extend(plan_impossible_path(location, context));
                }
                None => context.left_out(location.directive, "a route cannot have this path"),
            },
            Kind::Expression(_) => planned.extend(plan_expression(location, context)),
        }
    }
    planned
}

/// Builds routes.
struct Builder<'c, 'a> {
    context: &'c Context<'a>,
    /// The routes, each with the number of its directive.
    routes: Vec<(usize, Route)>,
    known: HashSet<(String, String)>,
    /// How many routes were added by blocks `if` of the server.
    added: usize,
}

impl<'a> Builder<'_, 'a> {
    fn add(&mut self, planned: &Planned<'a>) {
        let (location, context) = (&planned.location, self.context);
        let number = location.directive.number;
        let Some(path) = planned.form.path() else { return };
        if self.known.contains(&(path.clone(), String::new())) {
            let text = format!("another location has the path {path} already");
            if context.globals.notes.is_open(location.directive) {
                context.left_out(location.directive, text);
            }
            return;
        }
        if let Some((directive, why)) = &planned.closed {
            let mut route = Route::new(&path);
            close(&mut route, directive, why, context);
            return self.push(number, route);
        }
        let is_server = number == context.server.directive.number;
        self.add_rewrites(location, number, is_server);
        let is_redirected = self.known.contains(&(path.clone(), String::new()));
        if is_redirected && location.scope.own_named("if").is_empty() {
            return context.carried(location.directive);
        }
        let built = base_route(location, &location.scope, &planned.form, &path, context);
        let (mut before, mut main) = (built.before, built.main);
        let place = Place { location, form: &planned.form };
        let mut first: Vec<Route> = Vec::new();
        let was_open = main.serves();
        let own = location.scope.own_named("if");
        let of_server = if is_server { &[] } else { context.server.scope.own_named("if") };
        let of_program = program_of(&main, location, context).map(|(program, _)| program);
        let of_program = of_program.filter(|program| program.directive.number != number);
        let of_program = of_program.map_or(&[][..], |program| program.scope.own_named("if"));
        for block in of_server.iter().chain(own).chain(of_program).copied() {
            if self.added > MAX_ADDED {
                close(&mut main, block, "too many routes would be needed", context);
                continue;
            }
            let more = add_if(block, &mut main, place, context);
            self.added += more.len();
            first.extend(more);
        }
        if was_open && !main.serves() {
            // What closes the route closes those for some of its visitors, too.
            before.retain(Route::refuses_all);
        }
        if let Some(block) = location.own("limit_except") {
            if first.iter().any(Route::serves) {
                first.retain(|route| !route.serves());
                close(&mut main, block, "a condition of the location comes before it", context);
            }
            if before.iter().any(Route::serves) {
                before.retain(Route::refuses_all);
                close(
                    &mut main,
                    block,
                    "`satisfy any` and `limit_except` in one location",
                    context,
                );
            }
            before.extend(split_methods(block, &mut main, location, context));
        }
        self.push_root(number, &main, location);
        for route in first.into_iter().chain(before) {
            self.push(number, route);
        }
        self.push(number, main);
    }

    /// Adds a route for the path with a slash alone, if the route leads every path to one file.
    /// Kirin appends the slash to `rewrite` otherwise.
    fn push_root(&mut self, number: usize, main: &Route, location: &Location<'a>) {
        let leads_to_file = main.section.get("rewrite").and_then(Value::as_str);
        let leads_to_file =
            leads_to_file.is_some_and(|path| path != "/" && !path.contains("{path}"));
        let has_files = main.has_place("files:") && location.own("try_files").is_some();
        if leads_to_file
            && has_files
            && location.pattern.ends_with('/')
            && !location.is_expression()
        {
            let mut root = main.clone();
            root.section.set("path", super::units::text(format!("= {}", location.pattern)));
            self.push(number, root);
        }
    }

    /// Adds the routes of `rewrite`s that are redirects, and those of the server for its root.
    fn add_rewrites(&mut self, location: &Location<'a>, number: usize, is_server: bool) {
        let of_server = !is_server && location.pattern == "/" && !location.is_expression();
        let root = Location::of_server(self.context.server.directive, &self.context.server.scope);
        let own = location.scope.own_named("rewrite").iter().map(|rewrite| (*rewrite, location));
        let more = root.scope.own_named("rewrite").iter().map(|rewrite| (*rewrite, &root));
        for (rewrite, location) in own.chain(more.filter(|_| of_server)) {
            if status_of(rewrite).is_none() {
                continue;
            }
            match rewrite_redirects(rewrite, location, self.context) {
                Ok(routes) => {
                    for mut route in routes {
                        add_common_settings(&mut route, &location.scope, self.context);
                        self.push(number, route);
                    }
                }
                Err(why) => self.context.left_out(rewrite, why),
            }
        }
    }

    fn push(&mut self, number: usize, mut route: Route) {
        close_open_status(&mut route);
        if self.known.insert(route.identity()) {
            self.routes.push((number, route));
        }
    }

    fn finish(mut self) -> Vec<Route> {
        if let Some((directive, why)) = self.context.closed_site.borrow().as_ref() {
            let open = self.routes.iter_mut().map(|(_, route)| route);
            for route in open.filter(|route| !route.refuses_all()) {
                close(route, directive, why, self.context);
            }
        }
        self.routes.sort_by_key(|(number, _)| *number);
        let routes = self.routes.into_iter().map(|(_, route)| route);
        // A route without anything to answer would be an error.
        routes
            .filter(|route| {
                let has_answer =
                    !route.places().is_empty() || route.redirects() || route.refuses_all();
                has_answer || route.section.get("maintenance") == Some(&Value::Boolean(true))
            })
            .collect()
    }
}

/// Returns whether the root of a server has the front controller of PHP.
pub fn has_front_controller(context: &Context<'_>) -> bool {
    let root = context.by_path.get("/").map_or(&context.server.scope, |location| &location.scope);
    let last = root.own_named("try_files").last().and_then(|directive| directive.args.last());
    let by_try_files = last.is_some_and(|last| {
        last.split(['?', '$']).next().is_some_and(|path| path.ends_with(".php"))
    });
    let has_own_program = context.by_path.get("/").is_some_and(|location| pass(location).is_some());
    by_try_files || index_has_script(root) && !has_own_program
}
