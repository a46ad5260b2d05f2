package watch_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/supervisor/api"
)

// page is a `pilothouse watch --web` at work.
type page struct {
	*scene
	*job
	address *url.URL // with the secret
}

func (s *scene) page() *page {
	s.t.Helper()
	p := &page{scene: s, job: s.start("watch", "--web")}
	await(s.t, "an address", func() (string, bool) {
		text := p.Stdout.String()
		return text + p.Stderr.String(), strings.HasSuffix(text, "\n")
	})
	address, err := url.Parse(strings.TrimSpace(p.Stdout.String()))
	if err != nil {
		s.t.Fatal(err)
	}
	p.address = address
	return p
}

// reply is an answer of the page's server.
type reply struct {
	status int
	header http.Header
	body   io.ReadCloser
}

func (r reply) text(t *testing.T) string {
	t.Helper()
	data, err := io.ReadAll(r.body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// ask makes a request; path is below the secret, or absolute. Change may alter it.
func (p *page) ask(method, path, body string, change ...func(*http.Request)) reply {
	p.t.Helper()
	target := p.address.ResolveReference(&url.URL{Path: path})
	if at := strings.IndexByte(path, '?'); at >= 0 {
		target = p.address.ResolveReference(&url.URL{Path: path[:at], RawQuery: path[at+1:]})
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, target.String(), strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range change {
		f(request)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = response.Body.Close() })
	return reply{response.StatusCode, response.Header, response.Body}
}

// seen is as much of a view as the tests need.
type seen struct {
	Daemon struct {
		Connected bool
		Note      string
	}
	Totals struct{ Running, Queued, Done, Failed int }
	Runs   []struct {
		Rounds []struct {
			Call  string
			Lanes []struct{ LaneID, Status, Phase string }
		}
	}
}

// views reads what the page is told.
type views struct {
	t     *testing.T
	lines *bufio.Reader
}

func (p *page) views() *views {
	p.t.Helper()
	r := p.ask("GET", "events", "")
	if media := r.header.Get("Content-Type"); r.status != http.StatusOK || media != "text/event-stream" {
		p.t.Fatalf("status %d with %s", r.status, media)
	}
	return &views{p.t, bufio.NewReader(r.body)}
}

func (v *views) next() (seen, error) {
	for {
		line, err := v.lines.ReadString('\n')
		if err != nil {
			return seen{}, err
		}
		if data, found := strings.CutPrefix(line, "data: "); found {
			var s seen
			return s, json.Unmarshal([]byte(data), &s)
		}
	}
}

func (v *views) until(what string, ok func(seen) bool) seen {
	v.t.Helper()
	for {
		s, err := v.next()
		if err != nil {
			v.t.Fatalf("the views ended before %s: %v", what, err)
		}
		if ok(s) {
			return s
		}
	}
}

func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	p := s.page()
	if !regexp.MustCompile(`^http://127\.0\.0\.1:[0-9]+/[a-z0-9]{26}/\n$`).MatchString(p.Stdout.String()) {
		t.Errorf("the address is %q", p.Stdout.String())
	}
	for path, media := range map[string]string{
		"": "text/html; charset=utf-8", "watch.css": "text/css; charset=utf-8", "watch.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		r := p.ask("GET", path, "")
		text := strings.ReplaceAll(r.text(t), "http://www.w3.org/2000/svg", "") // a name, nothing to load
		if r.status != http.StatusOK || r.header.Get("Content-Type") != media || text == "" {
			t.Errorf("%q: status %d with %s, %d bytes", path, r.status, r.header.Get("Content-Type"), len(text))
		}
		if found := regexp.MustCompile(`(https?:)?//[a-z0-9.-]+\.[a-z]+|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|style=|onclick=`).FindString(text); found != "" {
			t.Errorf("%q has %s", path, found)
		}
	}
	if r := p.ask("GET", "nothing", ""); r.status != http.StatusNotFound {
		t.Errorf("what is not there has status %d", r.status)
	}
}

func TestThePageIsOnlyForThoseWhoHaveItsAddress(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	s.refine()
	p := s.page()
	secret := strings.Trim(p.address.Path, "/")
	named := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		status int
	}{
		"the address":             {p.address.Path, named(p.address.Host), 200},
		"another name of it":      {p.address.Path, named("localhost:" + p.address.Port()), 200},
		"a rebound name":          {p.address.Path, named("evil.example:" + p.address.Port()), 421},
		"another port":            {p.address.Path, named("127.0.0.1:1"), 421},
		"no port":                 {p.address.Path, named("127.0.0.1"), 421},
		"no secret":               {"/", named(p.address.Host), 404},
		"no secret, an endpoint":  {"/events", named(p.address.Host), 404},
		"a part of the secret":    {"/" + secret[:25] + "/events", named(p.address.Host), 404},
		"another secret":          {"/" + strings.Repeat("a", 26) + "/events", named(p.address.Host), 404},
		"the secret and more":     {"/" + secret + "a/events", named(p.address.Host), 404},
		"the secret in a query":   {"/events?" + secret, named(p.address.Host), 404},
		"the secret further down": {"/x/" + secret + "/events", named(p.address.Host), 404},
	} {
		r := p.ask("GET", c.path, "", c.change, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") })
		if r.status != c.status {
			t.Errorf("%s: status %d, want %d", name, r.status, c.status)
		}
		if text := r.text(t); c.status != 200 && strings.Contains(text, "correctness") {
			t.Errorf("%s was told %q", name, text)
		}
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := r.header.Get(header); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s is %q", name, header, got)
			}
		}
		for header := range r.header {
			if strings.HasPrefix(header, "Access-Control-") {
				t.Errorf("%s has the header %s", name, header)
			}
		}
	}
	if r := p.ask("OPTIONS", "cancel", ""); r.status < 400 || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a preflight has status %d and %v", r.status, r.header)
	}
}

