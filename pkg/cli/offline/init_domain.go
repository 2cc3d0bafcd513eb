package offline

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// chooseDomain settles the domain of the keys: asked for on the command line, or that of the conventions found, or what
// a person answers, or without one the group's.
func (o *initOptions) chooseDomain(group string) error {
	switch c := o.conventions; {
	case o.domain != "":
		return c.UseDomain(o.domain)
	case c.Domain != "":
		return nil
	case !c.Found && !slices.Contains(o.from, "-") && isTerminal(o.streams.In):
		answer, err := ask(o.streams, group)
		if err != nil {
			return err
		}
		return c.UseDomain(answer)
	default:
		o.notes = append(o.notes,
			fmt.Sprintf("keys of labels and annotations are in the domain of the group, %s: choose another with --domain",
				group))
		return c.UseDomain(group)
	}
}

func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ask asks a person for the domain, once.
func ask(streams command.IO, suggestion string) (string, error) {
	fmt.Fprintf(streams.Err, "Labels and annotations will mark objects in the cluster. The domain of their keys [%s]: ",
		suggestion)
	line, err := bufio.NewReader(streams.In).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		return suggestion, nil
	}
	return line, nil
}
