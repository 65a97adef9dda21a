//! `match` of a step: its conditions as paths, hosts and the `match` of Kirin's routes.

use toml::{Table, Value};

use crate::steps::{PathPattern, Scope};
use crate::unit::json::{Json, Node};
use crate::unit::patterns::{client, host, path, value};

/// The most combinations of alternatives that are written as routes.
const MOST_ALTERNATIVES: usize = 64;

/// The conditions of a step.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    /// One of them must hold. If there are problems, they hold for more requests than in Unit.
    pub(crate) alternatives: Vec<Scope>,
    /// What Kirin cannot write, each with its line.
    pub(crate) problems: Vec<(usize, String)>,
    /// What holds only nearly, each with its line.
    pub(crate) remarks: Vec<(usize, String)>,
    /// Whether the addresses of clients are among the conditions.
    pub(crate) by_client: bool,
}

impl Conditions {
    /// Returns the conditions of a step without `match`.
    pub(crate) fn none() -> Self {
        Self {
            alternatives: vec![Scope::default()],
            problems: Vec::new(),
            remarks: Vec::new(),
            by_client: false,
        }
    }

    /// Reads `match`.
    pub(crate) fn read(node: &Node) -> Self {
        let mut conditions = Self::none();
        for entry in node.entries() {
            let line = entry.line;
            let found = match entry.key.as_str() {
                "uri" => conditions.uri(line, &entry.node),
                "host" => conditions.host(&entry.node),
                "method" => conditions.list("methods", &entry.node, method),
                "source" => {
                    conditions.by_client = true;
                    conditions.list("clients", &entry.node, client)
                }
                "scheme" => conditions.scheme(&entry.node),
                key @ ("headers" | "cookies" | "arguments") => {
                    let key = if key == "arguments" { "query" } else { key };
                    conditions.fields(key, &entry.node)
                }
                "query" => {
                    Err("Kirin compares arguments (`arguments`), not the whole query".into())
                }
                "destination" => Err("every listener of Kirin serves all routes".into()),
                "if" => Err("conditions of njs and of variables are not there".into()),
                _ => Err("not known here".into()),
            };
            if let Err(problem) = found {
                conditions.problems.push((line, format!("`{}`: {problem}", entry.key)));
            }
        }
        conditions
    }

    /// Returns the conditions of a step inside routes to which a step passes.
    pub(crate) fn inside(&self, outer: &Scope) -> Self {
        let mut both = self.clone();
        both.alternatives.clear();
        for inner in &self.alternatives {
            match outer.both(inner) {
                Ok(found) => both.alternatives.extend(found),
                Err(problem) => {
                    both.problems.push((0, problem));
                    both.alternatives.push(outer.clone());
                }
            }
        }
        both
    }

    fn uri(&mut self, line: usize, node: &Node) -> Result<(), String> {
        let (mut paths, mut problem) = (Vec::new(), None);
        for pattern in texts(node)? {
            if pattern.starts_with('!') {
                problem = Some(format!("`{pattern}`: Kirin has no path that must not match"));
                continue;
            }
            let read = path(pattern);
            paths.extend(read.paths);
            if let Some(remark) = read.remark {
                self.remarks.push((line, format!("`uri`: {remark}")));
            }
            problem = problem.or(read.problem);
        }
        if problem.is_some() && paths.is_empty() {
            paths.push(PathPattern::everything());
        }
        for alternative in &mut self.alternatives {
            alternative.paths.clone_from(&paths);
        }
        problem.map_or(Ok(()), Err)
    }

    fn host(&mut self, node: &Node) -> Result<(), String> {
        let hosts: Vec<_> = texts(node)?.into_iter().map(host).collect::<Result<_, _>>()?;
        for alternative in &mut self.alternatives {
            alternative.hosts.clone_from(&hosts);
        }
        Ok(())
    }

    /// Reads a list of which one element must match, and of which those with `!` must not.
    fn list(
        &mut self,
        key: &str,
        node: &Node,
        read: fn(&str) -> Result<String, String>,
    ) -> Result<(), String> {
        let (mut any, mut none) = (Vec::new(), Vec::new());
        for pattern in texts(node)? {
            match pattern.strip_prefix('!') {
                Some(pattern) => none.push(Value::from(read(pattern)?)),
                None => any.push(Value::from(read(pattern)?)),
            }
        }
        for alternative in &mut self.alternatives {
            if !any.is_empty() {
                alternative.conditions.insert(key.to_owned(), Value::Array(any.clone()));
            }
            if !none.is_empty() {
                let none = Value::Array(none.clone());
                set_not(&mut alternative.conditions, |not| drop(not.insert(key.to_owned(), none)));
            }
        }
        Ok(())
    }

    fn scheme(&mut self, node: &Node) -> Result<(), String> {
        let scheme = match node.text() {
            Some("http" | "!https") => "http",
            Some("https" | "!http") => "https",
            _ => return Err("it is `http` or `https`".to_owned()),
        };
        for alternative in &mut self.alternatives {
            alternative.conditions.insert("scheme".to_owned(), scheme.into());
        }
        Ok(())
    }

    /// Reads `headers`, `arguments` or `cookies`: objects of which one must match.
    fn fields(&mut self, key: &str, node: &Node) -> Result<(), String> {
        let before = std::mem::take(&mut self.alternatives);
        let mut after = Vec::new();
        for object in node.elements() {
            let mut choices = before.clone();
            for entry in object.entries() {
                let found = with_field(&choices, key, &entry.key, &entry.node);
                match found {
                    Ok(found) => choices = found,
                    Err(problem) => {
                        self.alternatives = before;
                        return Err(problem);
                    }
                }
            }
            after.extend(choices);
        }
        if after.is_empty() || after.len() > MOST_ALTERNATIVES {
            self.alternatives = before;
            return Err("too many alternatives".to_owned());
        }
        self.alternatives = after;
        Ok(())
    }
}

/// Returns the alternatives with a condition on a field, an argument or a cookie.
fn with_field(
    alternatives: &[Scope],
    key: &str,
    name: &str,
    node: &Node,
) -> Result<Vec<Scope>, String> {
    let patterns = texts(node)?;
    let (none, any): (Vec<&str>, Vec<&str>) =
        patterns.iter().partition(|text| text.starts_with('!'));
    if none.len() > 1 {
        return Err(format!("`{name}` has more than one value that must not be"));
    }
    let mut choices = Vec::new();
    for alternative in alternatives {
        let mut alternative = alternative.clone();
        for pattern in &none {
            let forbidden = value(pattern.trim_start_matches('!'))?;
            let set = |not: &mut Table| set_field(not, key, name, forbidden.into());
            set_not(&mut alternative.conditions, set);
        }
        if any.is_empty() {
            choices.push(alternative.clone());
        }
        for pattern in &any {
            let mut choice = alternative.clone();
            set_field(&mut choice.conditions, key, name, value(pattern)?.into());
            choices.push(choice);
        }
        if choices.len() > MOST_ALTERNATIVES {
            return Err("too many alternatives".to_owned());
        }
    }
    Ok(choices)
}

fn set_field(conditions: &mut Table, key: &str, name: &str, value: Value) {
    let fields = conditions.entry(key).or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(fields) = fields {
        fields.insert(name.to_owned(), value);
    }
}

/// Sets a condition that must not hold.
fn set_not(conditions: &mut Table, set: impl FnOnce(&mut Table)) {
    let not = conditions.entry("not").or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(not) = not {
        set(not);
    }
}

fn method(method: &str) -> Result<String, String> {
    let plain = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    plain.then(|| method.to_ascii_uppercase()).ok_or_else(|| format!("`{method}` is a pattern"))
}

fn texts(node: &Node) -> Result<Vec<&str>, String> {
    if let Json::List(list) = &node.value
        && list.is_empty()
    {
        return Err("the list is empty, so nothing matches".to_owned());
    }
    let texts = node.elements().iter().map(Node::text).collect::<Option<Vec<_>>>();
    texts.ok_or_else(|| "it is a text or a list of texts".to_owned())
}
