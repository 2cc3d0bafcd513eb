package command

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/config"
)

// Refuse writes every problem, a line each, and returns the error that the command ends with; nil without problems.
// also is what else went wrong; it is written with them, and returned where it is alone.
func Refuse(streams IO, problems config.Errors, also error) error {
	problems = problems.Sort()
	if len(problems) == 0 {
		return also
	}
	for _, e := range problems {
		fmt.Fprintln(streams.Err, e)
	}
	if also != nil {
		fmt.Fprintln(streams.Err, also)
	}
	return fmt.Errorf("%s in the config", Count(len(problems), "error"))
}

// WriteNotes writes to standard error what a person should know of the result.
func WriteNotes(streams IO, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(streams.Err, "note: %s\n", note)
	}
}

// Count is "1 error" or "2 errors".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
