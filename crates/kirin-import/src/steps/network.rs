//! Addresses and networks.

use std::net::IpAddr;

/// Returns an address or a network as Kirin writes it: without address bits behind the prefix.
pub(crate) fn network(text: &str) -> Option<String> {
    let Some((address, bits)) = text.split_once('/') else {
        return text.parse::<IpAddr>().ok().map(|address| address.to_string());
    };
    let bits: u32 = match bits.parse() {
        Ok(bits) => bits,
        Err(_) => mask_bits(bits)?,
    };
    match address.parse().ok()? {
        IpAddr::V4(address) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            let network = std::net::Ipv4Addr::from_bits(address.to_bits() & mask);
            Some(format!("{network}/{bits}"))
        }
        IpAddr::V6(address) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            let network = std::net::Ipv6Addr::from_bits(address.to_bits() & mask);
            Some(format!("{network}/{bits}"))
        }
        _ => None,
    }
}

/// Returns the length of a mask such as `255.255.0.0`.
fn mask_bits(mask: &str) -> Option<u32> {
    let mask = mask.parse::<std::net::Ipv4Addr>().ok()?.to_bits();
    (mask.leading_ones() + mask.trailing_zeros() == 32).then(|| mask.leading_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_no_bits_behind_their_prefix() {
        for (text, expected) in [
            ("10.1.2.3", Some("10.1.2.3")),
            ("127.0.0.1/8", Some("127.0.0.0/8")),
            ("10.1.0.0/255.255.0.0", Some("10.1.0.0/16")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("2001:DB8::1/32", Some("2001:db8::/32")),
            ("::/0", Some("::/0")),
            ("10.0.0.0/33", None),
            ("10.0.0.0/255.0.255.0", None),
            ("example.com", None),
        ] {
            assert_eq!(network(text).as_deref(), expected, "{text}");
        }
    }
}
