package cli

import "fmt"

// exitChanges is the exit code of a command that found something that would change.
const exitChanges = 2

// exitError ends a command that did what it was for with an exit code that says what it found. Nothing is printed of it.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }
