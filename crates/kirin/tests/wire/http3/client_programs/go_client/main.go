// Talks HTTP/3 to the server at the URL on the command line, by quic-go, and says OK, or what went
// wrong. The second argument is a file that the server has as /large.bin.
package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

var url = os.Args[1]

func check(err error, what string) {
	if err != nil {
		fail(fmt.Sprintf("%s: %v", what, err))
	}
}

func expect(met bool, what string) {
	if !met {
		fail(what)
	}
}

func fail(what string) {
	fmt.Println(what)
	os.Exit(1)
}

// Sends a request and returns the body of its response, which must have come by HTTP/3.
func send(client *http.Client, request *http.Request) []byte {
	what := request.Method + " " + request.URL.Path
	response, err := client.Do(request)
	check(err, what)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(err, what)
	expect(response.StatusCode == 200, fmt.Sprintf("%s: %s %.100q", what, response.Status, body))
	expect(response.ProtoMajor == 3, fmt.Sprintf("%s: %s", what, response.Proto))
	return body
}

func get(client *http.Client, path string) []byte {
	request, err := http.NewRequest("GET", url+path, nil)
	check(err, path)
	return send(client, request)
}

func post(client *http.Client, path string, body io.Reader, trailer http.Header) []byte {
	request, err := http.NewRequest("POST", url+path, body)
	check(err, path)
	request.Trailer = trailer
	return send(client, request)
}

// Returns a client that counts the connections that it makes.
func newClient(connections *atomic.Int32, sessions tls.ClientSessionCache) *http.Client {
	return &http.Client{Transport: &http3.Transport{
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true,
			ServerName:         "localhost",
			ClientSessionCache: sessions,
		},
		Dial: func(
			ctx context.Context, address string, tlsConfig *tls.Config, config *quic.Config,
		) (*quic.Conn, error) {
			connections.Add(1)
			return quic.DialAddrEarly(ctx, address, tlsConfig, config)
		},
	}}
}

// Sends a request in the first packets of a second connection.
func resume(sessions tls.ClientSessionCache) {
	var connections atomic.Int32
	client := newClient(&connections, sessions)
	request, err := http.NewRequest(http3.MethodGet0RTT, url+"/hello.txt", nil)
	check(err, "0-RTT")
	response, err := client.Do(request)
	check(err, "0-RTT")
	body, err := io.ReadAll(response.Body)
	check(err, "0-RTT")
	// The server may say that it does not want to do this early.
	met := response.StatusCode == 200 && string(body) == "hello\n" || response.StatusCode == 425
	expect(met, fmt.Sprintf("0-RTT: %s %.100q", response.Status, body))
	expect(response.TLS.DidResume, "the session was not resumed")
	client.CloseIdleConnections()
}

func main() {
	large, err := os.ReadFile(os.Args[2])
	check(err, "the file")
	var connections atomic.Int32
	sessions := tls.NewLRUClientSessionCache(10)
	client := newClient(&connections, sessions)

	body := get(client, "/hello.txt")
	expect(string(body) == "hello\n", fmt.Sprintf("GET of a small file: %.100q", body))
	body = get(client, "/large.bin")
	expect(sha256.Sum256(body) == sha256.Sum256(large),
		fmt.Sprintf("GET of a large file: %d bytes", len(body)))

	sum := fmt.Sprintf("%d %x", len(large), md5.Sum(large))
	body = post(client, "/app/body", bytes.NewReader(large), nil)
	expect(string(body) == sum, fmt.Sprintf("POST: %.100q, not %s", body, sum))
	// A reader of another type has no length.
	body = post(client, "/app/body", io.MultiReader(bytes.NewReader(large)), nil)
	expect(string(body) == sum, fmt.Sprintf("POST without a length: %.100q, not %s", body, sum))
	trailer := http.Header{"X-A": {"trailer"}}
	body = post(client, "/app/body", strings.NewReader("12345"), trailer)
	expect(strings.HasPrefix(string(body), "5 "), fmt.Sprintf("POST with trailers: %.100q", body))

	var requests sync.WaitGroup
	for number := range 100 {
		requests.Add(1)
		go func() {
			defer requests.Done()
			path, want := "/hello.txt", "hello\n"
			if number%2 == 0 {
				path, want = "/app/protocol", "HTTP/3"
			}
			body := get(client, path)
			expect(strings.HasPrefix(string(body), want),
				fmt.Sprintf("request %d: %.100q", number, body))
		}()
	}
	requests.Wait()
	count := connections.Load()
	expect(count == 1, fmt.Sprintf("%d connections were made for all requests", count))
	client.CloseIdleConnections()
	resume(sessions)
	fmt.Println("OK")
}
