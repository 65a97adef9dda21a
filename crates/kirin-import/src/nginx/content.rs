//! What a location answers: places, a redirect or a refusal.

use toml::Value;

use super::context::Context;
use super::directive::Directive;
use super::files::{index_has_script, push_files};
use super::fixed_answer::set_fixed_answer;
use super::location::{Kind, Location};
use super::paths::{Ending, Form};
use super::programs::{pass, push_program};
use super::redirects::{set_return_redirect, status_of, without_rest};
use super::route::{Program, Route};
use super::try_files::set_try_files;
use super::units::text;
use super::variables::Target;

/// Directives whose answers Kirin does not have.
const OTHER_HANDLERS: [(&str, &str); 12] = [
    ("content_by_lua_block", "write a script for `lua:FILE` (docs/lua.md)"),
    ("content_by_lua_file", "write a script for `lua:FILE` (docs/lua.md)"),
    ("content_by_lua", "write a script for `lua:FILE` (docs/lua.md)"),
    ("js_content", "write a script for `lua:FILE` (docs/lua.md)"),
    ("perl", "write a script for `lua:FILE`, or an [[app]]"),
    ("empty_gif", "put a picture into a directory of `files:`"),
    ("redis_pass", "the [store] of Kirin may have a Redis server as its `origin`"),
    ("redis2_pass", "the [store] of Kirin may have a Redis server as its `origin`"),
    ("postgres_pass", "let an application answer"),
    ("image_filter", "let an application change the pictures"),
    ("echo", "write a script for `lua:FILE` (docs/lua.md)"),
    ("xslt_stylesheet", "let an application change the documents"),
];

/// Sets what a location answers. An error says why Kirin cannot have it, and at which directive.
pub fn set_content<'a>(
    route: &mut Route,
    location: &Location<'a>,
    form: &Form,
    context: &Context<'a>,
) -> Result<(), (&'a Directive, String)> {
    if let Some(directive) = location.own("return") {
        return set_return(route, location, form, directive, context)
            .map_err(|why| (directive, why));
    }
    set_inner_rewrite(route, location, form, context);
    let other = OTHER_HANDLERS.iter().find_map(|(name, text)| Some((location.own(name)?, *text)));
    if let Some((directive, text)) = other {
        return Err((directive, text.to_owned()));
    }
    if let Some(directive) = location.own("stub_status") {
        return set_status(route, directive, context);
    }
    if let Some(directive) = location.own("memcached_pass") {
        return set_store(route, location, form, directive, context);
    }
    if let Some((directive, _)) = pass(location) {
        if let Some(checks) = location.own("try_files") {
            if checks.args.last().is_some_and(|last| last.starts_with('@')) {
                let why = "a program answers for files, and another place for what is missing";
                return Err((checks, why.to_owned()));
            }
            context.by_itself(checks, "Kirin looks for the script");
        }
        push_program(route, location, form, context).map_err(|why| (directive, why))?;
        return Ok(());
    }
    let is_server = location.directive.number == context.server.directive.number;
    match location.own("try_files") {
        None if is_server && location.scope.list_of_any(&["root"]).is_empty() => {
            // The server has rules for every path, and no content.
            route.section.set("deny", 404);
            Ok(())
        }
        Some(directive) => {
            set_try_files(route, location, form, directive, context).map_err(|why| (directive, why))
        }
        None => set_files(route, location, form, context),
    }
}

/// Sets files, and what answers for those that are missing.
fn set_files<'a>(
    route: &mut Route,
    location: &Location<'a>,
    form: &Form,
    context: &Context<'a>,
) -> Result<(), (&'a Directive, String)> {
    push_files(route, location, form, context).map_err(|why| (location.directive, why))?;
    if let Some(fallback) = front_controller(location) {
        set_places_of_missing(route, fallback, form, context);
    } else if let Some((directive, name)) = page_of_missing(location) {
        match context.named.get(name) {
            Some(named) => {
                push_named(route, named, form, context).map_err(|why| (directive, why))?;
                context.carried_but(directive, "the place is behind the files in `try`");
            }
            None => context.left_out(directive, "the status stays; write a place into `try`"),
        }
    } else if index_has_script(&location.scope) && may_be_directory(form) {
        push_php(route, context);
    }
    Ok(())
}

/// Returns whether directories may be below a path.
pub fn may_be_directory(form: &Form) -> bool {
    matches!(form.ending, Ending::Below | Ending::Exact(true))
}

/// Adds the upstream of PHP to the places.
pub fn push_php<'a>(route: &mut Route, context: &Context<'a>) -> bool {
    let Some(php) = &context.php else { return false };
    let is_added = push_program(route, php, &Form::default(), context).is_ok();
    route.program = Program::Php;
    is_added && !route.redirects()
}

