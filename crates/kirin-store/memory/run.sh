#!/bin/sh
# Measures the store's memory with each allocator, and memcached's. Takes about a minute.
set -eu
cd "$(dirname "$0")"
megabytes=${1:-256}
for allocator in mimalloc jemalloc ''; do
    cargo build -q --release --features "$allocator" --target-dir "target/${allocator:-system}"
    program=target/${allocator:-system}/release/kirin-store-memory
    "$program" churn "$megabytes"
    "$program" items 1000000 100
    "$program" items 1000000 10
    "$program" speed 1000000 100
    echo
done
"$program" memcached 1000000 100
"$program" memcached 1000000 10
