package release

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// answers is a source that gives the same error for every kind.
type answers struct{ err error }

func (a answers) Kind(schema.GroupVersionKind) (*kinds.Kind, error) { return nil, a.err }

// Before an uninstall, a kind that is gone has no upstreams to release. One that is only not served has: nothing would
// ever take the finalizer off them.
func TestReleaseOfKindsThatAreNotServed(t *testing.T) {
	t.Parallel()
	f := &load.File{}
	f.Metadata.Name, f.Conventions.Finalizer = "widgets", "example.com/cleanup"
	f.Watch.APIVersion, f.Watch.Kind = "test.example.com/v1", "Widget"
	for reason, row := range map[string]struct {
		err  error
		gone bool
	}{
		"it has no definition":                    {&kinds.UnknownError{}, true},
		"another version is served":               {&kinds.UnknownError{Elsewhere: []string{"v2"}}, false},
		"its definition serves no version":        {&kinds.UnknownError{Definition: "widgets.test.example.com"}, false},
		"whether it has a definition is not told": {&kinds.UnknownError{Hidden: true}, false},
		"the API server does not answer":          {errors.New("no answer"), false},
	} {
		var out bytes.Buffer
		r := &Releaser{Kinds: answers{row.err}, Out: &out, Here: true}
		err := r.Operator(t.Context(), f, "")
		if gone := err == nil && strings.Contains(out.String(), "operator widgets: "); gone != row.gone || !gone && !errors.Is(err, row.err) {
			t.Errorf("%s: %v %s", reason, err, out.String())
		}
	}
}
