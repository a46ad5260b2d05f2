package watch_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"pilothouse/integration/piharness"
)

// browser is a headless Chromium that is driven through pipes: it reads commands from
// its fourth file and writes answers to its fifth, each ended by a NUL byte.
type browser struct {
	t       *testing.T
	write   *os.File
	answers chan answer
	session string
	last    int

	mu       sync.Mutex
	problems []string // what the page complained about
}

type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// browse opens an address in a browser of its own.
func (s *scene) browse(address string) *browser {
	s.t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		s.t.Skip("chromium is not installed, and it is the browser of these tests")
	}
	commands, write, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	read, said, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+s.t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{commands, said}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	_, _ = commands.Close(), said.Close() // the browser has them
	b := &browser{t: s.t, write: write, answers: make(chan answer, 100)}
	var reading sync.WaitGroup
	reading.Go(func() { b.listen(read) })
	hung := time.AfterFunc(piharness.Patience, func() { _ = cmd.Process.Kill() })
	s.t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil)
		_ = cmd.Wait() // how it ends is its own affair
		hung.Stop()
		_, _ = write.Close(), read.Close()
		reading.Wait()
	})
	var target struct{ TargetID, SessionID string }
	b.into(&target, "Target.createTarget", map[string]any{"url": "about:blank"})
	b.into(&target, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil)
	}
	b.call("Page.navigate", map[string]any{"url": address})
	return b
}

// listen sorts what the browser says until it is gone.
func (b *browser) listen(from *os.File) {
	defer close(b.answers)
	messages := bufio.NewReader(from)
	for {
		message, err := messages.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(message[:len(message)-1], &a) != nil {
			continue
		}
		switch {
		case a.ID != 0:
			b.answers <- a
		case a.Method == "Runtime.exceptionThrown", a.Method == "Log.entryAdded" && strings.Contains(string(a.Params), `"level":"error"`):
			b.mu.Lock()
			b.problems = append(b.problems, string(a.Params))
			b.mu.Unlock()
		}
	}
}

func (b *browser) call(method string, params any) json.RawMessage {
	b.t.Helper()
	b.last++
	message := map[string]any{"id": b.last, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	data, err := json.Marshal(message)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.write.Write(append(data, 0)); err != nil && !errors.Is(err, fs.ErrClosed) {
		b.t.Fatalf("%s: %v", method, err)
	}
	for a := range b.answers {
		if a.ID != b.last {
			continue
		}
		if a.Error != nil {
			b.t.Fatalf("%s: %s", method, a.Error)
		}
		return a.Result
	}
	b.t.Fatalf("the browser ended before it answered %s", method)
	return nil
}

func (b *browser) into(value any, method string, params any) {
	b.t.Helper()
	if err := json.Unmarshal(b.call(method, params), value); err != nil {
		b.t.Fatal(err)
	}
}

// value is what an expression of JavaScript is on the page, as text.
func (b *browser) value(expression string) string {
	b.t.Helper()
	var result struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.into(&result, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if result.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, result.ExceptionDetails)
	}
	return fmt.Sprint(result.Result.Value)
}

// shows waits until all the words are in the text of the page.
func (b *browser) shows(words ...string) {
	b.t.Helper()
	await(b.t, "a page with "+strings.Join(words, ", "), func() (string, bool) {
		text := b.value("document.body ? document.body.innerText : ''")
		for _, word := range words {
			if !strings.Contains(text, word) {
				return text, false
			}
		}
		return text, true
	})
}

// is waits until an expression has a value.
func (b *browser) is(expression, want string) {
	b.t.Helper()
	await(b.t, expression+" = "+want, func() (string, bool) {
		got := b.value(expression)
		return got, got == want
	})
}

// press presses keys by their names in the DOM.
func (b *browser) press(names ...string) {
	b.t.Helper()
	codes := map[string]int{"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "Tab": 9, "End": 35, "Home": 36}
	for _, name := range names {
		event := map[string]any{"type": "keyDown", "key": name, "windowsVirtualKeyCode": codes[name]}
		switch {
		case len(name) == 1:
			event["text"] = name
		case name == "Enter":
			event["text"] = "\r"
		}
		b.call("Input.dispatchKeyEvent", event)
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name, "windowsVirtualKeyCode": codes[name]})
	}
}