/// Adds the places of a location `@name`.
pub fn push_named<'a>(
    route: &mut Route,
    named: &Location<'a>,
    form: &Form,
    context: &Context<'a>,
) -> Result<(), String> {
    context.carried(named.directive);
    if pass(named).is_some() {
        route.program = Program::Named(named.pattern.to_owned());
        return push_program(route, named, form, context);
    }
    let leads_to_php = |directive: &&&Directive| {
        directive.arg(1).split(['?', '$']).next().is_some_and(|path| path.ends_with(".php"))
    };
    if let Some(rewrite) = named.scope.own_named("rewrite").iter().find(leads_to_php) {
        context.carried(rewrite);
        return match push_php(route, context) {
            true => Ok(()),
            false => Err("no location runs PHP".into()),
        };
    }
    if let Some(directive) = named.own("return").filter(|directive| directive.arg(0) == "404") {
        context.carried(directive);
        return Ok(());
    }
    Err(format!("the location `{}` has no program that answers", named.pattern))
}

/// Returns the block `if (!-e $request_filename)` of a location: what answers for missing files.
fn front_controller<'a>(location: &Location<'a>) -> Option<&'a Directive> {
    location.scope.own_named("if").iter().copied().find(|block| is_for_missing_files(block))
}

/// Returns whether a block is for requests that lead to no file.
pub fn is_for_missing_files(block: &Directive) -> bool {
    let condition = block.args.join(" ");
    let condition = condition.trim_matches(['(', ')', ' ']);
    let (test, name) = condition.split_once(' ').unwrap_or((condition, ""));
    let is_file = [
        "$request_filename",
        "$document_root$uri",
        "$document_root$request_uri",
        "$document_root$fastcgi_script_name",
    ];
    matches!(test, "!-e" | "!-f" | "!-d") && is_file.contains(&name.trim())
}

/// Adds what answers for missing files: a server, or the front controller of PHP.
fn set_places_of_missing<'a>(
    route: &mut Route,
    block: &'a Directive,
    form: &Form,
    context: &Context<'a>,
) {
    context.carried(block);
    for directive in block.inside() {
        match directive.name.as_str() {
            "rewrite" if directive.arg(1).contains(".php") => match push_php(route, context) {
                true => context.carried_but(directive, "by the front controller of the upstream"),
                false => context.left_out(directive, "no location runs PHP"),
            },
            "proxy_pass" => {
                let scope = context.server.scope.inner(block.inside());
                let location = Location::of_server(block, &scope);
                if let Err(why) = push_program(route, &location, form, context) {
                    context.left_out(directive, why);
                }
            }
            "break" | "last" => context.by_itself(directive, "places answer in their order"),
            "return" if directive.arg(0) == "404" => {
                context.by_itself(directive, "missing files are 404");
            }
            _ => context.left_out(directive, "write a place behind `files:` into `try`"),
        }
    }
}

/// Returns the location `@name` of `error_page 404 = @name`.
fn page_of_missing<'a>(location: &Location<'a>) -> Option<(&'a Directive, &'a str)> {
    let pages = location.scope.list("error_page").iter();
    let found = pages
        .copied()
        .find(|page| page.has("404") && page.args.iter().any(|arg| arg.starts_with('@')))?;
    Some((found, found.args.last()?))
}

/// Sets the answer of `return`.
fn set_return<'a>(
    route: &mut Route,
    location: &Location<'a>,
    form: &Form,
    directive: &'a Directive,
    context: &Context<'a>,
) -> Result<(), String> {
    let (first, second) = (directive.arg(0), directive.args.get(1));
    let Ok(status) = first.parse::<u16>() else {
        let variables = variables_of(location, form, context);
        return set_return_redirect(route, form, 302, first, &variables, context, directive);
    };
    match (status, second) {
        (301 | 302 | 303 | 307 | 308, Some(target)) => {
            let variables = variables_of(location, form, context);
            // Kirin would append the rest of the path to a path of the same site.
            let is_fixed = target.starts_with('/') && !target.contains('$');
            if is_fixed
                && form.ending == Ending::Below
                && !form.segments.is_empty()
                && !location.pattern.ends_with('/')
            {
                let exact = Form { ending: Ending::Exact(false), ..form.clone() };
                if let Some(path) = exact.path() {
                    route.section.set("path", text(path));
                    return set_return_redirect(
                        route, &exact, status, target, &variables, context, directive,
                    );
                }
            }
            set_return_redirect(route, form, status, target, &variables, context, directive)
        }
        (403 | 404, None) => {
            route.section.set("deny", i64::from(status));
            context.carried(directive);
            Ok(())
        }
        (444, _) => {
            route.section.set("deny", 403);
            context.left_out(
                directive,
                "Kirin answers 403 and closes no connection; `kirin block` closes those of an address",
            );
            Ok(())
        }
        (503, None) => {
            route.section.set("maintenance", true);
            let _ = push_files(route, location, form, context);
            if route.places().is_empty() {
                route.remove("maintenance");
                return set_fixed_answer(route, location, directive, context);
            }
            context.carried_but(directive, "503 with `Retry-After`");
            Ok(())
        }
        _ => set_fixed_answer(route, location, directive, context),
    }
}

