//! Files: `root`, `alias` and what belongs to them.

use toml::{Table, Value};

use super::context::Context;
use super::directive::Directive;
use super::location::{Kind, Location};
use super::paths::Form;
use super::route::Route;
use super::scope::Scope;
use super::units::{text, texts};
use super::variables::{Target, Variables};

/// The most entries of `types` that are an addition. More are a complete list of types.
const MAX_OWN_TYPES: usize = 40;

/// Adds the directory of `root` or `alias` to the places of a route. An error says why Kirin cannot
/// have it.
pub fn push_files<'a>(
    route: &mut Route,
    location: &Location<'a>,
    form: &Form,
    context: &Context<'a>,
) -> Result<(), String> {
    let variables = context.variables(&location.scope);
    let found = location.scope.list_of_any(&["root", "alias"]);
    let Some(directive) = found.last() else {
        return Err("there is no `root`: nginx has a directory of its own for this".into());
    };
    let constant = |path: &str| variables.constant(path);
    if directive.name == "root" {
        let (directory, rewrite) = root(directive.arg(0), &variables)?;
        if let Some(rewrite) = rewrite {
            route.section.set("rewrite", text(rewrite));
        }
        route.push("try", text(format!("files:{directory}")));
        context.carried(directive);
        return Ok(());
    }
    let path = directive.arg(0);
    let is_file = location.kind == Kind::Exact && !path.ends_with('/');
    let (directory, rewrite) = match (is_file, location.is_expression()) {
        (true, _) => {
            let path = constant(path).ok_or("`alias` has a variable")?;
            let (directory, name) = path.rsplit_once('/').ok_or("`alias` has no directory")?;
            (directory.to_owned(), format!("/{name}"))
        }
        (false, false) => (constant(path).ok_or("`alias` has a variable")?, "/".to_owned()),
        (false, true) => alias_of_expression(path, form, &variables)?,
    };
    let directory = directory.trim_end_matches('/');
    route
        .push("try", text(format!("files:{}", if directory.is_empty() { "/" } else { directory })));
    if form.path().as_deref() != Some(rewrite.as_str()) {
        route.section.set("rewrite", text(rewrite));
    }
    context.carried(directive);
    Ok(())
}

/// Returns the directory of `root`, and the `rewrite` for the part with variables.
fn root(path: &str, variables: &Variables) -> Result<(String, Option<String>), String> {
    if let Some(path) = variables.constant(path) {
        let trimmed = path.trim_end_matches('/');
        return Ok((if trimmed.is_empty() { "/".into() } else { trimmed.to_owned() }, None));
    }
    let at =
        path.find('$').and_then(|at| path.get(..at)?.rfind('/')).ok_or("`root` is a variable")?;
    let (directory, rest) = path.split_at(at);
    let rest = variables
        .translate(rest.trim_end_matches('/'), Target::Path)
        .map_err(|name| format!("`root` has the variable `${name}`"))?;
    if directory.is_empty() {
        return Err("`root` begins with a variable".into());
    }
    Ok((directory.to_owned(), Some(format!("{rest}{{path}}"))))
}

/// Returns the directory and the `rewrite` of an `alias` with groups of the expression.
fn alias_of_expression(
    path: &str,
    form: &Form,
    variables: &Variables,
) -> Result<(String, String), String> {
    let start = super::redirects::without_rest(path, form)?;
    let mut variables = variables.clone();
    variables.known.extend(form.groups.clone());
    let (directory, rewrite) = root(start, &variables)?;
    let rewrite = rewrite.map(|rewrite| rewrite.replace("{path}", "")).unwrap_or_default();
    Ok((directory, if rewrite.is_empty() { "/".into() } else { rewrite }))
}

/// Sets the keys for files that hold in a location.
pub fn add_file_keys<'a>(route: &mut Route, scope: &Scope<'a>, context: &Context<'a>) {
    add_index(route, scope, context);
    add_types(route, scope, context);
    if let Some(directive) = scope.one("autoindex") {
        if directive.is_on() {
            route.section.set("listing", true);
        }
        context.carried(directive);
    }
    if let Some(directive) = scope.one("charset") {
        match directive.arg(0) {
            "utf-8" | "UTF-8" => context.by_itself(directive, "this is the default"),
            charset if charset.contains('$') => {
                context.left_out(directive, "`charset` has no variables");
            }
            charset => {
                let charset = if directive.is_off() { "" } else { charset };
                route.section.set("charset", text(charset));
                context.carried(directive);
            }
        }
    }
    if let Some(directive) = scope.one("disable_symlinks") {
        match directive.arg(0) {
            "off" => route.section.set("follow_links", true),
            "if_not_owner" => route.section.set("follow_links", text("owner")),
            _ => {}
        }
        context.carried_but(directive, "Kirin follows no link out of the directory by default");
    }
    if let Some(directive) = scope.one("gzip_static") {
        if directive.is_off() {
            route.section.set("precompressed", false);
            context.carried(directive);
        } else {
            context.by_itself(directive, "Kirin sends FILE.br, FILE.zst and FILE.gz");
        }
    }
}

fn add_index<'a>(route: &mut Route, scope: &Scope<'a>, context: &Context<'a>) {
    let Some(directive) = scope.one("index") else { return };
    let is_script =
        |name: &str| context.globals.has_scripts && name.to_lowercase().ends_with(".php");
    let (mut names, mut has_script) = (Vec::new(), false);
    for name in &directive.args {
        if is_script(name) {
            has_script = true;
        } else if name.contains(['/', '$']) {
            context.left_out(directive, format!("`index` has file names only, and not `{name}`"));
        } else {
            names.push(name.as_str());
        }
    }
    if names != ["index.html"] {
        route.section.set("index", texts(&names));
    }
    match has_script {
        true => context.carried_but(directive, "scripts are the `index` of the upstream"),
        false => context.carried(directive),
    }
}

fn add_types<'a>(route: &mut Route, scope: &Scope<'a>, context: &Context<'a>) {
    let mut table = Table::new();
    for types in scope.list("types") {
        let of_list = types.file.ends_with("mime.types") || types.inside().len() > MAX_OWN_TYPES;
        let included = types.inside().iter().any(|entry| entry.file != types.file);
        if of_list || included {
            context.by_itself(types, "Kirin knows the common media types");
            continue;
        }
        for entry in types.inside() {
            for extension in &entry.args {
                let extension = extension.trim_start_matches('.').to_lowercase();
                if is_media_type(&entry.name) && !extension.is_empty() {
                    table.insert(extension, Value::String(entry.name.clone()));
                }
            }
        }
        context.carried_but(types, "added to the common types");
    }
    if let Some(directive) = scope.one("default_type") {
        match directive.arg(0) {
            "application/octet-stream" => context.by_itself(directive, "this is the default"),
            media_type if is_media_type(media_type) => {
                table.insert("*".into(), text(media_type));
                context.carried(directive);
            }
            _ => context.left_out(directive, "`mime_types` has media types only"),
        }
    }
    if !table.is_empty() {
        route.section.set("mime_types", table);
    }
}

fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c))
    };
    text.split_once('/').is_some_and(|(kind, name)| is_token(kind) && is_token(name))
        && !text.contains('$')
}

/// Returns whether a directive of the block itself is about files only.
pub fn index_has_script(scope: &Scope<'_>) -> bool {
    let names = scope.one("index").map(|directive: &Directive| directive.args.as_slice());
    names.unwrap_or_default().iter().any(|name| name.to_lowercase().ends_with(".php"))
}
