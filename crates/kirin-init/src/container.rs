//! Containers: the port that a Dockerfile exposes or a Compose file publishes.

use crate::command_port::port_of;
use crate::evidence::Evidence;
use crate::found::{Candidate, Plan, ServerPlan, Step};
use crate::project::{Project, Text};

/// The names of Compose files, in the order in which Compose takes them.
const COMPOSE_FILES: [&str; 4] =
    ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];

/// Ports of databases and similar services, which do not speak HTTP.
const NOT_HTTP: [u16; 10] = [22, 25, 1025, 1433, 3306, 5432, 5672, 6379, 11211, 27017];

/// Images of web servers. Kirin takes their place if they serve files only.
const WEB_SERVERS: [&str; 4] = ["nginx", "httpd", "caddy", "static-web-server"];

/// Finds the port of a Dockerfile. `of_web_server` says which images count: those of web servers,
/// or all others.
pub(crate) fn find_dockerfile(project: &Project, of_web_server: bool) -> Option<Candidate> {
    let path = project.first_file(&["Dockerfile", "Containerfile"])?;
    let text = project.text(path)?;
    let (line, port, is_web_server) = exposed(&text)?;
    if is_web_server != of_web_server {
        return None;
    }
    let evidence = vec![Evidence::of_line(path, Some(line), format!("names port {port}"))];
    let run = "docker build -t app . && docker run";
    let command = format!("{run} -p 127.0.0.1:{port}:{port} app");
    Some(candidate(port, evidence, command))
}

/// Finds the port that the first service of a Compose file publishes.
pub(crate) fn find_compose(project: &Project) -> Option<Candidate> {
    let path = project.first_file(&COMPOSE_FILES)?;
    let text = project.text(path)?;
    let (line, port) = published(&text)?;
    let evidence = vec![Evidence::of_line(path, Some(line), format!("publishes port {port}"))];
    Some(candidate(port, evidence, "docker compose up".into()))
}

fn candidate(port: u16, evidence: Vec<Evidence>, command: String) -> Candidate {
    let plan = ServerPlan { port, is_guess: false, public: None };
    let steps = vec![Step { purpose: "start the application", command }];
    Candidate { plan: Plan::Server(plan), evidence, steps }
}

/// Returns the port of the last stage with its line, and whether its image is a web server.
pub(crate) fn exposed(text: &Text) -> Option<(usize, u16, bool)> {
    let mut is_web_server = false;
    let mut port = None;
    let mut variable = None;
    for (number, line) in text.lines() {
        let mut words = line.split_whitespace();
        match words.next().unwrap_or_default().to_ascii_uppercase().as_str() {
            "FROM" => {
                let image = words.find(|word| !word.starts_with("--")).unwrap_or_default();
                is_web_server = WEB_SERVERS.iter().any(|name| image.contains(name));
                port = None;
                variable = None;
            }
            "EXPOSE" if port.is_none() => {
                port = words
                    .next()
                    .and_then(|word| port_of(word.split('/').next().unwrap_or(word)))
                    .map(|port| (number, port));
            }
            "ENV" | "ARG" if variable.is_none() => variable = variable_port(words, number),
            _ => {}
        }
    }
    // The application decides by PORT, so this counts even if EXPOSE is missing.
    let (line, port) = port.or(variable)?;
    Some((line, port, is_web_server))
}

/// Returns the value in `PORT=3000` or `PORT 3000`.
fn variable_port<'a>(words: impl Iterator<Item = &'a str>, line: usize) -> Option<(usize, u16)> {
    let mut is_value = false;
    for word in words {
        let value = word.strip_prefix("PORT=").or(is_value.then_some(word));
        if let Some(port) = value.and_then(|value| port_of(value.trim_matches(['"', '\'']))) {
            return Some((line, port));
        }
        is_value = word == "PORT";
    }
    None
}

/// Returns the first published port with its line. Only the short form is read: `- "8000:80"`.
pub(crate) fn published(text: &Text) -> Option<(usize, u16)> {
    let mut is_in_ports = false;
    for (number, line) in text.lines() {
        let line = line.split(" #").next().unwrap_or(line).trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(entry) = line.strip_prefix('-').filter(|_| is_in_ports) else {
            is_in_ports = line == "ports:";
            continue;
        };
        if let Some(port) = host_port(entry.trim().trim_matches(['"', '\''])) {
            return Some((number, port));
        }
    }
    None
}

/// Returns the port of the host in `[ADDRESS:]HOST:CONTAINER`. A port alone is that of the
/// container, and Docker chooses the other.
fn host_port(entry: &str) -> Option<u16> {
    let entry = entry.strip_suffix("/tcp").unwrap_or(entry);
    let (host, container) = entry.rsplit_once(':')?;
    let container = port_of(container)?;
    let host = port_of(host)?;
    (!NOT_HTTP.contains(&container)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Text {
        Text { text: text.into() }
    }

    #[test]
    fn the_last_stage_of_a_dockerfile_names_the_port() {
        for (dockerfile, expected) in [
            ("FROM node\nEXPOSE 3000\n", Some((2, 3000, false))),
            ("FROM node\nEXPOSE 3000/tcp 9000\n", Some((2, 3000, false))),
            ("FROM node\nENV PORT=4000\nEXPOSE $PORT\n", Some((2, 4000, false))),
            ("FROM node\nENV A=1 PORT=\"4000\"\n", Some((2, 4000, false))),
            ("FROM node\nENV PORT 4001\n", Some((2, 4001, false))),
            ("FROM node AS build\nEXPOSE 1\nFROM nginx:alpine\nexpose 80\n", Some((4, 80, true))),
            ("FROM --platform=linux/amd64 caddy\nEXPOSE 80\n", Some((2, 80, true))),
            ("FROM node\nEXPOSE nonsense\n", None),
            ("FROM node\n", None),
        ] {
            assert_eq!(exposed(&text(dockerfile)), expected, "{dockerfile}");
        }
    }

    #[test]
    fn a_compose_file_publishes_a_port_of_the_host() {
        for (compose, expected) in [
            ("services:\n  web:\n    ports:\n      - \"8000:80\"\n", Some((4, 8000))),
            ("ports:\n- 127.0.0.1:8001:80\n", Some((2, 8001))),
            ("ports:\n- 8000:80/tcp # web\n", Some((2, 8000))),
            ("ports:\n  - \"${PORT:-8002}:80\"\n", Some((2, 8002))),
            ("ports:\n  # none\n  - 5432:5432\n  - 3000:3000\n", Some((4, 3000))),
            ("ports:\n  - 3000\n", None),
            ("volumes:\n  - 3000:3000\n", None),
        ] {
            assert_eq!(published(&text(compose)), expected, "{compose}");
        }
    }
}
