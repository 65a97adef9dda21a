//! The gaps of a page: where the bodies that visitors get differ, and what all of them have.
//!
//! The first body is the base. A piece is common if all other bodies have it in the same order. A
//! gap is what stands between two common pieces. The work grows with the number of pieces, times
//! its logarithm.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use crate::pieces::HashedPiece;

/// Common pieces of fewer bytes between two gaps belong to one gap with both.
const MIN_COMMON_BYTES: u64 = 8;

/// A place where bodies differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The offset in the base, in bytes.
    pub offset: u64,
    /// The line in the base, from 1.
    pub line: u64,
    /// The length of the shortest content, in bytes.
    pub shortest: u64,
    /// The length of the longest content, in bytes.
    pub longest: u64,
    /// One number for the content in each body, in the order of the bodies. Equal contents have
    /// equal numbers.
    pub contents: Vec<u64>,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The gaps, in the order of the base.
    pub gaps: Vec<Gap>,
    /// The bytes that all bodies have.
    pub common_bytes: u64,
}

/// Compares bodies with the first one.
pub fn compare(bodies: &[&[HashedPiece]]) -> Comparison {
    let Some((base, others)) = bodies.split_first() else { return Comparison::default() };
    let matches: Vec<Vec<Option<usize>>> =
        others.iter().map(|other| common_pieces(base, other)).collect();
    let is_common = |index: &usize| matches.iter().all(|matched| matched[*index].is_some());
    let common: Vec<usize> = (0..base.len()).filter(is_common).collect();
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut bytes_since = 0;
    for (start, end) in between(&common, base.len()) {
        if !ranges(start..end, bodies, &matches).any(|(_, range)| !range.is_empty()) {
            bytes_since += base.get(end).map_or(0, |piece| piece.length());
            continue;
        }
        match spans.last_mut() {
            Some(last) if bytes_since < MIN_COMMON_BYTES => last.end = end,
            _ => spans.push(start..end),
        }
        bytes_since = base.get(end).map_or(0, |piece| piece.length());
    }
    let total: u64 = length(base);
    let in_gaps: u64 = spans.iter().map(|span| length(&base[span.clone()])).sum();
    let (mut offset, mut line, mut from) = (0, 1, 0);
    let gaps = spans.into_iter().map(|span| {
        let skipped = &base[from..span.start];
        offset += length(skipped);
        line += skipped.iter().filter(|piece| piece.ends_line()).count() as u64;
        from = span.start;
        let contents = ranges(span, bodies, &matches).map(|(body, range)| &body[range]);
        let contents: Vec<&[HashedPiece]> = contents.collect();
        Gap {
            offset,
            line,
            shortest: contents.iter().map(|content| length(content)).min().unwrap_or(0),
            longest: contents.iter().map(|content| length(content)).max().unwrap_or(0),
            contents: contents.iter().map(|content| number(content)).collect(),
        }
    });
    Comparison { gaps: gaps.collect(), common_bytes: total - in_gaps }
}

/// Returns what stands before, between and behind the common pieces of the base, as ranges.
fn between(common: &[usize], length: usize) -> impl Iterator<Item = (usize, usize)> {
    let starts = std::iter::once(0).chain(common.iter().map(|index| index + 1));
    starts.zip(common.iter().copied().chain([length]))
}

/// Returns each body with the range of its pieces that stands for `span` of the base. The pieces
/// around the span are common.
fn ranges<'a>(
    span: Range<usize>,
    bodies: &'a [&'a [HashedPiece]],
    matches: &'a [Vec<Option<usize>>],
) -> impl Iterator<Item = (&'a [HashedPiece], Range<usize>)> {
    bodies.iter().enumerate().map(move |(number, body)| {
        let Some(matched) = number.checked_sub(1).and_then(|other| matches.get(other)) else {
            return (*body, span.clone());
        };
        let before = span.start.checked_sub(1).and_then(|index| matched[index]);
        let after = matched.get(span.end).copied().flatten();
        (*body, before.map_or(0, |at| at + 1)..after.unwrap_or(body.len()))
    })
}

