package rules

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
)

// monitorSchema returns the schema of the objects of a list.
func monitorSchema() *spec.Schema {
	at := *spec.StringProperty()
	at.Format = "date-time"
	fields := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"team": *spec.StringProperty(), "url": *spec.StringProperty(), "weight": *spec.Int64Property(), "at": at,
	}}}
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"spec": fields}}}
}

func listEnv(t *testing.T) *Env {
	t.Helper()
	env, err := NewEnv(EnvOptions{Self: monitorSchema(), Lists: map[string]*spec.Schema{"monitors": monitorSchema(), "untyped": nil}})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestReadsOfLists: for an input that is a list, the fields of its objects that an expression reads are returned.
func TestReadsOfLists(t *testing.T) {
	golden.Table(t, "testdata/reads_lists.txt", func(t *testing.T, expr string) string {
		p := must.Get(listEnv(t).Any(expr, Upstream, "")).In(t)
		return readsText(p.Reads("inputs"))
	})
}

// TestMatching: an equality of a text of the object and one of the upstream is found among the operands of &&. The
// variables of the scope have types; it has no inputs.
func TestMatching(t *testing.T) {
	golden.Table(t, "testdata/matching.txt", func(t *testing.T, input string) string {
		list, expr, _ := strings.Cut(input, ": ")
		p, err := listEnv(t).Bool(expr, Matching, list)
		if err != nil {
			return "error: " + err.Error()
		}
		if e := p.Equality(); e != nil {
			return fmt.Sprintf("object %s, self %s", strings.Join(e.Object, "."), strings.Join(e.Self, "."))
		}
		return "none"
	})
}
