// Package faults_test has the faults that systems of this kind were seen to have in
// the field, each tried on the whole program: the real pilothouse with a stub in
// the place of pi, and with the real pi of both generations wherever that can be
// made to show the fault.
//
// A fault is named by its section and number in the catalogue that the tests of
// other packages use too. "here" is a test of this package named TestFault and
// that number; what it leaves open stands behind it.
//
//	A, the end of a child
//	 1 does not exit after its answer        here; lanes/pijson
//	 3 says nothing more                     here, real pi stalled; lanes/pijson
//	 4 reads its input to the end            here
//	 5 grandchild holds the output           here; lanes/proc
//	 6 grandchild left the group             here, with and without cgroups; lanes/proc
//	 8 closes its output and lives on        here; lanes/pijson
//	 9 output after the answer, EPIPE        here, real pi behind a full pipe; lanes/pijson
//	10 prints for ever, parent killed        here; lanes/proc
//	11 killed after a tool call              here; lanes/pijson
//	12 model error with exit status 0        here, real pi; lanes/pijson
//	13 no answer with exit status 0          here, real pi; lanes/pijson
//	15 retries exhausted with status 0       here, real pi; lanes/pijson
//	16 errors that pi retries                here, real pi; lanes/pijson
//	17 our time-out in pi's back-off         here, real pi; lanes/pijson
//	18 loops                                 here, by turns and by time; lanes/pijson
//	19 killed from outside                   here, real pi
//	20 killed during a silent model call     here, real pi; actors (property: one record a lane)
//	22 asking for a queued or finished lane  here with show; there is no command yet that waits for a lane
//	23 a cancelled wait                      here: who leaves ends nobody else's lane; there is no command yet
//	                                         that waits for another's lane
//
//	B, the event stream
//	24 lines of 3 and 70 MB                  here; lanes/pijson also has one that is longer than can be read
//	25 U+2028 in a text                      here, real pi; lanes/pijson
//	26 characters cut between writes         here; lanes/pijson
//	28 noise                                 here; lanes/pijson
//	30 the words of vendors                  here, real pi; lanes/pijson
//	31 1 GiB on standard error               here; lanes/proc
//	32 long tool call                        here, shortened to two seconds
//
//	C, the start of a child
//	33 a plan beyond 128 KiB                 here, real pi; lanes/proc
//	34 fight for a lock                      here; lanes/pijson
//	35 slow start                            here, shortened to three seconds; lanes/pijson
//	36 a lock that is never released         here; lanes/pijson
//	37 a program that cannot run             here; lanes, lanes/proc
//	38 dies at once                          here; the command line of a child is on no record: that of pi is the
//	                                         user's own and may hold secrets, the rest follows from the lane
//	39 killed before the first record        here
//	40 no resources                          here and in lanes/proc for descriptors; too few processes or too
//	                                         little memory end the Go runtime itself first and are not tried
//	42 environment                           here
//	43 recursion                             here; lanes/proc
//
//	D, orphans, cancel, shutdown
//	44 signals and kill -9                   here, with and without cgroups and guard; real pi with a shell
//	45 closed terminal                       here; integration has it with real pi
//	46 servers that a child left             here; lanes/proc
//	48 child of another name                 here
//	50 children of a killed process          here: none is adopted, the next start ends them
//	51 answer stored, checkpoint not         here; supervisor
//	53 cancel with a queue                   here
//	54 panic while stopping                  lanes, TestALaneThatPanicsWhileItStopsEndsItsChild: no input of the
//	                                         program makes an actor panic
//	55 panics for ever                       lanes, TestALaneThatPanicsForEverIsGivenUp; likewise
//	56 dead peer                             does not apply: nothing is remote
//	58 panic in a goroutine                  lanes, TestAPanicInTheGoroutineOfAnAttemptFailsTheLaneOnly; likewise
//	59 shutdown                              here for processes; supervisor (goleak) for goroutines
//	60 TERM ignored                          here; lanes/proc
//
//	G, plan mode
//	103 a tool that was not allowed          here; lanes/pijson; integration has real pi refuse it
//
//	J, cost, metrics, tracing
//	113 spends without end                   here; lanes/pijson
//	115 spans lost at exit                   does not apply yet: there is no exporter
//	116 cardinality of metrics               does not apply yet: there are no metrics
//	117 port of metrics in use               does not apply yet
//	118 alarms that cannot fire              does not apply yet: there are no alarms
//	119 cancel of a child blocked in a read  here
package faults_test