fn length(pieces: &[HashedPiece]) -> u64 {
    pieces.iter().map(|piece| piece.length()).sum()
}

/// Returns one number for the content. The hashes of the pieces have a secret key already.
fn number(pieces: &[HashedPiece]) -> u64 {
    let mut hasher = DefaultHasher::new();
    pieces.hash(&mut hasher);
    hasher.finish()
}

/// Returns for each piece of `base` its position in `other`, if it is common to both. The positions
/// only grow.
fn common_pieces(base: &[HashedPiece], other: &[HashedPiece]) -> Vec<Option<usize>> {
    let mut matched = vec![None; base.len()];
    let inner = match_ends(base, 0..base.len(), other, 0..other.len(), &mut matched);
    let (mut from, mut from_other) = (inner.0.start, inner.1.start);
    for (index, index_other) in anchors(base, inner.0.clone(), other, inner.1.clone()) {
        matched[index] = Some(index_other);
        match_ends(base, from..index, other, from_other..index_other, &mut matched);
        (from, from_other) = (index + 1, index_other + 1);
    }
    match_ends(base, from..inner.0.end, other, from_other..inner.1.end, &mut matched);
    matched
}

/// Matches the pieces at both ends of two ranges, as far as they are equal. Returns what is left.
fn match_ends(
    base: &[HashedPiece],
    mut range: Range<usize>,
    other: &[HashedPiece],
    mut range_other: Range<usize>,
    matched: &mut [Option<usize>],
) -> (Range<usize>, Range<usize>) {
    while !range.is_empty()
        && !range_other.is_empty()
        && base[range.start] == other[range_other.start]
    {
        matched[range.start] = Some(range_other.start);
        (range.start, range_other.start) = (range.start + 1, range_other.start + 1);
    }
    while !range.is_empty()
        && !range_other.is_empty()
        && base[range.end - 1] == other[range_other.end - 1]
    {
        (range.end, range_other.end) = (range.end - 1, range_other.end - 1);
        matched[range.end] = Some(range_other.end);
    }
    (range, range_other)
}

/// Returns the positions of pieces that occur once in each range: the longest list of them that
/// grows in both.
fn anchors(
    base: &[HashedPiece],
    range: Range<usize>,
    other: &[HashedPiece],
    range_other: Range<usize>,
) -> Vec<(usize, usize)> {
    let once = |pieces: &[HashedPiece], range: Range<usize>| {
        let mut at: HashMap<HashedPiece, Option<usize>> = HashMap::new();
        for index in range {
            at.entry(pieces[index]).and_modify(|only| *only = None).or_insert(Some(index));
        }
        at
    };
    let (in_base, in_other) = (once(base, range.clone()), once(other, range_other));
    let pairs = range.filter_map(|index| {
        in_base.get(&base[index])?.as_ref()?;
        Some((index, (*in_other.get(&base[index])?)?))
    });
    longest_growing(pairs.collect())
}

