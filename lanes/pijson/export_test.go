package pijson

import "io"

// NewSmallReader is a Reader whose buffer is small, so that short lines are long to it.
func NewSmallReader(r io.Reader, o ReaderOptions, size int) *Reader { return newReader(r, o, size) }
