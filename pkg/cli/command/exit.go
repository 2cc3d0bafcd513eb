package command

import "fmt"

// ExitChanges is the exit code of a command that found something that would change.
const ExitChanges = 2

// ExitError ends a command that did what it was for with an exit code that says what it found. Nothing is printed of
// it.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }
