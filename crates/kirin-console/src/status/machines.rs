//! The status of all machines with the same origin: a line for each, and the sums.

use std::collections::BTreeMap;

use serde_json::Value;

use super::text::{BOLD, Colours, RED, cell, number, or_zero};
use crate::table::TextTable;
use crate::units::{bytes, count, duration, number_of, plain};

/// The most names of machines in a line.
const MOST_NAMES: usize = 8;

/// Returns the text for the answer of a running Kirin. There are colours if it goes to a terminal.
pub fn describe(json: &str) -> Result<String, String> {
    let answer = serde_json::from_str(json)
        .map_err(|error| format!("what came is no answer of Kirin: {error}"))?;
    Ok(render(&answer, Colours::of_standard_output()))
}

/// Returns the text for an answer.
fn render(answer: &Value, colours: Colours) -> String {
    let machines = answer["machines"].as_array().map(Vec::as_slice).unwrap_or_default();
    let silent: Vec<_> = machines.iter().filter(|machine| !has_answered(machine)).collect();
    let mut text = colours.paint(BOLD, &number_of(machines.len() as u64, "machine"));
    text.push('\n');
    let mut warnings = Vec::new();
    if !silent.is_empty() {
        let names = names(silent.iter().map(|machine| name(machine)));
        warnings.push(format!("no answer: {names}; the sums are those of the others"));
    }
    warnings.extend(difference(machines, "versions", |machine| &machine["version"]));
    for machine in machines {
        let parts = machine["left_out"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let parts: Vec<_> = parts.map(plain).collect();
        if !parts.is_empty() {
            let (name, parts) = (name(machine), parts.join(", "));
            warnings.push(format!("{name}: without {parts}, which are too much"));
        }
    }
    for warning in warnings {
        text.push_str(&colours.paint(RED, &format!("! {warning}")));
        text.push('\n');
    }
    // Machines may have settings of their own, so this is no warning.
    if let Some(line) =
        difference(
            machines,
            "configurations",
            |machine| &machine["status"]["serving"]["configuration"],
        )
    {
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&table(machines, &answer["sum"]).text(|heading| colours.paint(BOLD, heading)));
    text
}

fn has_answered(machine: &Value) -> bool {
    machine["answered"] == true
}

fn name(machine: &Value) -> String {
    plain(machine["name"].as_str().unwrap_or("?"))
}

/// Returns the first names, and how many more there are.
pub fn names(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    let shown = names.get(..MOST_NAMES).unwrap_or(&names).join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// Returns a line if not all machines have the same of something.
fn difference(machines: &[Value], what: &str, of: impl Fn(&Value) -> &Value) -> Option<String> {
    let mut by_value: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for machine in machines {
        if let Some(value) = of(machine).as_str() {
            by_value.entry(plain(value)).or_default().push(name(machine));
        }
    }
    if by_value.len() < 2 {
        return None;
    }
    let groups = by_value.into_iter();
    let groups = groups.map(|(value, of)| format!("{value} ({})", names(of.into_iter())));
    Some(format!("{what} differ: {}", groups.collect::<Vec<_>>().join(", ")))
}

fn table(machines: &[Value], sum: &Value) -> TextTable {
    let mut table = TextTable::new(&[
        "machine",
        "state",
        "version",
        "up",
        "requests",
        "a second",
        "errors",
        "busy",
        "connections",
        "store",
        "origin",
    ]);
    for machine in machines {
        let state = if has_answered(machine) { "answers" } else { "no answer" };
        let version = plain(machine["version"].as_str().unwrap_or_default());
        let up = number(machine, "uptime_seconds").map(duration).unwrap_or_default();
        let head = [name(machine), state.to_owned(), version, up];
        table.row(head.into_iter().chain(numbers(machine)).collect());
    }
    if machines.len() > 1 {
        let head = ["all".to_owned(), String::new(), String::new(), String::new()];
        table.row(head.into_iter().chain(numbers(sum)).collect());
    }
    table
}

/// Returns the cells that a machine and the sum have in common.
fn numbers(of: &Value) -> [String; 7] {
    let status = &of["status"];
    let rate = of["requests_per_second"].as_f64();
    let busy = number(of, "workers").filter(|workers| *workers > 0);
    [
        cell(of, "requests"),
        rate.map(|rate| format!("{rate:.1}")).unwrap_or_default(),
        cell(of, "errors"),
        busy.map(|all| format!("{} of {}", count(or_zero(of, "busy_workers")), count(all)))
            .unwrap_or_default(),
        cell(status, "connections"),
        number(&status["store"], "bytes").map(bytes).unwrap_or_default(),
        plain(status["origin"]["state"].as_str().unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_machine_has_a_line_and_what_differs_comes_first() {
        let machine = |name: &str, version: &str, configuration: &str| {
            json!({
                "name": name, "answered": true, "version": version, "uptime_seconds": 7500,
                "requests": 1234, "requests_per_second": 2.25, "errors": 1, "workers": 8,
                "busy_workers": 2, "left_out": [],
                "status": {
                    "connections": 5, "store": {"bytes": 2048}, "origin": {"state": "connected"},
                    "serving": {"configuration": configuration},
                },
            })
        };
        let mut last = machine("web3", "0.2.0", "bb");
        last["left_out"] = json!(["`apps` of the status"]);
        let answer = json!({
            "machines": [
                machine("web1", "0.1.0", "aa"),
                {"name": "web2\u{1b}", "answered": false, "version": "0.1.0", "uptime_seconds": 59},
                last,
            ],
            "sum": {
                "requests": 2468, "requests_per_second": 4.5, "errors": 2, "workers": 16,
                "busy_workers": 4,
                "status": {"connections": 10, "store": {"bytes": 4096}, "origin": {"state": "connected"}},
            },
        });
        let expected = "\
3 machines
! no answer: web2\u{fffd}; the sums are those of the others
! versions differ: 0.1.0 (web1, web2\u{fffd}), 0.2.0 (web3)
! web3: without `apps` of the status, which are too much
configurations differ: aa (web1), bb (web3)

machine  state      version         up  requests  a second  errors     busy  connections  store  origin
web1     answers    0.1.0    2 h 5 min     1,234       2.2       1   2 of 8            5   2 KB  connected
web2\u{fffd}    no answer  0.1.0         59 s
web3     answers    0.2.0    2 h 5 min     1,234       2.2       1   2 of 8            5   2 KB  connected
all                                        2,468       4.5       2  4 of 16           10   4 KB  connected
";
        let text = render(&answer, Colours::Off);
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn a_single_machine_needs_no_sum() {
        let answer = json!({"machines": [{"name": "a", "answered": true}], "sum": {}});
        assert_eq!(
            render(&answer, Colours::Off),
            "1 machine\n\nmachine  state\na        answers\n"
        );
        assert_eq!(render(&json!({}), Colours::Off).lines().next(), Some("0 machines"));
        let many = names((0..10).map(|number| number.to_string()));
        assert_eq!(many, "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}
