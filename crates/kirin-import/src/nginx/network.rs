//! Addresses and networks of clients.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns an address or a network as Kirin reads it. The bits behind the prefix of a network are
/// cleared: nginx ignores them, and Kirin refuses them. Returns `None` for everything else, such as
/// a name.
pub fn network(text: &str) -> Option<String> {
    if text == "unix:" {
        return Some(text.to_owned());
    }
    let Some((address, bits)) = text.split_once('/') else {
        return text.parse::<IpAddr>().ok().filter(is_written_so).map(|ip| ip.to_string());
    };
    let bits: u32 = bits.parse().ok()?;
    let network = match address.parse::<IpAddr>().ok().filter(is_written_so)? {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
            Ipv4Addr::from(u32::from(ip) & mask).to_string()
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(bits)?).unwrap_or(0);
            Ipv6Addr::from(u128::from(ip) & mask).to_string()
        }
    };
    Some(format!("{network}/{bits}"))
}

/// Returns whether the address is not an IPv4 address in the form of an IPv6 address.
fn is_written_so(ip: &IpAddr) -> bool {
    !matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_no_bits_behind_their_prefix() {
        for (text, expected) in [
            ("10.1.2.3/8", Some("10.0.0.0/8")),
            ("10.1.2.3", Some("10.1.2.3")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("2001:db8::1/32", Some("2001:db8::/32")),
            ("::/0", Some("::/0")),
            ("unix:", Some("unix:")),
            ("10.0.0.0/33", None),
            ("localhost", None),
            ("::ffff:10.0.0.1", None),
        ] {
            assert_eq!(network(text).as_deref(), expected, "{text}");
        }
    }
}
