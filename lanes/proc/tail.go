package proc

import "strings"

// tail keeps the last bytes of a stream in bounded memory. It is not safe for
// concurrent use; the goroutine that drains stderr owns it.
type tail struct {
	limit int
	buf   []byte // grows up to limit, then is a ring whose oldest byte is at next
	next  int
	total int64
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	t.total += int64(n)
	if len(p) >= t.limit {
		t.buf, t.next = append(t.buf[:0], p[len(p)-t.limit:]...), 0
		return n, nil
	}
	if room := t.limit - len(t.buf); room > 0 {
		k := min(room, len(p))
		t.buf = append(t.buf, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(t.buf[t.next:], p)
		t.next = (t.next + k) % t.limit
		p = p[k:]
	}
	return n, nil
}

func (t *tail) String() string {
	text := string(t.buf[t.next:]) + string(t.buf[:t.next])
	return strings.ToValidUTF8(text, "\uFFFD")
}
