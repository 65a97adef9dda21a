//! `upstreams`: servers with their weights.

use toml::{Table, Value};

use crate::draft::Draft;
use crate::report::Place;
use crate::section::Section;
use crate::unit::json::{Entry, Json, Node};
use crate::unit::targets::Targets;

/// The largest factor by which weights are multiplied so that they have no fraction.
const MOST_FACTOR: u32 = 100;

/// Reads an upstream.
pub(crate) fn upstream(entry: &Entry, place: &Place, draft: &mut Draft, targets: &mut Targets) {
    let directive = format!("\"{}\": {{…}}", entry.key);
    let servers = entry.node.get("servers").map(Node::entries).unwrap_or_default();
    let weights: Vec<f64> = servers.iter().map(weight).collect();
    let factor = factor(&weights);
    let mut list = Vec::new();
    for (server, weight) in servers.iter().zip(&weights) {
        let weight = whole(weight * factor);
        if weight == 0 {
            let place = Place { line: server.line, ..place.clone() };
            let text = "a weight of 0 stands for no requests: `kirin upstream disable` does this";
            draft.notes.left_out(&place, &server.key, text);
        } else if weight == 1 {
            list.push(Value::from(server.key.as_str()));
        } else {
            list.push(Value::Table(Table::from_iter([
                ("address".to_owned(), Value::from(server.key.as_str())),
                ("weight".to_owned(), Value::from(weight)),
            ])));
        }
    }
    if list.is_empty() {
        draft.notes.left_out(place, &directive, "it has no servers");
        return;
    }
    let mut keys = Section::default();
    keys.comment(place.to_string());
    keys.set("servers", list);
    let name = targets.upstreams.add_own(&entry.key, keys);
    targets.add(format!("upstreams/{}", entry.key), format!("proxy:{name}"));
    draft.notes.carried(place, &directive, "");
}

fn weight(server: &Entry) -> f64 {
    match server.node.get("weight").map(|node| &node.value) {
        Some(Json::Number(weight)) => weight.clamp(0.0, 1000.0),
        _ => 1.0,
    }
}

/// Returns the smallest factor that makes all weights whole numbers.
fn factor(weights: &[f64]) -> f64 {
    let is_whole = |number: f64| (number - number.round()).abs() < 1e-6;
    let factors = (1..=MOST_FACTOR).map(f64::from);
    let mut good = factors.filter(|factor| weights.iter().all(|weight| is_whole(weight * factor)));
    good.next().unwrap_or_else(|| f64::from(MOST_FACTOR))
}

/// Returns a weight as a whole number. A small weight that is not 0 is at least 1.
#[allow(clippy::cast_possible_truncation)]
fn whole(weight: f64) -> i64 {
    if weight > 0.0 { (weight.round() as i64).max(1) } else { 0 }
}
