package pijson

import (
	"bytes"
	"io"
	"unicode/utf8"
)

const (
	// DefaultMaxLine is the default of ReaderOptions.MaxLine.
	DefaultMaxLine = 128 << 20
	// earlyHead is how much of a line must be there before its end has come to look
	// whether it is enough. Less is not worth a look: it is cheaply moved.
	earlyHead = 4 << 10
)

// ReaderOptions configures a Reader. The zero value is ready for use.
type ReaderOptions struct {
	// MaxLine bounds, in bytes, what is kept in memory of one line; 0 means
	// DefaultMaxLine. It applies only to lines that are needed whole, which in
	// practice is the end of an assistant message: the bodies of other long lines
	// are never kept. A line beyond it is skipped and reported as a TooLong event.
	// Lines that fit the read buffer of 256 KiB are never too long.
	MaxLine int
}

// ReaderStats counts what a Reader has seen.
type ReaderStats struct {
	Bytes   int64 // bytes read
	Lines   int64 // lines, blank ones included
	Events  int64 // events returned
	Noise   int64 // lines that were neither blank nor an object with a type
	TooLong int64 // events lost but for their kind, because of MaxLine
	Unknown int64 // events of KindUnknown
}

// Reader splits a child's standard output at line feeds, and only there (a raw
// U+2028 is legal inside a JSON string), and turns the lines into events. What is no
// event is counted and skipped: notices of npm, byte order marks, colour codes
// around an event, blank lines. Memory stays within the read buffer but for lines
// that are needed whole. A Reader is not safe for concurrent use.
type Reader struct {
	in      buffer
	maxLine int
	look    int    // how much must be there of the next line to look at it
	tail    []byte // the end of a long line that is being skipped
	stats   ReaderStats
	err     error // sticky: io.EOF or the read error
}

// NewReader returns a Reader of r, which is usually the read end of a pipe.
func NewReader(r io.Reader, o ReaderOptions) *Reader { return newReader(r, o, bufferSize) }

func newReader(r io.Reader, o ReaderOptions, size int) *Reader {
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	return &Reader{in: newBuffer(r, size), maxLine: o.MaxLine, look: earlyHead}
}

// Stats returns the counts so far.
func (r *Reader) Stats() ReaderStats {
	stats := r.stats
	stats.Bytes = r.in.read
	return stats
}

// Next returns the next event. After the last one it returns io.EOF, or the error of
// the underlying reader; a last line without a line feed is still read before that.
func (r *Reader) Next() (e Event, err error) {
	for r.err == nil {
		if r.next(&e) {
			r.stats.Events++
			if e.Kind == KindUnknown {
				r.stats.Unknown++
			}
			return e, nil
		}
	}
	return Event{}, r.err
}

// next reads on by a line, or by what has come of one, into e. It reports false when
// that gave no event.
func (r *Reader) next(e *Event) (ok bool) {
	if line, complete := r.in.line(); complete {
		r.look = earlyHead
		return r.line(line, e)
	}
	head := r.in.pending()
	switch {
	case r.in.full():
		r.look = earlyHead
		*e, ok = r.long(r.in.take())
		return ok
	case r.in.err != nil:
		r.err = r.in.err
		return len(head) > 0 && r.line(r.in.take(), e)
	case len(head) >= r.look:
		if *e, ok = decodeHead(head); ok {
			r.look = earlyHead
			return r.begun()
		}
		r.look = 2 * len(head)
	}
	r.in.fill()
	return false
}

// begun drops the line whose beginning gave an event. It reports whether the complete
// line would too: where the pipe cuts the stream makes no difference.
func (r *Reader) begun() bool {
	r.stats.Lines++
	fits := r.skip() < int64(len(r.in.mem))
	if end := trimEscapesRight(r.tail); fits && len(end) > 0 && end[len(end)-1] != '}' {
		r.stats.Noise++
		return false
	}
	return true
}

// line decodes a complete line without its line feed.
func (r *Reader) line(line []byte, e *Event) (ok bool) {
	r.stats.Lines++
	line, blank := clean(line)
	if blank {
		return false
	}
	if *e, ok = decodeLine(line, false); !ok {
		r.stats.Noise++
	}
	return ok
}

// decodeHead decodes a line of which b is the beginning, if that is enough.
func decodeHead(b []byte) (Event, bool) {
	if hasPrefix(b, updatePrefix) {
		return scanUpdate(b)
	}
	e, need := peek(b)
	return e, need == needHead
}

// decodeLine decodes a clean, complete line, by hand where possible. If the line is
// owned, the event may keep its memory, and the line is of no use afterwards.
func decodeLine(line []byte, owned bool) (e Event, ok bool) {
	if line[len(line)-1] != '}' {
		return Event{}, false
	}
	if hasPrefix(line, updatePrefix) {
		if e, ok = scanUpdate(line); ok {
			return e, true
		}
		return decodeWhole(line)
	}
	e, need := peek(line)
	if need == needHead || (need == needTail && finish(&e, line)) {
		return e, true
	}
	if e.Role == RoleToolResult && !bytes.Contains(line, usageName) {
		e.Message = &Message{}
		return e, true
	}
	if e, ok := scanAnswer(line, owned); ok {
		return e, true
	}
	return decodeWhole(line)
}

// usageName is the key of a usage. Quotes inside a JSON string are escaped, so that
// it is neither hidden in one nor seems to be in one.
var usageName = []byte(`"usage"`)

// need tells how much of a line must be seen to make its event.
type need uint8

