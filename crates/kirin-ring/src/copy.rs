//! Copies of bytes into the shared memory and out of it, in whole words. Others may read and write
//! at the same time, so each word is one atomic operation.

use crate::words::Ordering::Relaxed;
use crate::words::Words;

/// Writes two parts that follow each other, as far as there is room. Others may read at the
/// same time, so these are atomic operations, in whole words.
pub(crate) fn write(words: &impl Words, offset: usize, parts: [&[u8]; 2], room: usize) -> usize {
    let length = (parts[0].len() + parts[1].len()).min(room);
    let (whole, rest) = parts[0].as_chunks::<8>();
    let mut at = offset;
    let mut put = |bytes: [u8; 8]| {
        words.word(at).store(u64::from_ne_bytes(bytes), Relaxed);
        at += 8;
    };
    let count = length.div_ceil(8);
    for bytes in whole.iter().take(count) {
        put(*bytes);
    }
    if count <= whole.len() {
        return length;
    }
    // The word in which the parts meet.
    let mut meeting = [0; 8];
    let from_second = (8 - rest.len()).min(parts[1].len());
    meeting[..rest.len()].copy_from_slice(rest);
    meeting[rest.len()..rest.len() + from_second].copy_from_slice(&parts[1][..from_second]);
    put(meeting);
    let (second, last) = parts[1][from_second..].as_chunks::<8>();
    let left = count - whole.len() - 1;
    for bytes in second.iter().take(left) {
        put(*bytes);
    }
    if left > second.len() {
        let mut bytes = [0; 8];
        bytes[..last.len()].copy_from_slice(last);
        put(bytes);
    }
    length
}

/// Copies bytes out of the memory.
pub(crate) fn read(words: &impl Words, offset: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length.next_multiple_of(8)];
    let mut at = offset;
    for word in bytes.as_chunks_mut::<8>().0 {
        *word = words.word(at).load(Relaxed).to_ne_bytes();
        at += 8;
    }
    bytes.truncate(length);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Mapping;

    const ROOM: usize = 64;
    const OFFSET: usize = 128;
    const BEFORE: u8 = 0xEE;

    #[test]
    fn parts_of_all_lengths_are_one_after_the_other_and_stay_in_their_room() {
        let mapping = Mapping::create("copy", 4096).unwrap();
        let around = OFFSET - 8..OFFSET + ROOM + 8;
        for (first, second) in (0..ROOM + 10).flat_map(|a| (0..ROOM + 10).map(move |b| (a, b))) {
            for offset in around.clone().step_by(8) {
                mapping.word(offset).store(u64::from_ne_bytes([BEFORE; 8]), Relaxed);
            }
            let bytes: Vec<u8> = (1..).take(first + second).collect();
            let length = write(&mapping, OFFSET, [&bytes[..first], &bytes[first..]], ROOM);
            let lengths = format!("{first} and {second} bytes");
            assert_eq!(length, (first + second).min(ROOM), "{lengths}");
            assert_eq!(read(&mapping, OFFSET, length), bytes[..length], "{lengths}");
            let all = read(&mapping, around.start, around.len());
            assert_eq!(all[..8], [BEFORE; 8], "{lengths}: before the room");
            let used = 8 + length.next_multiple_of(8);
            assert!(all[used..].iter().all(|byte| *byte == BEFORE), "{lengths}: {all:x?}");
        }
    }
}
