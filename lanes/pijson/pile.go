package pijson

// The pieces of a pile are no smaller and no larger than this.
const (
	minPiece = 256 << 10
	maxPiece = 4 << 20
)

// pile collects a line that is needed whole. What it has is never copied while it
// grows, so that a line of any length costs its own size, and twice that once it is
// joined.
type pile struct {
	pieces [][]byte
	size   int
}

func (p *pile) add(b []byte) {
	for len(b) > 0 {
		last := len(p.pieces) - 1
		if last < 0 || len(p.pieces[last]) == cap(p.pieces[last]) {
			p.pieces = append(p.pieces, make([]byte, 0, min(max(p.size, minPiece), maxPiece)))
			last++
		}
		piece := p.pieces[last]
		n := min(len(b), cap(piece)-len(piece))
		p.pieces[last] = append(piece, b[:n]...)
		p.size += n
		b = b[n:]
	}
}

// joined returns the whole in one piece, which the pile goes on from.
func (p *pile) joined() []byte {
	if len(p.pieces) > 1 {
		line := make([]byte, 0, p.size)
		for i, piece := range p.pieces {
			line = append(line, piece...)
			p.pieces[i] = nil // the collector need not wait for the last one
		}
		p.pieces = append(p.pieces[:0], line)
	}
	return p.pieces[0]
}
