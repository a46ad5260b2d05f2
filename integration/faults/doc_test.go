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
//	22 asking for a queued or finished lane  here with show; supervisor/api for who waits for a call, also one that is over
//	23 a cancelled wait                      here: who leaves ends nobody else's lane; integration/daemon: a client
//	                                         that goes away ends not even its own
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
//	E, state on disk, ownership, takeover
//	61 spoiled checkpoint                    here; store for every file
//	62 order of writes, kills at any moment  store, recorded call by call; integration/crash for 1 000 kills
//	64 full, read-only, foreign disk         here on a disk of its own, as root; store for every call that may fail, EXDEV too
//	65 one spoiled run of five               here
//	66 an empty object in any file           here; store
//	67 spoiled ledgers                       here; store
//	68 process ids that are used again       here, id 1 too; store, also across process namespaces
//	70 empty owner.json and its lock         here; store
//	71 an owner that trusts its memory       here: it notices without a write of its own; store, supervisor
//	72 an owner that was suspended           here; store
//	73 wrong clocks                          here for file times and records; the clock of the machine is not set
//	74 several hosts                         here; store with boot, machine and namespace ids
//	76 the state of a killed owner           here: its lanes are lost and can be resumed; the doctor tells;
//	                                         supervisor; integration/daemon for a daemon
//	77 delivery to a client                  supervisor/api: delivered once, kept until then; integration/daemon
//	78 a write that fails                    here; store for one that fails once
//	79 the run of a dead owner               here
//	80 starts that failed                    here: nothing is counted
//	81 a lock that cannot be removed         here, as root
//	82 the state is behind a link            here; supervisor/api and integration/daemon for stale sockets; there
//	                                         is no redirect to follow twice
//	83 a long history                        here: what is not listed is not read, old runs can be removed; store,
//	                                         integration/bench with 5 000 runs
//	84 umask, files of another user          here, the latter as root
//
//	F, the git directory
//	85 where the state is                    here, with this git and one before 2.5; store
//	87 two linked work trees                 here
//	88 dubious ownership                     here, assumed and (as root) real; store
//	89 started from a git hook               here; store
//	91 gc, clean, prune, moved, cloned again here for refine and references; store for every kind of write
//	92 kinds of repositories                 here; there is no resume of a run yet, a round is resumed instead
//
//	G, plan mode
//	103 a tool that was not allowed          here; lanes/pijson; integration has real pi refuse it
//
//	J, cost, metrics, tracing
//	113 spends without end                   here; lanes/pijson
//	115 spans lost at exit                   here, real pi; supervisor and lanes for what is drawn
//	116 cardinality of metrics               here; lanes (10,000 runs), supervisor
//	117 port of metrics in use               here; supervisor
//	118 alarms that cannot fire              integration/telemetry: a case for each alert
//	119 cancel of a child blocked in a read  here
package faults_test
