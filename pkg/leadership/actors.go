package leadership

// actors are those that act while a tenure lasts. The mutex of the tenure guards them.
type actors struct {
	n       int           // how many act
	stop    chan struct{} // closed when they are to stop, and replaced when they may begin again
	stopped bool          // whether stop is closed
	idle    chan struct{} // closed, and replaced, when the last one has stopped
}

// end ends the contexts of Act.
func (a *actors) end() {
	if !a.stopped {
		a.stopped = true
		close(a.stop)
	}
}

// resume lets acting begin again.
func (a *actors) resume() {
	if a.stopped {
		a.stopped, a.stop = false, make(chan struct{})
	}
}

// leave notes that one of them has stopped.
func (a *actors) leave() {
	if a.n--; a.n == 0 {
		close(a.idle)
		a.idle = make(chan struct{})
	}
}