const (
	needWhole need = iota // decode the whole line
	needHead              // the head was enough
	needTail              // the head was enough but for keys at the very end
)

// peek makes the event of a line from its head, if the body is not needed. The type
// is the first key of every event (Pi fact §3).
func peek(b []byte) (Event, need) {
	p, ok := after(b, typePrefix)
	if !ok {
		return Event{}, needWhole
	}
	end := bytes.IndexByte(p[:min(len(p), maxTypeName+1)], '"')
	if end <= 0 || bytes.IndexByte(p[:end], '\\') >= 0 {
		return Event{}, needWhole
	}
	name := p[:end]
	e := Event{Kind: lineKind(name)}
	p = p[end+1:]
	switch e.Kind {
	case KindAgentStart, KindTurnStart, KindTurnEnd, KindCompactionStart:
		return e, needHead
	case KindUnknown:
		if string(name) == "message_update" {
			return Event{}, needWhole
		}
		e.Type = string(name)
		return e, needHead
	case KindAgentEnd:
		if hasPrefix(p, `,"messages":[`) {
			return e, needTail
		}
	case KindToolEnd, KindToolUpdate:
		if scanTool(p, &e) {
			return e, needTail
		}
	case KindMessageStart, KindMessageEnd:
		if p, ok = after(p, `,"message":{"role":`); !ok {
			break
		}
		if e.Role, _, ok = scanString(p[:min(len(p), maxTypeName)]); !ok {
			break
		}
		if e.Kind == KindMessageStart || (e.Role != RoleAssistant && e.Role != RoleToolResult) {
			return e, needHead
		}
	default:
	}
	return e, needWhole
}

// finish reads the keys at the end of a line: isError of a tool event, willRetry of
// an agent_end. It reports false when the end is not as Pi prints it, so that only a
// full decoding can tell.
func finish(e *Event, line []byte) bool {
	tail := line[max(0, len(line)-tailSize):]
	if !hasSuffix(tail, "}") {
		return false
	}
	if e.Kind == KindAgentEnd {
		if value, ok := lastBool(tail, `,"willRetry":`); ok {
			e.WillRetry = value
			return true
		}
		// The older generation has no such key (Pi fact §4).
		return hasSuffix(tail, `]}`) && !bytes.Contains(line, []byte(`"willRetry":`))
	}
	if e.Kind == KindToolUpdate {
		return true
	}
	if i := bytes.LastIndex(tail, []byte(`,"durationMs":`)); i >= 0 {
		if rest := tail[i+len(`,"durationMs":`) : len(tail)-1]; len(bytes.Trim(rest, "0123456789.")) == 0 {
			tail = append(tail[:i:i], '}')
		}
	}
	value, ok := lastBool(tail, `,"isError":`)
	e.IsError = value
	return ok
}

// lastBool reads the boolean of the last key of the outermost object that tail ends.
func lastBool(tail []byte, key string) (value, ok bool) {
	switch {
	case hasSuffix(tail, key+"true}"):
		return true, true
	case hasSuffix(tail, key+"false}"):
		return false, true
	}
	return false, false
}

func hasSuffix(p []byte, suffix string) bool {
	return len(p) >= len(suffix) && string(p[len(p)-len(suffix):]) == suffix
}

// long reads a line that does not fit the read buffer; head is its beginning, valid
// until the next read.
func (r *Reader) long(head []byte) (Event, bool) {
	r.stats.Lines++
	b := cleanHead(head)
	if !mayBeEvent(b) {
		noise := len(b) > 0
		for more := true; more; {
			var piece []byte
			piece, more = r.in.rest()
			noise = noise || len(bytes.TrimSpace(piece)) > 0
		}
		if noise {
			r.stats.Noise++
		}
		return Event{}, false
	}
	if hasPrefix(b, updatePrefix) {
		if e, ok := scanUpdate(b); ok {
			r.skip()
			return e, true
		}
		return r.whole(b)
	}
	e, need := peek(b)
	switch need {
	case needHead:
		r.skip()
		return e, true
	case needTail:
		r.skip()
		tail := trimEscapesRight(r.tail)
		if !finish(&e, tail) {
			// Too long to be decoded for one flag: look for it near both ends.
			e.WillRetry = bytes.Contains(tail, []byte(`"willRetry":true`))
			e.IsError = bytes.Contains(tail, []byte(`"isError":true`))
		}
		return e, true
	default:
		return r.whole(b)
	}
}

// skip reads to the end of the line, keeps its tail, and returns its length.
func (r *Reader) skip() (length int64) {
	r.tail, length = r.in.skip(r.tail[:0])
	return length
}

// whole collects the rest of the line behind head and decodes it. An update line is
// left as soon as its piece of text is complete.
func (r *Reader) whole(head []byte) (Event, bool) {
	known, _ := peek(head)
	update := hasPrefix(head, updatePrefix)
	var line pile
	line.add(head)
	for more, try := true, 2*len(head); more; {
		var piece []byte
		piece, more = r.in.rest()
		if line.size+len(piece) > r.maxLine {
			if more {
				r.skip()
			}
			r.stats.TooLong++
			return Event{Kind: known.Kind, Type: known.Type, Role: known.Role, TooLong: true}, true
		}
		line.add(piece)
		if update && more && line.size >= try {
			if e, ok := scanUpdate(line.joined()); ok {
				r.skip()
				return e, true
			}
			try = 2 * line.size
		}
	}
	b, _ := clean(line.joined())
	e, ok := decodeLine(b, utf8.Valid(b))
	if !ok {
		r.stats.Noise++
	}
	return e, ok
}
