// A load over HTTP/3, by quic-go, or of TLS handshakes: the same request again and again. It prints
// what it has done as lines of a name and a number.
//
//	h3load get URL CONNECTIONS STREAMS SECONDS   connections are kept
//	h3load connect URL CONNECTIONS SECONDS       a connection for each request
//	h3load hold URL CONNECTIONS 0                connections with one request, which are idle until
//	                                             the end of the standard input
//	h3load x25519 URL CONNECTIONS SECONDS        HTTP/1.1 over TLS, a full handshake for each request
//	h3load hybrid URL CONNECTIONS SECONDS        the same by X25519MLKEM768
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// What one stream of requests has done.
type record struct {
	took   []time.Duration
	bytes  int64
	failed int
}

func transport() *http3.Transport {
	return &http3.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		DisableCompression: true,
		QUICConfig:         &quic.Config{MaxIdleTimeout: 5 * time.Minute},
	}
}

// A client of HTTP/1.1 over TLS, which resumes no session and has one key exchange to offer.
func handshaking(exchange tls.CurveID) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{exchange}},
		DisableCompression: true,
		DisableKeepAlives:  true,
	}}
}

func get(client *http.Client, url string, done *record) {
	began := time.Now()
	response, err := client.Get(url)
	var bytes int64
	if err == nil {
		bytes, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	if err != nil || response.StatusCode != 200 {
		done.failed++
		return
	}
	done.took = append(done.took, time.Since(began))
	done.bytes += bytes
}

// Repeats work in so many goroutines until the time is over.
func repeat(workers int, until time.Time, work func(worker int, done *record)) []record {
	records := make([]record, workers)
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for time.Now().Before(until) && records[worker].failed < 100 {
				work(worker, &records[worker])
			}
		})
	}
	all.Wait()
	return records
}

func report(records []record, began time.Time) {
	seconds := time.Since(began).Seconds()
	var took []time.Duration
	failed, bytes := 0, int64(0)
	for _, record := range records {
		took = append(took, record.took...)
		failed += record.failed
		bytes += record.bytes
	}
	slices.Sort(took)
	at := func(share float64) float64 {
		if len(took) == 0 {
			return 0
		}
		return float64(took[int(share*float64(len(took)-1))].Nanoseconds()) / 1e3
	}
	fmt.Printf("requests %d\nbytes %d\nfailed %d\nseconds %f\np50_us %f\np99_us %f\n",
		len(took), bytes, failed, seconds, at(0.5), at(0.99))
}

func number(at int) int {
	number, err := strconv.Atoi(os.Args[at])
	if err != nil {
		fmt.Fprintln(os.Stderr, "h3load:", err)
		os.Exit(2)
	}
	return number
}

func clients(count int) []*http.Client {
	clients := make([]*http.Client, count)
	for at := range clients {
		clients[at] = &http.Client{Transport: transport()}
	}
	return clients
}

// Opens connections with one request each, and says at the end how many the server has left open.
func hold(url string, connections int) {
	var done record
	var held []*quic.Conn
	for range connections {
		transport := transport()
		transport.Dial = func(
			ctx context.Context, address string, config *tls.Config, how *quic.Config,
		) (*quic.Conn, error) {
			connection, err := quic.DialAddr(ctx, address, config, how)
			if err == nil {
				held = append(held, connection)
			}
			return connection, err
		}
		get(&http.Client{Transport: transport}, url, &done)
	}
	fmt.Println("holding", len(done.took))
	_, _ = io.Copy(io.Discard, os.Stdin)
	open := 0
	for _, connection := range held {
		if connection.Context().Err() == nil {
			open++
			_ = connection.CloseWithError(0x100, "")
		}
	}
	fmt.Println("open", open, "closed", connections-open)
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "h3load get|connect|hold|x25519|hybrid URL CONNECTIONS [STREAMS] SECONDS")
		os.Exit(2)
	}
	mode, url, connections := os.Args[1], os.Args[2], number(3)
	seconds := time.Duration(number(len(os.Args)-1)) * time.Second
	began := time.Now()
	switch mode {
	case "get":
		streams := number(4)
		clients := clients(connections)
		records := repeat(connections*streams, began.Add(seconds), func(worker int, done *record) {
			get(clients[worker/streams], url, done)
		})
		report(records, began)
	case "connect":
		records := repeat(connections, began.Add(seconds), func(_ int, done *record) {
			transport := transport()
			get(&http.Client{Transport: transport}, url, done)
			transport.Close()
		})
		report(records, began)
	case "x25519", "hybrid":
		client := handshaking(map[string]tls.CurveID{"x25519": tls.X25519, "hybrid": tls.X25519MLKEM768}[mode])
		records := repeat(connections, began.Add(seconds), func(_ int, done *record) {
			get(client, url, done)
		})
		report(records, began)
	case "hold":
		hold(url, connections)
	default:
		fmt.Fprintln(os.Stderr, "h3load: unknown mode", mode)
		os.Exit(2)
	}
}
