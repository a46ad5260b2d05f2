package lanes

// Places bounds how many children there are at once, those of all runs together. A
// child has a place from before its start until it is gone, and a lane has one place at
// most, so that nobody who has a place waits for another. None of the methods blocks.
type Places interface {
	// Queue asks for a place for a child that has a task.
	Queue() Place
	// Spare takes a place for a child that is started ahead of its task, if one is free
	// that nobody waits for. giveWay is called at most once, from any goroutine, when
	// somebody does: the child has to be ended then, whosever lane it is, unless its
	// task was faster (see [Place.Keep]).
	Spare(giveWay func()) (Place, bool)
}

// Place is where one child may be.
type Place interface {
	// Granted is closed once the place is there. Until then no child may be started.
	Granted() <-chan struct{}
	// Keep makes the place of a spare that gets its task one like others. It is false
	// when the spare has to give way.
	Keep() bool
	// Release gives the place back, or leaves the queue. Only the first call counts.
	Release()
}
