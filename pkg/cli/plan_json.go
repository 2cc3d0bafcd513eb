package cli

import (
	"encoding/json"
	"fmt"
	"io"
)

// planJSON prints a plan as one JSON object: its items as they come, one a line, then the counts. docs/cli.md describes it;
// what it says is not changed, only added to.
type planJSON struct {
	w     io.Writer
	begun bool
}

type jsonItem struct {
	Operator    string         `json:"operator"`
	Upstream    jsonObject     `json:"upstream"`
	Downstream  string         `json:"downstream,omitempty"`
	APIVersion  string         `json:"apiVersion"`
	Kind        string         `json:"kind"`
	Namespace   string         `json:"namespace,omitempty"`
	Name        string         `json:"name,omitempty"`
	UID         string         `json:"uid,omitempty"`
	Action      string         `json:"action"`
	State       string         `json:"state,omitempty"`
	Reason      string         `json:"reason,omitempty"`
	Risk        string         `json:"risk,omitempty"`
	Note        string         `json:"note,omitempty"`
	Failure     *jsonFailure   `json:"failure,omitempty"`
	Differences []jsonDiff     `json:"differences,omitempty"`
	Before      map[string]any `json:"before,omitempty"`
	After       map[string]any `json:"after,omitempty"`
}

type jsonObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}

type jsonFailure struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type jsonDiff struct {
	Path   string `json:"path"`
	Op     string `json:"op"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
	Writer string `json:"lastWriter,omitempty"`
}

func jsonOf(o objectRef) jsonObject {
	return jsonObject{APIVersion: o.gvk.GroupVersion().String(), Kind: o.gvk.Kind, Namespace: o.at.Namespace, Name: o.at.Name, UID: o.uid}
}

func jsonDiffs(list []fieldDiff) []jsonDiff {
	out := make([]jsonDiff, len(list))
	for i, d := range list {
		out[i] = jsonDiff{Path: d.shown(), Op: d.op(), Before: d.before, After: d.after, Writer: d.writer}
	}
	return out
}

// jsonItemOf is an item as it is printed, the values of Secrets masked.
func jsonItemOf(item planItem) jsonItem {
	o := jsonOf(item.object)
	out := jsonItem{Operator: item.operator, Upstream: jsonOf(item.upstream), Downstream: item.downstream,
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID,
		Action: item.action, State: item.state, Reason: item.reason, Risk: item.risk, Note: item.note, Differences: jsonDiffs(item.diffs),
		Before: item.words.Document(item.before), After: item.words.Document(item.after)}
	if f := item.failure; f != nil {
		out.Failure = &jsonFailure{f.Reason, f.Message}
	}
	return out
}

func (j *planJSON) item(item planItem) error {
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

func compactJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}
