//! The places of each kind of project, and the routes to them.

use crate::config::toml_text::{TomlText, quoted};
use crate::found::{PhpPlan, PsgiPlan, PythonPlan, RubyPlan, ServerPlan, SitePlan, Step};

/// Writes an application that Kirin runs.
pub(super) fn psgi(text: &mut TomlText, plan: &PsgiPlan) {
    text.comment("The application. Kirin starts its workers and replaces those that end.");
    text.line("[[app]]");
    text.line("name = \"web\"");
    text.line(&format!("load = {}", quoted(&plan.load)));
    if !plan.libraries.is_empty() {
        text.comment("Where Perl finds the modules of the project:");
        let libraries = plan.libraries.join(":");
        text.line(&format!("env = {{ PERL5LIB = \"{libraries}:${{PERL5LIB:-}}\" }}"));
    }
    text.comment("Each worker serves one request at a time. The default is 5.");
    text.off("workers = 10");
    text.blank();

    all_paths(text, plan.public);
    if let Some(parent) = plan.static_parent {
        text.blank();
        let directory = if parent == "." { "static" } else { "root/static" };
        text.comment(&format!("The files in {directory} need no worker."));
        route(text, "/static");
        places(text, &[&files_in(parent), "app:web"]);
    }
}

/// Writes a Python application that Kirin runs.
pub(super) fn python(text: &mut TomlText, plan: &PythonPlan, steps: &[Step]) {
    for step in steps {
        text.comment(&format!("Before `kirin serve`, {}: {}", step.purpose, step.command));
    }
    text.comment("The application. Kirin starts its workers and replaces those that end.");
    text.line("[[app]]");
    text.line("name = \"web\"");
    text.line(&format!("load = {}", quoted(&plan.load)));
    text.comment("The virtual environment, if it is not .venv or venv:");
    text.off("env = { VIRTUAL_ENV = \"/srv/venv\" }");
    text.comment("Each worker serves one request at a time. The default is 5.");
    text.off("workers = 10");
    text.blank();
    text.comment(
        "All paths. Kirin asks in this order: pages that the application has put into memory, the \
         application.",
    );
    route(text, "/");
    places(text, &["store", "app:web"]);
    response_settings(text, true);
    if let Some(files) = &plan.static_files {
        text.blank();
        text.comment(&format!("The files in {} need no worker.", files.directory));
        route(text, &files.path);
        places(text, &[&files_in(&files.directory)]);
        text.line("rewrite = \"/\"");
    }
}

/// Writes a Ruby application that Kirin runs.
pub(super) fn ruby(text: &mut TomlText, plan: &RubyPlan, steps: &[Step]) {
    for step in steps {
        text.comment(&format!("Before `kirin serve`, {}: {}", step.purpose, step.command));
    }
    text.comment("The application. Kirin starts its workers and replaces those that end.");
    text.line("[[app]]");
    text.line("name = \"web\"");
    text.line(&format!("load = {}", quoted(plan.load)));
    text.comment("It runs for production, unless this says otherwise:");
    text.off("env = { RACK_ENV = \"development\" }");
    text.comment("The Ruby to run, if it is not the one in PATH:");
    text.off("interpreter = \"ruby\"");
    text.comment("Each worker serves one request at a time. The default is 5.");
    text.off("workers = 10");
    text.blank();
    all_paths(text, plan.public);
    if plan.framework == Some("Rails") && plan.public.is_some() {
        text.blank();
        text.comment("The names of these files change with their contents: browsers keep them.");
        route(text, "/assets");
        places(text, &["files:public", "app:web"]);
        text.line("immutable = true");
    }
}

/// Writes the route of an application that leaves the files in `public` to the web server.
fn all_paths(text: &mut TomlText, public: Option<&str>) {
    let files = match public {
        Some(_) => "files in public, ",
        None => "",
    };
    text.comment(&format!(
        "All paths. Kirin asks in this order: pages that the application has put into memory, \
         {files}the application."
    ));
    route(text, "/");
    match public {
        Some(public) => places(text, &["store", &files_in(public), "app:web"]),
        None => places(text, &["store", "app:web"]),
    }
    response_settings(text, true);
}

