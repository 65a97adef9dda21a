//! The memcached codec and the code behind it, on any bytes. Nothing panics, and the answers are
//! the same when the bytes come in two pieces. The first byte says where they are cut.
#![no_main]

use std::io::IoSlice;
use std::sync::Arc;

use kirin_memcache::codec::CodecLimits;
use kirin_memcache::{Executor, Flow, OutputBuffer, MemcachedServer, ServerOptions, MemcachedSession};
use kirin_store::{Now, Store, StoreConfig};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, input)) = bytes.split_first() else { return };
    let (head, tail) = input.split_at(input.len() * usize::from(*cut) / 256);
    assert_eq!(answers(&[input]), answers(&[head, tail]));
});

fn answers(pieces: &[&[u8]]) -> Vec<u8> {
    let limits = CodecLimits { item_size_bytes: 4096, ..CodecLimits::default() };
    let config =
        StoreConfig { memory_bytes: 1 << 20, item_limit_bytes: 4096, shards: 1, evict: true };
    let options = ServerOptions { limits, ..ServerOptions::default() };
    let executor = Executor::new(MemcachedServer::new(Arc::new(Store::new(config)), options));
    executor.set_now(Now::from_unix_seconds(1_700_000_000));
    let mut session = MemcachedSession::default();
    let mut answers = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        loop {
            let mut output = OutputBuffer::default();
            let flow = session.feed(input, &executor, &mut output);
            while !output.is_empty() {
                let mut slices = [IoSlice::new(&[]); 8];
                let count = output.slices(&mut slices);
                let ready = slices[..count].concat_bytes();
                output.advance(ready.len());
                answers.extend(ready);
            }
            input = b"";
            match flow {
                Flow::Read | Flow::Watch => break,
                Flow::Drain => {}
                Flow::Wait => panic!("the store has no origin"),
                Flow::Close(_) => return without_changing(answers),
            }
        }
    }
    without_changing(answers)
}

/// Removes answers of `stats`, which show the process's own time and memory. They are not compared,
/// and neither is the order of a list, which each store has its own of.
fn without_changing(answers: Vec<u8>) -> Vec<u8> {
    let starts = [&b"STAT "[..], b"key=", b"ITEM ", b"mg "];
    if starts.iter().any(|start| answers.windows(start.len()).any(|word| word == *start)) { Vec::new() } else { answers }
}

trait ConcatBytes {
    fn concat_bytes(&self) -> Vec<u8>;
}

impl ConcatBytes for [IoSlice<'_>] {
    fn concat_bytes(&self) -> Vec<u8> {
        self.iter().flat_map(|slice| slice.iter().copied()).collect()
    }
}
