//! FastCGI: PHP, and CGI programs behind fcgiwrap.

use toml::{Table, Value};

use super::context::Context;
use super::directive::Directive;
use super::location::{Kind, Location};
use super::paths::Form;
use super::scope::Scope;
use super::units::text;
use super::upstream::Target;

/// The variables that Kirin sets itself.
const OF_KIRIN: [&str; 26] = [
    "AUTH_TYPE",
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "DOCUMENT_ROOT",
    "DOCUMENT_URI",
    "GATEWAY_INTERFACE",
    "HTTPS",
    "HTTP_HOST",
    "HTTP_PROXY",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "QUERY_STRING",
    "REDIRECT_STATUS",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REQUEST_METHOD",
    "REQUEST_SCHEME",
    "REQUEST_URI",
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "SERVER_ADDR",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
];

/// What answers for `fastcgi_pass`.
pub enum FastCgi {
    /// An upstream with these keys.
    Server(Vec<(String, Value)>),
    /// A CGI program or a directory of them, with environment variables.
    Program {
        /// The path of the program or directory.
        path: String,
        /// Variables besides those of CGI.
        environment: Table,
    },
}

/// Reads what belongs to `fastcgi_pass`.
pub fn fastcgi<'a>(
    location: &Location<'a>,
    form: &Form,
    target: &Target,
    context: &Context<'a>,
) -> Result<FastCgi, String> {
    let scope = &location.scope;
    if target.authority.contains("fcgiwrap") {
        let environment = parameters(scope, context, true);
        let path = program(location, form, context)?;
        return Ok(FastCgi::Program { path, environment });
    }
    parameters(scope, context, false);
    let mut keys = Vec::new();
    let script = script_filename(scope);
    let root = directory_of_scripts(location, script, context)?;
    keys.push(("root".to_owned(), text(root)));
    if let Some(directive) = scope.one("fastcgi_index") {
        let index = directive.arg(0);
        if index != "index.php" && index.ends_with(".php") && !index.contains(['/', '$']) {
            keys.push(("index".to_owned(), text(index)));
        }
        context.carried(directive);
    }
    // `location ~ \.php$` is not asked for the paths behind a script.
    if scope.one("fastcgi_split_path_info").is_none() && location.pattern.ends_with("\\.php$") {
        keys.push(("path_info".to_owned(), Value::Boolean(false)));
    }
    if let Some(directive) = scope.one("fastcgi_split_path_info") {
        context.by_itself(directive, "Kirin looks for the script");
    }
    Ok(FastCgi::Server(keys))
}

/// Returns the value of the parameter `SCRIPT_FILENAME`.
fn script_filename<'a>(scope: &Scope<'a>) -> &'a str {
    let parameters = scope.list("fastcgi_param");
    let found = parameters.iter().rev().find(|directive| directive.arg(0) == "SCRIPT_FILENAME");
    found.map_or("$document_root$fastcgi_script_name", |directive| directive.arg(1))
}

/// Returns the directory of the scripts of an upstream.
fn directory_of_scripts<'a>(
    location: &Location<'a>,
    script: &str,
    context: &Context<'a>,
) -> Result<String, String> {
    let variables = context.variables(&location.scope);
    let start = script.split("$fastcgi_script_name").next().unwrap_or_default();
    let directory = match start {
        "$document_root" | "$realpath_root" | "$request_filename" | "" => {
            let roots = location.scope.list_of_any(&["root", "alias"]);
            let root = roots
                .last()
                .ok_or("the directory of the scripts is not known: there is no `root`")?;
            if root.name == "alias" {
                return Err("the scripts are below an `alias`".into());
            }
            context.carried(root);
            variables.constant(root.arg(0))
        }
        fixed if fixed == script => {
            // One script for everything.
            let fixed =
                fixed.replace("$document_root", location.scope.word("root").unwrap_or_default());
            let directory = fixed.rsplit_once('/').map(|(directory, _)| directory.to_owned());
            directory.and_then(|directory| variables.constant(&directory))
        }
        start => variables.constant(start),
    };
    let directory = directory.ok_or("the directory of the scripts has a variable")?;
    let trimmed = directory.trim_end_matches('/');
    Ok(if trimmed.is_empty() { "/".into() } else { trimmed.to_owned() })
}

/// Returns the program or directory of programs that fcgiwrap runs for a location.
fn program<'a>(
    location: &Location<'a>,
    form: &Form,
    context: &Context<'a>,
) -> Result<String, String> {
    let script = script_filename(&location.scope);
    let variables = context.variables(&location.scope);
    if !script.contains("$fastcgi_script_name") && !script.contains("$request_filename") {
        return variables.constant(script).ok_or_else(|| "SCRIPT_FILENAME has a variable".into());
    }
    let root = directory_of_scripts(location, script, context)?;
    let below: String = match location.kind {
        Kind::Expression(_) => {
            let is_text = |segment: &&String| !segment.starts_with('{');
            form.segments.iter().take_while(is_text).map(|segment| format!("/{segment}")).collect()
        }
        _ => location.pattern.trim_end_matches('/').to_owned(),
    };
    Ok(format!("{}{below}", root.trim_end_matches('/')))
}

/// Notes what happens to parameters. Returns those that are environment variables of CGI programs.
fn parameters<'a>(scope: &Scope<'a>, context: &Context<'a>, is_cgi: bool) -> Table {
    let mut environment = Table::new();
    let variables = context.variables(scope);
    for directive in scope.list("fastcgi_param").iter().copied() {
        let name = directive.arg(0);
        if OF_KIRIN.contains(&name) {
            context.by_itself(directive, "Kirin sets the variables of CGI");
            continue;
        }
        match variables.constant(directive.arg(1)).filter(|_| is_cgi && is_variable(name)) {
            Some(value) => {
                environment.insert(name.to_owned(), text(value));
                context.carried(directive);
            }
            None => other_parameter(directive, context),
        }
    }
    environment
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn other_parameter<'a>(directive: &'a Directive, context: &Context<'a>) {
    let text = match directive.arg(0).strip_prefix("HTTP_") {
        Some(_) => "write the field into `request_headers`: it becomes this variable",
        None if directive.arg(0).starts_with("PHP_") => {
            "write it into the pool of php-fpm, as `php_value[…]`"
        }
        None => {
            "write it into the pool of php-fpm, as `env[…]`, or as a field into `request_headers`, \
             which becomes HTTP_…"
        }
    };
    context.left_out(directive, text);
}
