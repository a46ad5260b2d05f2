package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// stream writes the events of a call as JSON lines until its last. The client may go
// at any time and come back with the number it has got to.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, c *call, from int64) error {
	defer c.read()()
	out, err := newFlow(w, "application/x-ndjson")
	if err != nil {
		return err
	}
	for {
		v := c.feed.since(from)
		for _, e := range v.entries {
			e.event.Seq = e.number
			line, err := encode(e.event)
			if err != nil {
				return nil // events can be encoded: they were read from JSON or are on disk as such
			}
			if out.write(line) != nil {
				return nil
			}
			if e.event.last() {
				c.offer()
			}
		}
		from = v.next
		if out.flush() != nil || v.ended {
			return nil
		}
		select {
		case <-v.changed:
		case <-r.Context().Done():
			return nil
		}
	}
}

// getEvents streams what happens in all calls as server-sent events. Last-Event-ID
// resumes; an event "reset" says that what lies between is not to be had any more, and
// that the lists have to be read again.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request) error {
	next, reset := s.calls.overview.position(), false
	life := strconv.FormatInt(s.started.UnixNano(), 36)
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		of, number, _ := strings.Cut(id, "-")
		seen, err := strconv.ParseInt(number, 10, 64)
		if reset = err != nil || of != life || seen >= next; !reset {
			next = seen + 1
		}
	}
	out, err := newFlow(w, "text/event-stream")
	if err != nil {
		return err
	}
	for {
		v := s.calls.overview.since(next)
		var piece bytes.Buffer
		if reset || v.gap {
			reset = false
			fmt.Fprint(&piece, "event: reset\ndata: {}\n\n")
		}
		for _, e := range v.entries {
			data, err := json.Marshal(e.event)
			if err != nil {
				return nil // as in stream
			}
			fmt.Fprintf(&piece, "id: %s-%d\nevent: %s\ndata: %s\n\n", life, e.number, e.event.Type, data)
		}
		next = v.next
		if out.write(piece.Bytes()) != nil || out.flush() != nil {
			return nil
		}
		select {
		case <-v.changed:
		case <-s.leaving:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// getTranscript writes the transcript of a lane from an offset in bytes on, and with
// ?follow=1 goes on until the lane has ended. Which file that is says the call's own
// record. A lane that has not said anything yet has an empty transcript.
func (s *Server) getTranscript(w http.ResponseWriter, r *http.Request) error {
	offset, err := numberOf(r, "from")
	if err != nil {
		return err
	}
	c, err := s.calls.find(r.PathValue("call"))
	if err != nil {
		return err
	}
	path, _, err := c.transcript(r.PathValue("lane"))
	if err != nil {
		return err
	}
	follow := r.URL.Query().Get("follow") == "1"
	out, err := newFlow(w, "application/x-ndjson")
	if err != nil {
		return err
	}
	for {
		// What happens after this look wakes us; what happened before is in the file.
		changed := c.feed.since(c.feed.position()).changed
		_, growing, err := c.transcript(r.PathValue("lane"))
		if err != nil {
			return nil // it was there before
		}
		n, err := copyFrom(out, path, offset)
		offset += n
		if err != nil || out.flush() != nil || !follow || !growing {
			return nil
		}
		select {
		case <-changed:
		case <-s.leaving:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

func copyFrom(out flow, path string, offset int64) (int64, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(writerFunc(out.write), file)
}

// writerFunc is a writer that takes all or fails.
type writerFunc func([]byte) error

func (f writerFunc) Write(p []byte) (int, error) {
	if err := f(p); err != nil {
		return 0, err
	}
	return len(p), nil
}
