//! The settings of the mirror of a route.

use std::fmt;
use std::sync::Arc;

use http::Method;
use kirin_http::RequestId;
use xxhash_rust::xxh3::xxh3_64;

use super::counters::MirrorCounters;
use super::ignored_parts::IgnoredParts;

/// The settings of the mirror of a route. All loops share them.
#[derive(Debug)]
pub struct MirrorSettings {
    /// The upstream that gets the copies, by its index in the configuration.
    pub upstream: usize,
    /// The same as it is written, such as `proxy:next`.
    pub to: String,
    /// The part of the requests that are copied.
    pub share: Share,
    /// The methods of the requests that are copied. `HEAD` goes with `GET`.
    pub methods: Vec<Method>,
    /// The parts of bodies that are not compared.
    pub ignored: Arc<IgnoredParts>,
    /// The counters of the route.
    pub counters: Arc<MirrorCounters>,
}

impl MirrorSettings {
    /// Returns whether a request with this method is one of those that are copied.
    pub fn has_method(&self, method: &Method) -> bool {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        self.methods.contains(method)
    }
}

impl fmt::Display for MirrorSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<&str> = self.methods.iter().map(Method::as_str).collect();
        let (to, share, methods) = (&self.to, self.share, methods.join(" and "));
        write!(f, "{to} gets a copy of {share} of the {methods} requests that reach code")
    }
}

/// A part of all requests. The id of a request decides whether it belongs to the part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    percent: f64,
    /// The hashes below this belong to the part: 0 for none, 2^64 for all.
    limit: u128,
}

impl Share {
    /// All requests.
    pub const ALL: Self = Self { percent: 100.0, limit: 1 << 64 };

    /// Parses a percentage, such as `10%` or `0.5%`. Returns `None` for another text.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_suffix('%')?.trim_end();
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let percent: f64 = digits.parse().ok().filter(|_| is_plain)?;
        // The product is at most 2^64.
        let limit = (percent / 100.0 * (1_u128 << 64) as f64) as u128;
        (0.0..=100.0).contains(&percent).then_some(Self { percent, limit })
    }

    /// Returns whether the request with this id belongs to the part. Hashes of ids are spread
    /// evenly, and do not depend on the order in which requests come.
    pub fn includes(self, id: &RequestId) -> bool {
        let hash = match id {
            RequestId::Made(number) => xxh3_64(&number.to_le_bytes()),
            RequestId::Taken(text) => xxh3_64(text.as_bytes()),
        };
        u128::from(hash) < self.limit
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent)
    }
}

#[cfg(test)]
mod tests {
    use kirin_http::RequestIds;

    use super::*;

    #[test]
    fn a_share_includes_its_part_of_the_requests() {
        let ids = RequestIds::default();
        for (text, expected) in
            [("0%", 0), ("100%", 10_000), ("50%", 5000), ("10 %", 1000), ("0.5%", 50)]
        {
            let share = Share::parse(text).unwrap();
            let requests = (0..10_000).map(|_| RequestId::Made(ids.next_number()));
            let chosen = requests.filter(|id| share.includes(id)).count();
            // Nine standard deviations of the binomial distribution.
            let part: f64 = f64::from(expected) / 10_000.0;
            let tolerance = 9.0 * (10_000.0 * part * (1.0 - part)).sqrt();
            let distance = (chosen as f64 - f64::from(expected)).abs();
            assert!(distance <= tolerance, "{text}: {chosen}");
        }
        let taken = RequestId::Taken("7b1f-22".into());
        assert!(Share::ALL.includes(&taken) && Share::parse("100%") == Some(Share::ALL));
    }

    #[test]
    fn a_share_is_a_percentage() {
        for text in ["", "%", "10", "101%", "-1%", "1e1%", "nan%", "inf%", "a%", "1.2.3%", "+1%"] {
            assert_eq!(Share::parse(text), None, "{text}");
        }
        for text in ["0%", "0.5%", "33.3%", "100%"] {
            assert_eq!(Share::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn head_goes_with_get() {
        let settings = |methods: &[Method]| MirrorSettings {
            upstream: 0,
            to: "proxy:next".into(),
            share: Share::ALL,
            methods: methods.to_vec(),
            ignored: Arc::default(),
            counters: Arc::default(),
        };
        let reading = settings(&[Method::GET]);
        assert!(reading.has_method(&Method::GET) && reading.has_method(&Method::HEAD));
        assert!(!reading.has_method(&Method::POST));
        assert!(!settings(&[Method::POST]).has_method(&Method::HEAD));
        let both = settings(&[Method::GET, Method::POST]).to_string();
        let expected =
            "proxy:next gets a copy of 100% of the GET and POST requests that reach code";
        assert_eq!(both, expected);
    }
}
