//! The flags of the meta commands.
//!
//! A flag is one character with an optional argument. Some change what the command does, some ask
//! for something in the answer, in the order in which they were written; so both are kept: the
//! effects as fields, and the text to be gone through again for the answer.

use super::extension::{Extension, ExtensionError};
use super::number::{Exptime, parse_i32, parse_u32, parse_u64};
use super::tokens::Keys;

/// The longest opaque token, with its `O` (`MFLAG_MAX_OPAQUE_LENGTH` of memcached).
const OPAQUE_LIMIT_BYTES: usize = 32;

const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";

/// The flags of one meta command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetaFlags<'a> {
    /// `q`: no answer where nothing unusual happened.
    pub quiet: bool,
    /// `b`: the key is base64.
    pub base64: bool,
    /// `v`: give the value.
    pub value: bool,
    /// `u`: do not count this as a use of the item.
    pub no_bump: bool,
    /// `I`: mark stale.
    pub invalidate: bool,
    /// `x`: delete the value but keep the item (memcached 1.6.22).
    pub empty_value: bool,
    /// `N`: create the item on a miss, with this expiry time.
    pub vivify: Option<Exptime>,
    /// `T`: set the expiry time.
    pub ttl: Option<Exptime>,
    /// `R`: the client will make the item anew when it has less time left than this.
    pub recache: Option<Exptime>,
    /// `C`: go on only when this is the item's cas unique.
    pub cas: Option<u64>,
    /// `E`: the cas unique to give the item (memcached 1.6.22).
    pub new_cas: Option<u64>,
    /// `F`: the client's number to store beside the value.
    pub client_flags: u32,
    /// `M`: mode.
    pub mode: Option<u8>,
    /// `D`: how much to count.
    pub delta: Option<u64>,
    /// `J`: where counting starts.
    pub initial: u64,
    /// `P`: tags and invalidation by tag or prefix, Kirin's own.
    pub extension: Extension<'a>,
    written: Keys<'a>,
}

impl<'a> MetaFlags<'a> {
    /// Reads what follows the key (and the length).
    ///
    /// Like memcached this reads on after a bad argument and reports the last one, but stops at a
    /// flag it does not know or has seen.
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
                // L is for routers between client and server; the others only ask.
                b'L' | b'O' | b'k' | b's' | b't' | b'c' | b'f' | b'h' | b'l' => Ok(()),
                _ => return Err("CLIENT_ERROR invalid flag"),
            };
            if let Err(line) = read {
                error = Some(line);
            }
        }
        error.map_or(Ok(flags), Err)
    }

    /// The flags as they were written, in order.
    pub fn tokens(&self) -> impl Iterator<Item = (u8, &'a [u8])> {
        self.written.filter_map(|token| token.split_first().map(|(name, _)| (*name, token)))
    }

    /// Whether the opaque token is longer than memcached gives back.
    pub(super) fn opaque_too_long(&self) -> bool {
        self.tokens().any(|(name, token)| name == b'O' && token.len() > OPAQUE_LIMIT_BYTES)
    }

    /// Whether flag `name` was given.
    pub fn has(&self, name: u8) -> bool {
        self.tokens().any(|(given, _)| given == name)
    }
}
