//! The flags of the meta commands.
//!
//! A flag is one character with an optional argument. Some flags change the command, and others
//! request a field in the answer, in the order in which they were written. So [`MetaFlags`] keeps
//! both: the effects as fields, and the text, which is read again for the answer.

use super::extension::{Extension, ExtensionError};
use super::number::{Exptime, parse_i32, parse_u32, parse_u64};
use super::tokens::Keys;

/// The longest opaque token in bytes, with its `O` (`MFLAG_MAX_OPAQUE_LENGTH` of memcached).
const OPAQUE_LIMIT_BYTES: usize = 32;

const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";

/// The flags of a meta command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetaFlags<'a> {
    /// `q`: no answer in the usual case.
    pub quiet: bool,
    /// `b`: the key is in base64.
    pub base64: bool,
    /// `v`: the answer has the value.
    pub value: bool,
    /// `u`: the command does not count as a use of the item.
    pub no_bump: bool,
    /// `I`: the item becomes stale.
    pub invalidate: bool,
    /// `x`: the value is deleted and the item stays (memcached 1.6.22).
    pub empty_value: bool,
    /// `N`: creates the item on a miss, with this expiry time.
    pub vivify: Option<Exptime>,
    /// `T`: the new expiry time.
    pub ttl: Option<Exptime>,
    /// `R`: the client recaches the item if it has less time left than this.
    pub recache: Option<Exptime>,
    /// `C`: the CAS unique that the item must have.
    pub cas: Option<u64>,
    /// `E`: the item's new CAS unique (memcached 1.6.22).
    pub new_cas: Option<u64>,
    /// `F`: the client flags.
    pub client_flags: u32,
    /// `M`: the mode.
    pub mode: Option<u8>,
    /// `D`: the number to add or to subtract.
    pub delta: Option<u64>,
    /// `J`: the value of a number that is created.
    pub initial: u64,
    /// `P`: Kirin's extension: tags, and invalidation by tag or prefix.
    pub extension: Extension<'a>,
    written: Keys<'a>,
}

impl<'a> MetaFlags<'a> {
    /// Reads the flags after the key, or after the length.
    ///
    /// As memcached does, this continues after a bad argument and reports the last one. It stops at
    /// an unknown flag or a duplicate.
    pub(super) fn parse(written: Keys<'a>) -> Result<MetaFlags<'a>, &'static str> {
        let mut flags = MetaFlags { written, ..MetaFlags::default() };
        let mut error = None;
        let mut seen: u128 = 0;
        for token in written {
            let [name, argument @ ..] = token else { continue };
            if *name >= 127 || seen & (1 << name) != 0 {
                return Err("CLIENT_ERROR duplicate flag");
            }
            seen |= 1 << name;
            let exptime = || parse_i32(argument).map(Exptime).ok_or(BAD_TOKEN);
            let read = match name {
                b'N' => exptime().map(|exptime| flags.vivify = Some(exptime)),
                b'T' => exptime().map(|exptime| flags.ttl = Some(exptime)),
                b'R' => exptime().map(|exptime| flags.recache = Some(exptime)),
                b'C' => parse_u64(argument).ok_or(BAD_TOKEN).map(|cas| flags.cas = Some(cas)),
                b'E' => parse_u64(argument).ok_or(BAD_TOKEN).map(|cas| flags.new_cas = Some(cas)),
                b'D' => parse_u64(argument)
                    .ok_or("CLIENT_ERROR invalid numeric delta value")
                    .map(|delta| flags.delta = Some(delta)),
                b'J' => parse_u64(argument)
                    .ok_or("CLIENT_ERROR invalid numeric initial value")
                    .map(|initial| flags.initial = initial),
                b'F' => parse_u32(argument)
                    .ok_or(error.unwrap_or("CLIENT_ERROR bad command line format"))
                    .map(|client_flags| flags.client_flags = client_flags),
                b'M' => match argument {
                    [mode] => {
                        flags.mode = Some(*mode);
                        Ok(())
                    }
                    _ => Err("CLIENT_ERROR incorrect length for M token"),
                },
                b'P' => Extension::parse(argument)
                    .map(|extension| flags.extension = extension)
                    .map_err(ExtensionError::line),
                b'b' => {
                    flags.base64 = true;
                    Ok(())
                }
                b'q' => {
                    flags.quiet = true;
                    Ok(())
                }
                b'v' => {
                    flags.value = true;
                    Ok(())
                }
                b'u' => {
                    flags.no_bump = true;
                    Ok(())
                }
                b'I' => {
                    flags.invalidate = true;
                    Ok(())
                }
                b'x' => {
                    flags.empty_value = true;
                    Ok(())
                }
                // `L` is for proxies between client and server. The other flags only request fields
                // in the answer.
                b'L' | b'O' | b'k' | b's' | b't' | b'c' | b'f' | b'h' | b'l' => Ok(()),
                _ => return Err("CLIENT_ERROR invalid flag"),
            };
            if let Err(line) = read {
                error = Some(line);
            }
        }
        error.map_or(Ok(flags), Err)
    }

    /// Lists the flags in the order in which they were written.
    pub fn tokens(&self) -> impl Iterator<Item = (u8, &'a [u8])> {
        self.written.filter_map(|token| token.split_first().map(|(name, _)| (*name, token)))
    }

    /// Returns whether the opaque token is longer than memcached accepts.
    pub(super) fn opaque_too_long(&self) -> bool {
        self.tokens().any(|(name, token)| name == b'O' && token.len() > OPAQUE_LIMIT_BYTES)
    }

    /// Returns whether the flag `name` was given.
    pub fn has(&self, name: u8) -> bool {
        self.tokens().any(|(given, _)| given == name)
    }
}