/// Writes php-fpm, the document root, and what is not public in it.
pub(super) fn php(text: &mut TomlText, plan: &PhpPlan) {
    text.comment(
        "php-fpm runs the scripts. The user that Kirin runs as must be allowed to connect to its \
         socket (listen.owner and listen.group of the pool).",
    );
    if !plan.has_socket {
        text.comment(
            "No socket of php-fpm was found on this machine. Install php-fpm, and write the path \
             of its socket here:",
        );
    }
    text.line("[[upstream]]");
    text.line("name = \"php\"");
    text.line(&format!("servers = [{}]", quoted(&format!("fastcgi://unix:{}", plan.socket))));
    text.comment("The document root:");
    text.line(&format!("root = {}", quoted(plan.root)));
    text.comment("Further requests wait in Kirin, in turns. Write pm.max_children of the pool:");
    text.off("max_in_flight = 5");
    text.blank();

    text.comment(
        "Files are served, .php is never sent as a file, and all other paths go to index.php.",
    );
    route(text, "/");
    places(text, &[&files_in(plan.root), "proxy:php"]);
    response_settings(text, plan.root != ".");
    for files_only in &plan.files_only {
        text.blank();
        text.comment("Files that visitors upload. No script is run here.");
        route(text, files_only.path);
        places(text, &[&files_in(plan.root)]);
        if files_only.is_link {
            text.comment(
                "The directory is a link, which Kirin follows if the owners are the same:",
            );
            text.line("follow_links = \"owner\"");
        }
        if let Some(path) = files_only.made_below {
            text.blank();
            text.comment("The application makes missing files here.");
            route(text, path);
            places(text, &[&files_in(plan.root), "proxy:php"]);
        }
    }
    denied(text, &plan.denied);
}

/// Writes another server.
pub(super) fn server(text: &mut TomlText, plan: &ServerPlan, steps: &[Step]) {
    text.comment("The application, which runs beside Kirin.");
    for step in steps {
        text.comment(&format!("To {}: {}", step.purpose, step.command));
    }
    if plan.is_guess {
        text.comment("No file names the port, so this one is a guess:");
    }
    text.line("[[upstream]]");
    text.line("name = \"web\"");
    text.line(&format!("servers = [\"http://127.0.0.1:{}\"]", plan.port));
    text.comment("Ask regularly whether the server answers:");
    text.off("health = { path = \"/\" }");
    text.blank();

    let files = match plan.public {
        Some(_) => "files in public, ",
        None => "",
    };
    text.comment(&format!(
        "All paths. Kirin asks in this order: pages in memory, {files}the application."
    ));
    route(text, "/");
    match plan.public {
        Some(public) => places(text, &["store", &files_in(public), "proxy:web"]),
        None => places(text, &["store", "proxy:web"]),
    }
    response_settings(text, true);
}

/// Writes a static site.
pub(super) fn site(text: &mut TomlText, plan: &SitePlan, steps: &[Step]) {
    for step in steps {
        text.comment(&format!(
            "The directory {} is not there yet. Before `kirin serve`, {}: {}",
            plan.directory, step.purpose, step.command
        ));
    }
    text.comment("The files of the site. Names that start with a dot are hidden.");
    route(text, "/");
    places(text, &[&files_in(&plan.directory)]);
    if plan.is_single_page {
        text.comment("The page for all paths that a visitor opens and that are no files:");
        text.line("fallback = \"index.html\"");
    }
    if plan.has_not_found_page {
        text.comment("The page for paths that are not there:");
        text.line("error_pages = { 404 = \"/404.html\" }");
    }
    if plan.immutable.is_some() {
        text.comment("Browsers ask each time whether a page has changed:");
        text.line("headers = { \"Cache-Control\" = \"no-cache\" }");
    } else {
        text.comment("How long browsers may use a file without asking again:");
        text.off("headers = { \"Cache-Control\" = \"max-age=300\" }");
    }
    if plan.directory != "." {
        access_log(text);
    }
    if let Some(path) = plan.immutable {
        text.blank();
        text.comment("The names of these files change with their contents: browsers keep them.");
        route(text, path);
        places(text, &[&files_in(&plan.directory)]);
        text.line("immutable = true");
    }
    denied(text, &plan.denied);
}

/// Writes settings for the responses of a program. `has_log` says whether a log in the directory of
/// the project is private.
fn response_settings(text: &mut TomlText, has_log: bool) {
    text.comment("Keep responses in memory for as long as their Cache-Control allows:");
    text.off("cache = true");
    if has_log {
        access_log(text);
    }
}

fn access_log(text: &mut TomlText) {
    text.comment("Log to a file, and not to the terminal:");
    text.off("access_log = \"access.log\"");
}

fn denied(text: &mut TomlText, paths: &[&str]) {
    if paths.is_empty() {
        return;
    }
    text.blank();
    text.comment(
        "These are not for visitors. All other files of the directory are, except those that start \
         with a dot.",
    );
    for path in paths {
        route(text, path);
        text.line("deny = 404");
    }
}

fn route(text: &mut TomlText, path: &str) {
    text.line("[[route]]");
    text.line(&format!("path = {}", quoted(path)));
}

fn places(text: &mut TomlText, places: &[&str]) {
    let places: Vec<String> = places.iter().map(|place| quoted(place)).collect();
    text.line(&format!("try = [{}]", places.join(", ")));
}

fn files_in(directory: &str) -> String {
    format!("files:{directory}")
}
