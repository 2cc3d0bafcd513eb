package inspect

import (
	"encoding/json"
	"fmt"

	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// planJSON prints a plan as one JSON object: its items as they come, one a line, then the counts.
type planJSON struct{ list jsonList }

func (j *planJSON) item(item findings.Item) error {
	if err := j.list.add(jsonItemOf(item)); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

// stop leaves the JSON incomplete, so that nobody takes it for a plan.
func (*planJSON) stop() error { return nil }

func (j *planJSON) end(counts map[string]int) error {
	text, err := json.Marshal(counts)
	if err == nil {
		err = j.list.finish(`, "counts": ` + string(text))
	}
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}
