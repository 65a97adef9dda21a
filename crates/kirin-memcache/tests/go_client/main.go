// Talks to the server named on the command line with gomemcache and says OK, or what went wrong.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/bradfitz/gomemcache/memcache"
)

func check(err error, what string) {
	if err != nil {
		fmt.Printf("%s: %v\n", what, err)
		os.Exit(1)
	}
}

func expect(met bool, what string) {
	if !met {
		fmt.Println(what)
		os.Exit(1)
	}
}

func main() {
	client := memcache.New(os.Args[1])
	check(client.Ping(), "ping")
	check(client.DeleteAll(), "flush_all")

	check(client.Set(&memcache.Item{Key: "a", Value: []byte("one"), Flags: 7, Expiration: 100}), "set")
	item, err := client.Get("a")
	check(err, "get")
	expect(string(item.Value) == "one" && item.Flags == 7, fmt.Sprintf("get: %+v", item))

	item.Value = []byte("two")
	check(client.CompareAndSwap(item), "cas")
	expect(client.CompareAndSwap(item) == memcache.ErrCASConflict, "a second cas with the same token")
	expect(client.Add(item) == memcache.ErrNotStored, "add of what is there")
	expect(client.Replace(&memcache.Item{Key: "b"}) == memcache.ErrNotStored, "replace of what is not there")
	check(client.Append(&memcache.Item{Key: "a", Value: []byte("!")}), "append")
	check(client.Prepend(&memcache.Item{Key: "a", Value: []byte("?")}), "prepend")

	keys := []string{"a"}
	for i := 0; i < 100; i++ {
		key := fmt.Sprintf("key%d", i)
		keys = append(keys, key)
		check(client.Set(&memcache.Item{Key: key, Value: bytes.Repeat([]byte{byte(i)}, 5000)}), "set "+key)
	}
	items, err := client.GetMulti(append(keys, "missing"))
	check(err, "get of many keys")
	expect(len(items) == 101 && string(items["a"].Value) == "?two!", fmt.Sprintf("%d items of 101", len(items)))
	expect(bytes.Equal(items["key42"].Value, bytes.Repeat([]byte{42}, 5000)), "key42")

	check(client.Set(&memcache.Item{Key: "n", Value: []byte("9")}), "set n")
	n, err := client.Increment("n", 5)
	check(err, "incr")
	expect(n == 14, fmt.Sprintf("incr: %d", n))
	n, err = client.Decrement("n", 100)
	check(err, "decr")
	expect(n == 0, fmt.Sprintf("decr: %d", n))
	_, err = client.Increment("missing", 1)
	expect(err == memcache.ErrCacheMiss, "incr of what is not there")

	check(client.Touch("a", 50), "touch")
	_, err = client.GetAndTouch("a", 60)
	check(err, "gat")
	check(client.Delete("a"), "delete")
	_, err = client.Get("a")
	expect(err == memcache.ErrCacheMiss, "get after delete")
	err = client.Set(&memcache.Item{Key: "large", Value: []byte(strings.Repeat("x", 2<<20))})
	expect(err != nil && strings.Contains(err.Error(), "too large"), fmt.Sprintf("2 MiB: %v", err))
	check(client.Ping(), "ping at the end")
	fmt.Println("OK")
}
