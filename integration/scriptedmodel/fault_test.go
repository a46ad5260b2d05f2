package scriptedmodel_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/scriptedmodel"
)

func TestAResetComesBeforeAnyResponse(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	resp, err := client.Do(request(t, t.Context(), srv, scripted(step{Reset: "headers"})))
	if err == nil {
		resp.Body.Close() //nolint:errcheck // the test has failed
		t.Fatal("there was a response")
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
	if diff := cmp.Diff(scriptedmodel.Stats{Requests: 1, MaxOpen: 1, Dropped: 1}, srv.Stats()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestADropCutsTheStreamAfterItsChunks(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	r := ask(t, srv, scripted(step{Text: "abcdef", Chunks: 6, DropAfter: 2}))
	if !errors.Is(r.readErr, io.ErrUnexpectedEOF) {
		t.Errorf("the body ends with %v, want an unexpected end", r.readErr)
	}
	if got := r.said(); got != "ab" {
		t.Errorf("before the cut: %q, want %q", got, "ab")
	}
	if got := srv.Stats(); got.Dropped != 1 || got.Completed != 0 {
		t.Errorf("stats %+v", got)
	}
}

func TestAStalledAnswerWaitsUntilItsClientLeaves(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		stall  scriptedmodel.Stall
		events int // sent before the silence
	}{
		{"before the headers", scriptedmodel.StallHeaders, -1},
		{"after the first chunk", scriptedmodel.StallStart, 1},
		{"after two chunks of text", 2, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, scriptedmodel.Options{})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			ended := make(chan error, 1)
			read := make(chan int, 1)
			go func() {
				ended <- readEvents(client, request(t, ctx, srv, scripted(step{Text: "abcd", Chunks: 4, Stall: tt.stall})), tt.events, read)
			}()
			await(t, srv, open(1))
			if tt.events > 0 {
				if got := <-read; got != tt.events {
					t.Errorf("%d events before the silence, want %d", got, tt.events)
				}
			}
			if got := srv.Requests()[0]; !got.Open() || got.Aborted {
				t.Errorf("while stalled: %+v", got)
			}
			leave()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the client ends with %v", err)
			}
			await(t, srv, open(0))
			if got := srv.Requests()[0]; got.Open() || !got.Aborted || got.End.Before(got.Start) {
				t.Errorf("after the client left: %+v", got)
			}
			if diff := cmp.Diff(scriptedmodel.Stats{Requests: 1, MaxOpen: 1, Aborted: 1}, srv.Stats()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// readEvents reads a stream to its end and reports on read when n events are in.
// One more than n is an error.
func readEvents(client *http.Client, req *http.Request, n int, read chan<- int) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	events := 0
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "data: ") {
			continue
		}
		if events++; events == n {
			read <- n
		}
		if events > n {
			return fmt.Errorf("event %d came after the stall: %s", events, lines.Text())
		}
	}
	return lines.Err()
}

func TestSplitBytesTearsAnEventIntoPackets(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	whole, torn := chunkSizes(t, srv, step{Text: "€€€€"}), chunkSizes(t, srv, step{Text: "€€€€", SplitBytes: 7})
	// Both have the same events around the one of the text, which comes second.
	text := whole[1]
	if text <= 7 {
		t.Fatalf("the event has only %d bytes", text)
	}
	want := slices.Repeat([]int{7}, text/7)
	if text%7 != 0 {
		want = append(want, text%7)
	}
	if diff := cmp.Diff(want, torn[1:1+len(want)]); diff != "" {
		t.Errorf("packets of the event (-want +got):\n%s", diff)
	}
	if got := len(torn) - len(whole); got != len(want)-1 {
		t.Errorf("%d packets more than without, want %d", got, len(want)-1)
	}
}

// chunkSizes are the sizes of the HTTP chunks of an answer, one for each write of
// the server, which no client library shows.
func chunkSizes(t *testing.T, srv *scriptedmodel.Server, s step) []int {
	t.Helper()
	address, err := url.Parse(srv.BaseURL())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	req := request(t, t.Context(), srv, scripted(s))
	req.Close = true
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	var sizes []int
	for {
		head, rest, ok := bytes.Cut(body, []byte("\r\n"))
		if !ok {
			t.Fatalf("no last chunk in %q", raw)
		}
		size, err := strconv.ParseInt(string(head), 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		if size == 0 {
			return sizes
		}
		sizes = append(sizes, int(size))
		body = rest[int(size)+2:]
	}
}
