package reconcile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
)

// listing compiles a config whose input is a list of ConfigMaps that match.
func listing(t *testing.T, matching string) *compile.Pipeline {
	t.Helper()
	file := filepath.Join(t.TempDir(), "operator.yaml")
	text := fmt.Sprintf(`
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: things}
watch: {apiVersion: example.com/v1, kind: Thing}
inputs:
  - {name: monitors, apiVersion: v1, kind: ConfigMap, list: {matching: %q}}
downstreams:
  - name: config
    apiVersion: v1
    kind: Secret
    template: |
      metadata: {name: "{{ .metadata.name }}"}
      stringData: {total: "{{ len (input "monitors") }}"}
conventions:
  fieldManager: things
  labels: {example.com/managed-by: things}
  hash: {annotation: example.com/hash}
status: {conditions: {ready: Ready}}
`, matching)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, errs := load.Operators(load.Options{Files: []string{file}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	source, err := kinds.Offline()
	if err != nil {
		t.Fatal(err)
	}
	p, problems, err := compile.One(loaded[0], compile.Options{Kinds: source})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return p
}

// listed is an object of a list.
type listed struct {
	*unstructured.Unstructured
	match desired.Match
}

func (l listed) Match() desired.Match            { return l.match }
func (l listed) Digest() canonical.Sum           { return canonical.Digest(l.Object) }
func (l listed) Unpack() (map[string]any, error) { return l.Object, nil }

func listedObject(p *compile.Pipeline, namespace, name string, data map[string]any) observe.Input {
	u := &unstructured.Unstructured{Object: map[string]any{"data": data}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return listed{u, p.Inputs[0].View.Match(u.Object)}
}

// reading registers an upstream as a reader, until stop is called.
func reading(r *Reconciler, namespace, name string, spec map[string]any) (list *desired.Listing, stop func()) {
	up := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	up.SetNamespace(namespace)
	up.SetName(name)
	ref := operator.Ref{Namespace: namespace, Name: name}
	refs := r.Pipeline.InputRefs(context.Background(), up)
	r.readers.Move(ref, nil, refs)
	return refs[0].List, func() { r.readers.Move(ref, refs, nil) }
}

// A change of an object wakes those whose list it was in or is in, indexed or not; one for which the expression fails
// wakes all.
func TestReadersOfLists(t *testing.T) {
	for _, matching := range []string{"object.data.team == self.spec.team", "object.data.team + '' == self.spec.team"} {
		r := &Reconciler{Pipeline: listing(t, matching)}
		var ends []func()
		read := func(namespace, name string, spec map[string]any) {
			_, stop := reading(r, namespace, name, spec)
			ends = append(ends, stop)
		}
		for _, name := range []string{"red", "blue", "green"} {
			read("a", name, map[string]any{"team": name})
			read("b", name, map[string]any{"team": name})
		}
		read("a", "none", map[string]any{})
		object := func(namespace string, data map[string]any) observe.Input {
			return listedObject(r.Pipeline, namespace, "x", data)
		}
		red, blue, bare := map[string]any{"team": "red"}, map[string]any{"team": "blue"}, map[string]any{}
		for reason, c := range map[string]struct {
			states []observe.Input
			want   string
		}{
			"created":             {[]observe.Input{object("a", red)}, "a/none a/red"},
			"in another list now": {[]observe.Input{object("a", red), object("a", blue)}, "a/blue a/none a/red"},
			"another namespace":   {[]observe.Input{object("b", blue)}, "b/blue"},
			"no team":             {[]observe.Input{object("b", bare)}, "b/blue b/green b/red"},
			"nobody's namespace":  {[]observe.Input{object("c", red)}, ""},
			"nothing":             {nil, ""},
		} {
			var have []string
			for _, ref := range r.ReadersOf(0, c.states) {
				have = append(have, ref.String())
			}
			slices.Sort(have)
			if got := strings.Join(have, " "); got != c.want {
				t.Errorf("%s: %s: %q are woken, not %q", matching, reason, got, c.want)
			}
		}
		for _, stop := range ends {
			stop()
		}
		if left := slices.Concat(r.ReadersOf(0, []observe.Input{object("a", bare)}), r.ReadersOf(0, []observe.Input{object("b", bare)})); len(left) > 0 {
			t.Errorf("%s: readers that are gone are still known: %v", matching, left)
		}
	}
}

// An expression that costs much costs no more for a thousand readers than for a few: the others are woken without it,
// and each of them finds within a budget of its own that the list is unknown.
func TestListCostIsBounded(t *testing.T) {
	const many = 1000
	r := &Reconciler{Pipeline: listing(t, "object.data.text.contains(self.spec.text)")} // costs much and takes no time
	data := map[string]any{"text": strings.Repeat("x", 100_000)}
	var l *desired.Listing
	for i := range many {
		l, _ = reading(r, "a", fmt.Sprint(i), map[string]any{"text": strings.Repeat("y", 1001)})
	}
	object := listedObject(r.Pipeline, "a", strings.Repeat("x", 253), data)
	if n := len(r.ReadersOf(0, []observe.Input{object})); n != many {
		t.Errorf("%d of %d readers are woken", n, many)
	}
	objects := make([]observe.Input, 100_000)
	for i := range objects {
		objects[i] = object
	}
	list, err := desired.Members(context.Background(), r.Pipeline.Inputs[0], l, objects)
	if err == nil || !strings.Contains(err.Error(), "costs more than the limit") || len(err.Error()) > 1000 || list != nil {
		t.Errorf("%d objects: %v", len(list), err)
	}
}
