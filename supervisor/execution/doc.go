// Package execution is how a plan is carried out, as pure functions: what the plan
// file says there is to do and to verify, what an agent reports with the markers in
// its messages, what it is told before its next turn, and when it is woken up to go
// on. It reads no file, no clock and no settings (spec: execution 5.1 to 5.4).
package execution
