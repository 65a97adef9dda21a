// Talks HTTP/2 to the server at the URL on the command line, by net/http, and says OK, or what went
// wrong. The second argument is a file that the server has as /large.bin.
package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
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

// Sends a request and returns the body of its response, which must have come by HTTP/2.
func send(client *http.Client, request *http.Request) []byte {
	what := request.Method + " " + request.URL.Path
	response, err := client.Do(request)
	check(err, what)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(err, what)
	expect(response.StatusCode == 200, fmt.Sprintf("%s: %s %.100q", what, response.Status, body))
	expect(response.ProtoMajor == 2, fmt.Sprintf("%s: %s", what, response.Proto))
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

// Connects with the key exchange that a quantum computer does not break, and with no other one.
func shakeHands() {
	address, isTLS := strings.CutPrefix(url, "https://")
	if !isTLS {
		return
	}
	config := tls.Config{
		InsecureSkipVerify: true,
		CurvePreferences:   []tls.CurveID{tls.X25519MLKEM768},
	}
	connection, err := tls.Dial("tcp", strings.TrimSuffix(address, "/"), &config)
	check(err, "a handshake with X25519MLKEM768")
	connection.Close()
}

func main() {
	shakeHands()
	large, err := os.ReadFile(os.Args[2])
	check(err, "the file")
	var connections atomic.Int32
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connections.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		Protocols: new(http.Protocols),
	}
	transport.Protocols.SetHTTP2(true)
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: transport}

	body := get(client, "/hello.txt")
	expect(string(body) == "hello\n", fmt.Sprintf("GET of a small file: %.100q", body))
	body = get(client, "/large.bin")
	expect(bytes.Equal(body, large), fmt.Sprintf("GET of a large file: %d bytes", len(body)))

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
				path, want = "/app/protocol", "HTTP/2"
			}
			body := get(client, path)
			expect(string(body) == want, fmt.Sprintf("request %d: %.100q", number, body))
		}()
	}
	requests.Wait()
	count := connections.Load()
	expect(count == 1, fmt.Sprintf("%d connections were made for all requests", count))
	fmt.Println("OK")
}
