package migrate

// Wait waits until no migration runs.
func (a *Auto) Wait() { a.done.Wait() }
