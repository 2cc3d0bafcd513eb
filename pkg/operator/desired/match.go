package desired

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// MatchResult is what watch.matchConditions say of an object.
type MatchResult struct {
	// Unmet is the name of a condition that is false; empty for none.
	Unmet string
	// Err says that a condition could not be evaluated, and that none is false: whether the object is an upstream is not
	// known.
	Err error
}

// IsMet reports whether the object is an upstream.
func (m MatchResult) IsMet() bool { return m.Unmet == "" && m.Err == nil }

// Match evaluates watch.matchConditions for an object. As in an admission policy, one that is false decides, whether
// others can be evaluated or not.
func (r *Renderer) Match(obj *unstructured.Unstructured) MatchResult {
	var m MatchResult
	vars, budget := r.VarsOf(obj, Inputs{}), rules.NewBudget(context.Background())
	for _, c := range r.MatchConditions {
		switch met, err := c.Program.Eval(vars, budget); {
		case err != nil && m.Err == nil:
			m.Err = redact.Hide(c.HidesValues, redact.Errorf("evaluating the match condition %s: %w", c.Name, err))
		case err == nil && met != true:
			return MatchResult{Unmet: c.Name}
		}
	}
	return m
}

// SelectsLike reports whether the watches of two pipelines show the same upstreams: with errors in the config some
// conditions may be left out.
func (r *Renderer) SelectsLike(other *Renderer) bool {
	a, b := r.Config.Watch, other.Config.Watch
	a.Schema, a.Acknowledged, b.Schema, b.Acknowledged = nil, nil, nil, nil // they select nothing
	return reflect.DeepEqual(a, b) && len(r.MatchConditions) == len(other.MatchConditions)
}

// SelectsLabels reports whether the config selects upstreams by their labels or their namespace's.
func (r *Renderer) SelectsLabels() bool {
	return r.Config.Watch.LabelSelector != nil || r.Config.Watch.NamespaceSelector != nil
}

// HasMatchConditions reports whether Match can exclude an object.
func (r *Renderer) HasMatchConditions() bool { return len(r.MatchConditions) > 0 }

// SelectsSome reports whether the config watches some objects of the kind only.
func (r *Renderer) SelectsSome() bool {
	return r.SelectsLabels() || r.HasMatchConditions() || len(r.Config.Watch.Namespaces) > 0
}

// HidesUpstreams reports whether an object may exist that the watch of the upstreams does not show: one without the
// labels, or one that does not meet the conditions.
func (r *Renderer) HidesUpstreams() bool {
	return r.Config.Watch.LabelSelector != nil || r.HasMatchConditions()
}

// Row is a row as an upstream. Its uid is the name of the operator and that of the row, so that it is the same after a
// restart, its resourceVersion a digest of the columns. Columns without a value are absent; nil columns: the query does
// not return the row.
func (r *Renderer) Row(name string, columns map[string]any) *unstructured.Unstructured {
	return newRow(r.Upstream.GVK, name, r.Name+":"+name, columns)
}

// RowOf is a row given as an object, as in a case file, with the name and uid that follow from its key.
func (r *Renderer) RowOf(given *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	columns, ok := given.Object["row"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("row is missing: write the columns below it")
	}
	key, ok := columns[r.Config.Source.Key]
	if !ok || key == nil {
		return nil, fmt.Errorf("row.%s is missing: source.key says that it identifies the row", r.Config.Source.Key)
	}
	return r.Row(RowName(fmt.Sprint(key)), columns), nil
}