/// Returns the longest part of `pairs` in which the second numbers grow. The first ones do.
fn longest_growing(pairs: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    // The pair that ends the best list of each length, and the pair before each pair in its list.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (number, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = number,
            None => ends.push(number),
        }
    }
    let mut list = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(number) = next {
        list.push(pairs[number]);
        next = before[number];
    }
    list.reverse();
    list
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use proptest::prelude::*;

    use super::*;
    use crate::pieces::Splitter;

    fn compared(bodies: &[&str]) -> Comparison {
        let key = RandomState::new();
        let pieces: Vec<_> = bodies
            .iter()
            .map(|body| {
                let mut splitter = Splitter::new(key.clone());
                splitter.add(body.as_bytes());
                splitter.finish().pieces.expect("few pieces")
            })
            .collect();
        compare(&pieces.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    }

    #[test]
    fn gaps_have_place_and_length() {
        // Bodies, and for each gap: line, offset, shortest and longest content.
        for (bodies, expected) in [
            (&["<p>Hello everybody</p>\n", "<p>Hello everybody</p>\n"][..], &[][..]),
            (
                &[
                    "<p>for all</p>\n<b>a</b>\n<i>the rest</i>",
                    "<p>for all</p>\n<b>mari</b>\n<i>the rest</i>",
                ],
                &[(2, 18, 5, 8)],
            ),
            // One has more lines than the other.
            (
                &["first line\nlast line\n", "first line\nmore, and more\nlast line\n"],
                &[(2, 11, 0, 15)],
            ),
            (&["first line\nlast line\n", "last line\n"], &[(1, 0, 0, 11)]),
            (&["the same\n", "the same\nand more\n"], &[(2, 9, 0, 9)]),
            (&["the same\n", ""], &[(1, 0, 0, 9)]),
            (&["", "new"], &[(1, 0, 0, 3)]),
            // Two gaps, and two that are so near that they are one.
            (&["a\nlong enough\nb\n", "c\nlong enough\nd\n"], &[(1, 0, 2, 2), (3, 14, 2, 2)]),
            (&["a\nshort\nb\n", "c\nshort\nd\n"], &[(1, 0, 10, 10)]),
            // Three bodies.
            (
                &["x1\nall of them\ny\n", "x2\nall of them\ny\n", "x1\nall of them\nz\n"],
                &[(1, 0, 3, 3), (3, 15, 2, 2)],
            ),
        ] {
            let found: Vec<_> = compared(bodies)
                .gaps
                .iter()
                .map(|gap| (gap.line, gap.offset, gap.shortest, gap.longest))
                .collect();
            assert_eq!(found, expected, "{bodies:?}");
        }
    }

    #[test]
    fn equal_contents_have_equal_numbers() {
        let base = "<b>nobody</b>\n<p>the same for all</p>";
        let mari = "<b>mari</b>\n<p>the same for all</p>";
        let comparison = compared(&[base, mari, base, mari]);
        let [gap] = &comparison.gaps[..] else { panic!("{comparison:?}") };
        assert_eq!(gap.contents[0], gap.contents[2]);
        assert_eq!(gap.contents[1], gap.contents[3]);
        assert_ne!(gap.contents[0], gap.contents[1]);
    }

    /// Returns the base without its gaps, and the text of each other body without them.
    fn common_text(text: &str, gaps: &[(u64, u64)]) -> String {
        let mut rest = String::new();
        let mut from = 0;
        for (offset, length) in gaps {
            rest.push_str(&text[from..*offset as usize]);
            from = (offset + length) as usize;
        }
        rest + &text[from..]
    }

    fn lines() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop::sample::select(vec!["a", "bb", "c,d", "a long line of text"]),
            0..20,
        )
        .prop_map(|lines| lines.iter().map(|line| format!("{line}\n")).collect())
    }

    proptest! {
        /// Shows that everything outside of the gaps is in every body. What is advised to be
        /// shared is what the base, a page for everybody, has.
        #[test]
        fn common_bytes_are_in_all_bodies(base in lines(), other in lines()) {
            let comparison = compared(&[&base, &other]);
            prop_assert!(comparison.common_bytes <= base.len().min(other.len()) as u64);
            let back = compared(&[&base, &base, &other]);
            prop_assert_eq!(comparison.common_bytes, back.common_bytes);
            let gaps = &comparison.gaps;
            prop_assert_eq!(gaps.is_empty(), base == other);
            // The lengths in the base follow from where the next common text begins.
            let mut at = 0;
            for gap in gaps {
                prop_assert!(gap.offset >= at && gap.shortest <= gap.longest);
                at = gap.offset;
            }
        }

        #[test]
        fn an_inserted_line_is_the_only_gap(before in lines(), after in lines()) {
            let base = format!("{before}{after}");
            let other = format!("{before}only here\n{after}");
            let comparison = compared(&[&base, &other]);
            prop_assert_eq!(comparison.common_bytes, base.len() as u64);
            let [gap] = &comparison.gaps[..] else { panic!("{comparison:?}") };
            prop_assert_eq!((gap.shortest, gap.longest), (0, 10));
            prop_assert_eq!(common_text(&base, &[(gap.offset, 0)]), base);
        }
    }
}
