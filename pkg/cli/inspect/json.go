package inspect

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/corollary-dev/corollary/pkg/docdiff"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// jsonItem is an object in a plan or an explanation. docs/cli.md describes it; what it says is not changed, only added
// to.
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

func jsonOf(o findings.Object) jsonObject {
	return jsonObject{APIVersion: o.Kind.GroupVersion().String(), Kind: o.Kind.Kind, Namespace: o.At.Namespace,
		Name: o.At.Name, UID: o.UID}
}

func jsonDiffs(list []docdiff.Field) []jsonDiff {
	out := make([]jsonDiff, len(list))
	for i, d := range list {
		out[i] = jsonDiff{Path: d.Shown(), Op: d.Op(), Before: d.Before, After: d.After, Writer: d.Writer}
	}
	return out
}

// jsonItemOf is an item as it is printed, the values of Secrets masked.
func jsonItemOf(item findings.Item) jsonItem {
	o := jsonOf(item.Object)
	out := jsonItem{Operator: item.Operator, Upstream: jsonOf(item.Upstream), Downstream: item.Downstream,
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID,
		Action: item.Action, State: item.State, Reason: item.Reason, Risk: item.Risk, Note: item.Note,
		Differences: jsonDiffs(item.Diffs),
		Before:      item.Words.Document(item.Before), After: item.Words.Document(item.After)}
	if f := item.Failure; f != nil {
		out.Failure = &jsonFailure{f.Reason, f.Message}
	}
	return out
}

// jsonList writes one JSON object with a list of items as they come, one a line.
type jsonList struct {
	w     io.Writer
	begun bool
}

func (l *jsonList) add(item any) error {
	text, err := json.Marshal(item)
	if err != nil {
		return err
	}
	head := ",\n"
	if !l.begun {
		head, l.begun = `{"items": [`+"\n", true
	}
	_, err = fmt.Fprintf(l.w, "%s%s", head, text)
	return err
}

// finish ends the list, and the object after what else it has.
func (l *jsonList) finish(more string) error {
	head := "\n]"
	if !l.begun {
		head = `{"items": []`
	}
	_, err := fmt.Fprint(l.w, head, more, "}\n")
	return err
}
