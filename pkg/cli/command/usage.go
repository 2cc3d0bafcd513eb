package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corollary-dev/corollary/pkg/spelling"
)

// UsageError is a command line that cannot be meant. Its text is one line that says what to write instead.
type UsageError struct{ Problem string }

func (e *UsageError) Error() string { return e.Problem }

// Usagef formats a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{Problem: fmt.Sprintf(format, args...)}
}

// FlagError turns what pflag finds wrong into a usageError, with a guess at an unknown flag.
func FlagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return Usagef("%s", wrongValue(invalid))
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return Usagef("%s", err)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if name := spelling.Closest(unknown.GetSpecifiedName(), names); name != "" {
		return Usagef("%s: did you mean --%s?", err, name)
	}
	return Usagef("%s", err)
}

// wrongValue says of a flag's value what it should have been, where that is a matter of its type: pflag names the Go
// function that could not read it.
func wrongValue(e *pflag.InvalidValueError) string {
	wanted := map[string]string{"int": "a whole number", "float32": "a number",
		"bool": "true or false"}[e.GetFlag().Value.Type()]
	if c, ok := e.GetFlag().Value.(*Choice); ok {
		wanted = spelling.Either(c.Words)
	}
	if wanted == "" {
		return e.Error()
	}
	return fmt.Sprintf("--%s is %q: write %s", e.GetFlag().Name, e.GetValue(), wanted)
}

// UnknownCommand is about the first word of args that is not a flag.
func UnknownCommand(root *cobra.Command, args []string) string {
	word := ""
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			word = arg
			break
		}
	}
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if name := spelling.Closest(word, names); name != "" {
		return fmt.Sprintf("unknown command %q: did you mean %s?", word, name)
	}
	return fmt.Sprintf("unknown command %q: valid commands are %s", word, strings.Join(names, ", "))
}

// OneDefinition takes the name of one CustomResourceDefinition.
func OneDefinition(_ *cobra.Command, args []string) error {
	if len(args) != 1 || !strings.Contains(args[0], ".") {
		return Usagef("name one CustomResourceDefinition, such as crontabs.example.com")
	}
	return nil
}

// NoArguments refuses words that are neither a flag nor a flag's value. instead says what they were probably meant for.
func NoArguments(instead string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return Usagef("%q is not understood: %s", args[0], instead)
	}
}