fn variables_of<'a>(
    location: &Location<'a>,
    form: &Form,
    context: &Context<'a>,
) -> super::variables::Variables {
    let mut variables = context.variables(&location.scope);
    variables.known.extend(form.groups.clone());
    variables
}

/// Sets the `rewrite` of `rewrite … break`.
fn set_inner_rewrite<'a>(
    route: &mut Route,
    location: &Location<'a>,
    form: &Form,
    context: &Context<'a>,
) {
    for directive in location.scope.own_named("rewrite").iter().copied() {
        if status_of(directive).is_some() {
            continue;
        }
        let is_last = directive.arg(2) != "break";
        let has_program = pass(location).is_some();
        let rewrite = inner_rewrite(directive, location, form, context);
        if is_last {
            let text = "no other route is looked for: write the place into the route";
            match context.protects_some {
                true => context.globals.notes.protection_lost(directive, text),
                false => context.left_out(directive, text),
            }
            continue;
        }
        let Some(rewrite) = rewrite else {
            context.left_out(directive, "write the path into a route of its own with `rewrite`");
            continue;
        };
        if rewrite != form.path().unwrap_or_default() {
            route.section.set("rewrite", text(rewrite));
        }
        let what = if has_program { "the server sees the new path" } else { "" };
        context.carried_but(directive, what);
    }
}

fn inner_rewrite<'a>(
    directive: &'a Directive,
    location: &Location<'a>,
    form: &Form,
    context: &Context<'a>,
) -> Option<String> {
    let found = super::paths::paths(directive.arg(0), false)?;
    let own = found
        .forms
        .iter()
        .find(|own| own.segments == form.segments && own.ending == form.ending)?;
    if location.kind == Kind::Named {
        return None;
    }
    let target = super::redirects::without_query(directive.arg(1));
    let start = without_rest(target, own).ok()?;
    let mut variables = context.variables(&location.scope);
    variables.known.extend(own.groups.clone());
    let path = variables.translate(start, Target::Path).ok()?;
    let is_good =
        path.starts_with('/') && !path.contains(['?', '#', '%', '\\']) && !path.contains("//");
    let trimmed = path.trim_end_matches('/');
    is_good.then(|| if trimmed.is_empty() { "/".into() } else { trimmed.to_owned() })
}

/// Sets the status page.
fn set_status<'a>(
    route: &mut Route,
    directive: &'a Directive,
    context: &Context<'a>,
) -> Result<(), (&'a Directive, String)> {
    route.set_places(&["status".to_owned()]);
    context.output.top.borrow_mut().set("metrics", text("127.0.0.1:9145"));
    context
        .carried_but(directive, "the status page; numbers are at `metrics` and in `kirin status`");
    Ok(())
}

/// Sets the store, and what answers for what it does not have.
fn set_store<'a>(
    route: &mut Route,
    location: &Location<'a>,
    form: &Form,
    directive: &'a Directive,
    context: &Context<'a>,
) -> Result<(), (&'a Directive, String)> {
    route.set_places(&["store".to_owned()]);
    if let Some((page, name)) = page_of_missing(location)
        && let Some(named) = context.named.get(name)
    {
        push_named(route, named, form, context).map_err(|why| (page, why))?;
        context.carried_but(page, "the place is behind `store` in `try`");
    }
    let address = directive.arg(0);
    let is_here = ["127.0.0.1:", "localhost:", "[::1]:", "unix:"]
        .iter()
        .any(|start| address.starts_with(start));
    if is_here {
        let mut store = context.output.store.borrow_mut();
        let mut list =
            store.get("memcached").and_then(Value::as_array).cloned().unwrap_or_default();
        let address = text(address.replace("localhost:", "127.0.0.1:"));
        if !list.contains(&address) {
            list.push(address);
        }
        store.set("memcached", list);
        context.carried_but(
            directive,
            "Kirin has the store itself, and listens at this address: stop the other memcached",
        );
    } else {
        store_key(location, context);
        let text =
            "the store is in Kirin: let the programs write to the `memcached` address of [store]";
        context.left_out(directive, text);
    }
    store_key(location, context);
    Ok(())
}

/// Notes the key of `memcached_pass`.
fn store_key<'a>(location: &Location<'a>, context: &Context<'a>) {
    let key =
        location.scope.own_named("set").iter().copied().find(|set| set.arg(0) == "$memcached_key");
    let Some(key) = key else { return };
    match key.arg(1) {
        "$uri" | "$request_uri" | "$uri?$args" | "$uri$is_args$args" => {
            context.by_itself(key, "the key is the path and the query");
        }
        _ => context.left_out(key, "the key in the store is the path and the query"),
    }
}
