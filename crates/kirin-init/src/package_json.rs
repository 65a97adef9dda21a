//! `package.json`: the dependencies, the scripts, and the server that they start.

use serde_json::{Map, Value};

use crate::evidence::{Evidence, printable};
use crate::found::{Candidate, Plan, ServerPlan, Step};
use crate::project::{Project, Text, is_plain_path};
use crate::started_server::StartedServer;

/// The name of the file.
const FILE: &str = "package.json";

/// Packages that are servers, with their name and default port. `None`: the program chooses.
const SERVERS: [(&str, &str, Option<u16>); 15] = [
    ("next", "Next.js", Some(3000)),
    ("nuxt", "Nuxt", Some(3000)),
    ("@sveltejs/kit", "SvelteKit", Some(3000)),
    ("@remix-run/serve", "Remix", Some(3000)),
    ("@react-router/serve", "React Router", Some(3000)),
    ("@astrojs/node", "Astro", Some(4321)),
    ("@nestjs/core", "NestJS", Some(3000)),
    ("express", "Express", None),
    ("fastify", "Fastify", None),
    ("koa", "Koa", None),
    ("@hapi/hapi", "hapi", None),
    ("hono", "Hono", None),
    ("restify", "restify", None),
    ("polka", "Polka", None),
    ("socket.io", "Socket.IO", None),
];

/// The parts of a `package.json` that matter here.
#[derive(Debug)]
pub(crate) struct Package {
    text: Text,
    root: Map<String, Value>,
}

impl Package {
    /// Reads the file. `None` if there is none, or no usable one, which is noted.
    pub(crate) fn read(project: &Project) -> Option<Self> {
        let text = project.text(FILE)?;
        // serde_json refuses deeply nested values itself.
        match serde_json::from_str(&text.text) {
            Ok(Value::Object(root)) => Some(Self { text, root }),
            Ok(_) => {
                project.note_problem(Evidence::of_file(FILE, "is not a JSON object"));
                None
            }
            Err(error) => {
                let fact = format!("is not JSON: {error}");
                project.note_problem(Evidence::of_file(FILE, fact));
                None
            }
        }
    }

    /// Says whether the project needs the package `name`, to run or to be built.
    pub(crate) fn needs(&self, name: &str) -> bool {
        self.has("dependencies", name) || self.has("devDependencies", name)
    }

    fn has(&self, key: &str, name: &str) -> bool {
        self.root.get(key).is_some_and(|packages| packages.get(name).is_some())
    }

    /// Returns the command of a script.
    pub(crate) fn script(&self, name: &str) -> Option<&str> {
        self.root.get("scripts")?.get(name)?.as_str()
    }

    /// Returns the name of the package, if it is a plain one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.root.get("name").and_then(Value::as_str).filter(|name| is_plain_path(name))
    }

    /// Makes evidence of the first line that has `key` as a key.
    pub(crate) fn evidence(&self, key: &str, fact: impl AsRef<str>) -> Evidence {
        let quoted = format!("\"{key}\"");
        let is_key =
            |line: &str| line.split(&quoted).skip(1).any(|rest| rest.trim_start().starts_with(':'));
        let line = self.text.lines().find(|(_, line)| is_key(line)).map(|(number, _)| number);
        Evidence::of_line(FILE, line, fact)
    }
}

/// Finds a server that a package of the project is.
pub(crate) fn find_server(project: &Project, package: &Package) -> Option<Candidate> {
    // A library such as Express may be there for tests or for the server of a builder.
    let is_needed = |(key, _, port): &(&str, &str, Option<u16>)| match port {
        Some(_) => package.needs(key),
        None => package.has("dependencies", key),
    };
    let (key, name, port) = SERVERS.into_iter().find(is_needed)?;
    let evidence = vec![package.evidence(key, format!("needs {name}"))];
    Some(started(project, package, evidence, port))
}

/// Finds a script that starts something, of which nothing more is known.
pub(crate) fn find_script(project: &Project, package: &Package) -> Option<Candidate> {
    package.script("start")?;
    Some(started(project, package, Vec::new(), None))
}

/// Returns the candidate for the script that starts the server. `port` is that of the framework.
fn started(
    project: &Project,
    package: &Package,
    mut evidence: Vec<Evidence>,
    port: Option<u16>,
) -> Candidate {
    let script =
        ["start", "serve", "dev"].into_iter().find_map(|name| Some((name, package.script(name)?)));
    let mut server = StartedServer::from_command(script.map_or("", |(_, command)| command));
    if let Some((name, command)) = script {
        evidence.push(package.evidence(name, format!("has the script {name}: {command}")));
    }
    if let Some(port) = port.filter(|_| server.is_guess) {
        server.port = port;
        server.is_guess = false;
        server.remark = Some(format!("names no port: {port} is the default of the framework"));
    }
    evidence.extend(server.remark.map(|remark| Evidence::of_file(FILE, remark)));
    let run = runner(project);
    let mut steps = Vec::new();
    if package.script("start").is_some() && package.script("build").is_some() {
        steps.push(Step { purpose: "build the application", command: format!("{run} run build") });
    }
    let run_script = match script {
        Some(("start", _)) => format!("{run} start"),
        Some((name, _)) => format!("{run} run {name}"),
        None => format!("node {}", main_file(package)),
    };
    let start = match server.command.starts_with("PORT=") {
        true => format!("PORT={} {run_script}", server.port),
        false => run_script,
    };
    steps.push(Step { purpose: "start the application", command: printable(&start) });
    let plan = ServerPlan { port: server.port, is_guess: server.is_guess, public: None };
    Candidate { plan: Plan::Server(plan), evidence, steps }
}

/// Returns the program that runs scripts, by the lock file that it has left.
pub(crate) fn runner(project: &Project) -> &'static str {
    match project.first_file(&["pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb"]) {
        Some("pnpm-lock.yaml") => "pnpm",
        Some("yarn.lock") => "yarn",
        Some(_) => "bun",
        None => "npm",
    }
}

fn main_file(package: &Package) -> &str {
    let main = package.root.get("main").and_then(Value::as_str);
    main.filter(|main| is_plain_path(main)).unwrap_or("server.js")
}
