package inspect

import (
	"fmt"
	"io"

	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// planJSON prints a plan as one JSON object: its items as they come, one a line, then the counts.
type planJSON struct {
	w     io.Writer
	begun bool
}

func (j *planJSON) item(item findings.Item) error {
	head := ",\n"
	if !j.begun {
		head, j.begun = `{"items": [`+"\n", true
	}
	text, err := compactJSON(jsonItemOf(item))
	if err == nil {
		_, err = fmt.Fprint(j.w, head, text)
	}
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

// stop leaves the JSON incomplete, so that nobody takes it for a plan.
func (*planJSON) stop() error { return nil }

func (j *planJSON) end(counts map[string]int) error {
	head := "\n], "
	if !j.begun {
		head = `{"items": [], `
	}
	text, err := compactJSON(counts)
	if err == nil {
		_, err = fmt.Fprintf(j.w, "%s\"counts\": %s}\n", head, text)
	}
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}
