// Command pilothouse runs the planning workflow of the Pi coding agent: plan
// reviews, criticism and reference analysis by lanes of pi children, recorded
// in the workspace's git directory.
package main

import (
	"os"

	"pilothouse/lanes/proc"
)

// version is set at build time.
var version = "dev"

func main() {
	proc.GuardMain() // does not return in the guard process that lanes/proc starts
	os.Exit(run(os.Args[1:], standardStreams()))
}