// size makes the page of a size, in a light or dark theme.
func (b *browser) size(width, height int, theme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}}})
}

// content makes sure that the page had nothing to complain about.
func (b *browser) content() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) > 0 {
		b.t.Errorf("the page complained:\n%s", strings.Join(b.problems, "\n"))
	}
}

const selectedRow = `document.querySelector('[aria-selected=true]').innerText.replace(/\s+/g, ' ')`

func TestABrowserFollowsATranscriptAsText(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	s.refine()
	b := s.browse(s.page().address.String())
	b.shows("3 running", "bake-more-bread", "0/3 ended", "correctness", "tool: read", "$0.25", "correctness · stub-1 · 1 turn",
		"Read ␛[31mme␛[0m <img src=x onerror=window.owned=1> 計画")
	s.open("more")
	b.shows("const Minutes = 45", "Forty loaves fit.", "responding")
	b.is("document.querySelectorAll('#pane img').length + String(window.owned)", "0undefined")
	b.is("getComputedStyle(document.querySelector('#pane .tool-result'), '::before').content.includes('read')", "true")
	s.open("done")
	b.shows("3 done", "3/3 ended", "complete", "$2.25")
	b.content()
}

func TestABrowserIsUsedByKeyboard(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	s.refine()
	b := s.browse(s.page().address.String())
	b.shows("3 running", "Read ␛[31mme␛[0m")
	b.press("ArrowDown")
	b.is(selectedRow+".includes('ordering')", "true")
	b.shows("ordering · stub-1")
	b.press("c", "Escape")
	b.is("document.querySelector('dialog').open", "false")
	b.press("c")
	b.shows("Cancel ordering, or all of reviewer")
	b.is("document.activeElement.innerText", "Let it work")
	b.press("Tab")
	b.is("document.activeElement.innerText", "Cancel this lane")
	b.press("Enter")
	b.shows("2 running", "1/3 ended", "cancelled")
	b.press("/", "v", "e", "r", "i", "f")
	b.is("document.querySelectorAll('.row.lane').length", "1")
	b.press("Enter", "End")
	b.is(selectedRow+".includes('verification')", "true")
	b.press("c", "Tab", "Tab", "Enter")
	b.shows("0 running", "3 failed")
	b.content()
}

func TestAPageIsReadableAtAnySizeInLightAndDark(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	s.refine()
	b := s.browse(s.page().address.String())
	b.shows("3 running", "Read ␛[31mme␛[0m")
	// The contrast of text and background, as WCAG 2.2 reckons it; 4.5 is its bar.
	const poorest = `(() => {
		const light = (c) => { const [r, g, b] = c.match(/\d+/g).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
			return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
		const back = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!c.startsWith("rgba")) return c; } return "rgb(255, 255, 255)"; };
		let worst = 99;
		for (const e of document.querySelectorAll("h1, h2, p, span, button, label, #pane div, footer, kbd")) {
			if (!e.innerText || !e.checkVisibility()) continue;
			const [x, y] = [light(getComputedStyle(e).color), light(back(e))];
			worst = Math.min(worst, (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05));
		}
		return worst >= 4.5 ? "readable" : String(worst);
	})()`
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int{320, 800, 1400} {
			b.size(width, 700, theme)
			b.is(fmt.Sprintf("[innerWidth, matchMedia('(prefers-color-scheme: %s)').matches].join()", theme), fmt.Sprintf("%d,true", width))
			b.is(poorest, "readable")
			b.is("document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight", "true")
			b.is("$('pane').clientHeight > 100 && $('list').clientHeight > 80", "true")
			b.is("$('follow').checked", "true")
		}
	}
	b.content()
}

func TestABrowserSaysWhenNothingMovesAnyMore(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve()
	s.refine()
	p := s.page()
	b := s.browse(p.address.String())
	b.shows("3 running")
	daemon.end(9)
	b.shows("the daemon has gone; it is looked for")
	b.is("$('cancel').hidden", "true")
	s.serve()
	b.shows("3 failed")
	b.is("$('alarm').hidden", "true")
	p.end(15)
	b.shows("`pilothouse watch --web` has ended")
}
