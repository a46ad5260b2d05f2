package pijson

import (
	"bytes"
	"io"
)

const (
	// bufferSize is the read buffer. A line that fits is decoded in place; of a
	// longer one only what is needed is kept. The results of tools fit, which Pi cuts
	// at 50 KB, and large reads are cheaper than many.
	bufferSize = 256 << 10
	// maxEmptyReads bounds how often in a row a read may bring nothing.
	maxEmptyReads = 100
)

// buffer reads ahead. Unlike a bufio.Reader it shows the beginning of a line whose
// end has not come, and lets go of it, so that a line of which nothing more is
// needed is not moved about and leaves all the room to the next read.
type buffer struct {
	source     io.Reader
	mem        []byte
	start, end int // what is between them has not been taken
	searched   int // so many bytes from start on hold no line feed
	read       int64
	err        error // sticky
}

func newBuffer(source io.Reader, size int) buffer {
	return buffer{source: source, mem: make([]byte, size)}
}

// line takes the next line, without its line feed, if all of it is there. It is
// valid until the next fill.
func (b *buffer) line() ([]byte, bool) {
	from := b.start + b.searched
	i := bytes.IndexByte(b.mem[from:b.end], '\n')
	if i < 0 {
		b.searched = b.end - b.start
		return nil, false
	}
	line := b.mem[b.start : from+i]
	b.start, b.searched = from+i+1, 0
	return line, true
}

// pending is what is there of the next line, as long as line does not find its end.
func (b *buffer) pending() []byte { return b.mem[b.start:b.end] }

// full tells that pending fills the buffer, so that nothing more can be read before
// it is taken.
func (b *buffer) full() bool { return b.end-b.start == len(b.mem) }

// take takes what is pending. It is valid until the next fill.
func (b *buffer) take() []byte {
	p := b.pending()
	b.start, b.end, b.searched = 0, 0, 0
	return p
}

// fill reads once, into what is free. Afterwards there is more, or an error.
func (b *buffer) fill() {
	if b.start > 0 {
		b.end = copy(b.mem, b.pending())
		b.start = 0
	}
	for range maxEmptyReads {
		n, err := b.source.Read(b.mem[b.end:])
		b.end += n
		b.read += int64(n)
		b.err = err
		if n > 0 || err != nil {
			return
		}
	}
	b.err = io.ErrNoProgress
}

// rest takes the next piece of a line: all that is left of it, or as much as fits
// the buffer if more follows. It is valid until the next fill.
func (b *buffer) rest() (piece []byte, more bool) {
	for {
		if line, ok := b.line(); ok {
			return line, false
		}
		switch {
		case b.full():
			return b.take(), true
		case b.err != nil:
			return b.take(), false
		}
		b.fill()
	}
}

// skip drops the rest of a line, keeping its last bytes in tail, and tells how long
// it was.
func (b *buffer) skip(tail []byte) (_ []byte, length int64) {
	for {
		if line, ok := b.line(); ok {
			return appendTail(tail, line), length + int64(len(line))
		}
		length += int64(len(b.pending()))
		tail = appendTail(tail, b.take())
		if b.err != nil {
			return tail, length
		}
		b.fill()
	}
}

// tailSize is what is kept of the end of a long line whose last keys matter.
const tailSize = 1 << 10

// appendTail appends piece and drops all but the last tailSize bytes.
func appendTail(tail, piece []byte) []byte {
	if over := len(tail) + len(piece) - tailSize; over > 0 {
		tail = append(tail[:0], tail[min(over, len(tail)):]...)
	}
	return append(tail, piece[max(0, len(piece)-tailSize):]...)
}
