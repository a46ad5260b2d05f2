package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// streams are where a command reads and writes, so that tests can give their own.
type streams struct {
	in       io.Reader
	out      io.Writer // results only
	err      io.Writer // progress and messages
	terminal bool      // a person sits at err and in
}

func standardStreams() streams {
	return streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		terminal: term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
	}
}
