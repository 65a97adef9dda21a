//! Steps for some hosts as sites: each host has the steps that cover it.

use std::collections::{HashMap, HashSet};

use crate::draft::site::Site;
use crate::error::ImportError;
use crate::report::Place;
use crate::steps::scope::host_covers;
use crate::steps::step::Step;

/// The most hosts times steps that are compared.
const MOST_COMPARISONS: usize = 4_000_000;

/// A step and the hosts that it is for. Without hosts it is for all.
#[derive(Debug, Clone)]
pub(crate) struct HostStep {
    pub(crate) hosts: Vec<String>,
    pub(crate) step: Step,
}

/// Returns the sites.
///
/// # Errors
/// Returns an error if there are too many hosts and steps.
pub(crate) fn sites(steps: Vec<HostStep>, place: &Place) -> Result<Vec<Site>, ImportError> {
    let mut hosts: Vec<&str> = Vec::new();
    let mut known = HashSet::new();
    for host in steps.iter().flat_map(|step| &step.hosts) {
        if known.insert(host.as_str()) {
            hosts.push(host);
        }
    }
    if (hosts.len() + 1).saturating_mul(steps.len()) > MOST_COMPARISONS {
        let message = "there are too many hosts and steps. Import them one by one.".into();
        return Err(ImportError { place: place.clone(), message });
    }
    let mut sites: Vec<(Vec<usize>, Site)> = Vec::new();
    let mut by_steps: HashMap<Vec<usize>, usize> = HashMap::new();
    for host in hosts {
        let applies = |step: &HostStep| {
            step.hosts.is_empty() || step.hosts.iter().any(|pattern| host_covers(pattern, host))
        };
        let numbers: Vec<_> = numbers(&steps, applies);
        let index = *by_steps.entry(numbers.clone()).or_insert_with(|| {
            sites.push((numbers, Site::default()));
            sites.len() - 1
        });
        if let Some((_, site)) = sites.get_mut(index) {
            site.hosts.push(host.to_owned());
        }
    }
    let all = numbers(&steps, |step| step.hosts.is_empty());
    if !all.is_empty() {
        sites.push((all, Site::default()));
    }
    let steps: Vec<Step> = steps.into_iter().map(|step| step.step).collect();
    let with_steps = |(numbers, mut site): (Vec<usize>, Site)| {
        site.steps = numbers.into_iter().filter_map(|number| steps.get(number).cloned()).collect();
        site
    };
    Ok(sites.into_iter().map(with_steps).collect())
}

fn numbers(steps: &[HostStep], applies: impl Fn(&HostStep) -> bool) -> Vec<usize> {
    let numbered = steps.iter().enumerate();
    numbered.filter(|(_, step)| applies(step)).map(|(number, _)| number).collect()
}