func TestThePageIsToldOfChangesAndReadsTranscripts(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	s.refine()
	p := s.page()
	told := p.views()
	first, err := told.next()
	if err != nil || !first.Daemon.Connected || first.Totals.Running != 3 {
		t.Fatalf("first view %+v (%v)", first, err)
	}
	call := first.Runs[0].Rounds[0].Call
	path := "transcript?" + url.Values{"call": {call}, "lane": {"ordering"}, "from": {"0"}}.Encode()
	early := p.ask("GET", path, "").text(t)
	if !strings.Contains(early, `<img src=x onerror=window.owned=1>`) || strings.Contains(early, "Forty") {
		t.Errorf("transcript %q", early)
	}
	s.open("more")
	told.until("answers", func(v seen) bool {
		for _, lane := range v.Runs[0].Rounds[0].Lanes {
			if lane.Phase != "responding" {
				return false
			}
		}
		return true
	})
	rest := p.ask("GET", strings.Replace(path, "from=0", "from="+itoa(len(early)), 1), "").text(t)
	if whole := p.ask("GET", path, "").text(t); !strings.Contains(rest, "Forty loaves") || whole != early+rest {
		t.Errorf("from %d on %q, the whole is %q", len(early), rest, whole)
	}
	for query, status := range map[string]int{
		"call=" + call + "&lane=nobody&from=0": 404, "call=none&lane=ordering&from=0": 404,
		"call=" + call + "&lane=ordering&from=-1": 400, "call=" + call + "&lane=ordering": 400,
		"call=..%2f..%2fhealth%3f&lane=x&from=0": 404,
	} {
		if r := p.ask("GET", "transcript?"+query, ""); r.status != status {
			t.Errorf("%s has status %d: %s", query, r.status, r.text(t))
		}
	}
	s.open("done")
	told.until("the end", func(v seen) bool { return v.Totals.Done == 3 })
	if status := p.end(syscall.SIGINT); status != 0 {
		t.Errorf("the page ended with %d", status)
	}
	if _, err := told.next(); err == nil {
		t.Error("the page's events go on after its end")
	}
}

func itoa(n int) string {
	data, _ := json.Marshal(n) // a number always can be
	return string(data)
}

func TestThePageCancels(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	s.refine()
	p := s.page()
	told := p.views()
	first, err := told.next()
	if err != nil {
		t.Fatal(err)
	}
	call := first.Runs[0].Rounds[0].Call
	for body, status := range map[string]int{"": 400, "{}": 400, "nonsense": 400, `{"call":"none"}`: 404, `{"call":"` + strings.Repeat("x", 1<<20) + `"}`: 400} {
		if r := p.ask("POST", "cancel", body); r.status != status {
			t.Errorf("%.40s has status %d, want %d", body, r.status, status)
		}
	}
	if r := p.ask("GET", "cancel", ""); r.status != http.StatusMethodNotAllowed {
		t.Errorf("a GET has status %d", r.status)
	}
	if r := p.ask("POST", "cancel", `{"call":"`+call+`","lane":"ordering"}`); r.status != http.StatusAccepted {
		t.Fatalf("status %d: %s", r.status, r.text(t))
	}
	v := told.until("the end of a lane", func(v seen) bool { return v.Totals.Failed > 0 })
	if lanes := v.Runs[0].Rounds[0].Lanes; v.Totals.Running != 2 || lanes[1].LaneID != "ordering" || lanes[1].Status != "cancelled" {
		t.Errorf("view %+v", v)
	}
	if r := p.ask("POST", "cancel", `{"call":"`+call+`"}`); r.status != http.StatusAccepted {
		t.Fatalf("status %d: %s", r.status, r.text(t))
	}
	told.until("the end of all lanes", func(v seen) bool { return v.Totals.Failed == 3 })
}

func TestThePageOutlivesTheDaemonAndItsReaders(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve()
	s.refine()
	p := s.page()
	told := p.views()
	daemon.end(syscall.SIGKILL)
	told.until("the end of the daemon", func(v seen) bool {
		return !v.Daemon.Connected && strings.Contains(v.Daemon.Note, "the daemon has gone") && len(v.Runs) == 1
	})
	s.serve()
	told.until("the next daemon", func(v seen) bool { return v.Daemon.Connected && v.Totals.Failed == 3 })
	ctx, stop := context.WithTimeout(t.Context(), piharness.Patience)
	defer stop()
	if err := api.Stop(ctx, s.Socket()); err != nil { // no page keeps a daemon from ending
		t.Fatal(err)
	}
	told.until("its orderly end", func(v seen) bool { return !v.Daemon.Connected })
	if status := p.end(syscall.SIGTERM); status != 0 {
		t.Errorf("the page ended with %d:\n%s", status, p.Stderr.String())
	}
}
