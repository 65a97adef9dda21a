//! How long a text may be so that Lua's own functions find a pattern in it soon.
//!
//! Lua's own matcher is several times as fast as a call of `pattern.rs`, but nothing interrupts it.
//! It tries each place of the text, and each repetition in the pattern tries each place behind it.
//! So its steps are at most a power of the text's length, and a short text is soon done.

/// The most steps of Lua's own matcher. They take less than a millisecond.
const MOST_STEPS: usize = 1 << 17;

/// The longest text for any pattern, in bytes.
const LONGEST_TEXT: usize = 4096;

/// The most captures of a pattern, as in Lua.
const MAX_CAPTURES: usize = 32;

/// Returns the length of the longest text that Lua's own functions may search for the pattern.
/// There is none for a pattern that may be malformed, and for one with a rare item.
pub(crate) fn longest_text(pattern: &[u8]) -> Option<usize> {
    let power = repetitions(pattern)? + 1;
    let steps = MOST_STEPS / pattern.len().max(1);
    let is_quick = |length: &usize| {
        let taken = (length + 1).checked_pow(power);
        taken.is_some_and(|taken| taken <= steps)
    };
    (0..=LONGEST_TEXT).rev().find(|length| is_quick(length))
}

/// Returns the number of repetitions in a pattern.
fn repetitions(pattern: &[u8]) -> Option<u32> {
    let (mut repetitions, mut open, mut captures) = (0, 0_usize, 0);
    let mut rest = pattern;
    loop {
        rest = match rest {
            [] => return (open == 0 && captures <= MAX_CAPTURES).then_some(repetitions),
            // Lua 5.1 ends a pattern at a NUL.
            [0, ..] | [b'%'] | [b'%', 0 | b'f' | b'0'..=b'9', ..] => return None,
            [b'(', b')', after @ ..] => {
                captures += 1;
                after
            }
            [b'(', after @ ..] => {
                (captures, open) = (captures + 1, open + 1);
                after
            }
            [b')', after @ ..] => {
                open = open.checked_sub(1)?;
                after
            }
            [b'%', b'b', pair @ ..] => {
                repetitions += 1;
                if pair.get(..2)?.contains(&0) {
                    return None;
                }
                &pair[2..]
            }
            [b'%', _, after @ ..] => repeated(after, &mut repetitions),
            [b'[', members @ ..] => repeated(behind_set(members)?, &mut repetitions),
            [_, after @ ..] => repeated(after, &mut repetitions),
        };
    }
}

/// Counts the repetition of an item, if it has one. Returns what stands behind it.
fn repeated<'a>(after: &'a [u8], repetitions: &mut u32) -> &'a [u8] {
    match after {
        [b'*' | b'+' | b'-' | b'?', after @ ..] => {
            *repetitions += 1;
            after
        }
        _ => after,
    }
}

/// Returns what stands behind a set, which begins with `members`.
fn behind_set(members: &[u8]) -> Option<&[u8]> {
    let mut rest = members.strip_prefix(b"^").unwrap_or(members);
    // A bracket at the set's start is one of its members.
    let mut is_first = true;
    loop {
        rest = match rest {
            [b']', after @ ..] if !is_first => return Some(after),
            [] | [0, ..] | [b'%'] | [b'%', 0, ..] => return None,
            [b'%', _, after @ ..] | [_, after @ ..] => after,
        };
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern;

    #[test]
    fn the_longest_text_of_a_pattern() {
        for (pattern, longest) in [
            ("abc", Some(LONGEST_TEXT)),
            ("", Some(LONGEST_TEXT)),
            ("[&<>\"']", Some(LONGEST_TEXT)),
            ("^%d+$", Some(160)),
            ("(%w+)=(%w+)", Some(21)),
            ("[a-z]+", Some(146)),
            ("[]%]-]", Some(LONGEST_TEXT)),
            ("%b()", Some(180)),
            ("()x()", Some(LONGEST_TEXT)),
            ("a-a-a-a-a-a-a-a-a-b", Some(1)),
            ("%", None),
            ("[a", None),
            ("[a%", None),
            ("(a", None),
            ("a)", None),
            ("%f[%w]", None),
            ("(a)%1", None),
            ("%b(", None),
            ("a\0b", None),
            ("[\0]", None),
        ] {
            assert_eq!(longest_text(pattern.as_bytes()), longest, "{pattern:?}");
        }
    }

    #[test]
    fn a_longest_text_takes_few_steps() {
        for pattern in ["^%d+$", "(%w+)=(%w+)", "a-a-b", "[&<>\"']", "a?a?a?a?b", "%b()", ".-b"] {
            for byte in [b'a', b'1', b'('] {
                let text = vec![byte; longest_text(pattern.as_bytes()).unwrap()];
                let mut steps = 0;
                let mut count = |units| {
                    steps += units;
                    Ok::<(), ()>(())
                };
                let _ = pattern::find(&text, pattern.as_bytes(), 0, true, &mut count);
                assert!(steps <= MOST_STEPS, "{pattern:?}: {steps}");
            }
        }
    }
}
