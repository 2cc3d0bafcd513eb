package apply

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// TestDryRunUnsupported distinguishes a refusal because of a webhook with side effects from other refusals.
func TestDryRunUnsupported(t *testing.T) {
	for _, c := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"as the API server words it", apierrors.NewBadRequest("admission webhook \"x.example.com\" does not support dry run"), true},
		{"wrapped", &Error{Err: apierrors.NewBadRequest("admission webhook \"x.example.com\" does not support dry run")}, true},
		{"another bad request", apierrors.NewBadRequest("name is required"), false},
		{"no answer at all", errors.New("admission webhook does not support dry run"), false},
	} {
		if got := DryRunUnsupported(c.err); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
	}
}

// TestDryRunWritesNothing sends every kind of write as a dry run, and checks the object and the responses.
func TestDryRunWritesNothing(t *testing.T) {
	f := setup(t)
	counter := testkit.NewCounter()
	dry := setupFor(t, counter.Wrap(testkit.Config(t)))
	dry.c = New(dry.c.dynamic, ours, WithDryRun())
	standing, absent := f.target(configMaps, "a"), f.target(configMaps, "b")
	before := f.create(standing, configMap)
	uid := before.GetUID()

	made, err := dry.c.Create(t.Context(), absent, doc(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {mine: "1"}}`))
	if err != nil || field(t, made, "data", "mine") != "1" {
		t.Errorf("create: %v, %v", made, err)
	}
	_, err = dry.c.Create(t.Context(), standing, doc(t, configMap))
	expectError(t, err, ErrExists, ReasonAlreadyExists)
	applied, err := dry.c.Apply(t.Context(), standing, uid,
		doc(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mine: "2", more: "x"}}`))
	if err != nil || field(t, applied, "data", "mine") != "2" {
		t.Errorf("apply: %v, %v", applied, err)
	}
	kept, err := dry.c.DryRunNull(t.Context(), standing, uid, before.GetResourceVersion(), []fieldpath.Path{fieldpath.New("data", "mine")})
	if err != nil || field(t, kept, "data", "mine") != nil {
		t.Errorf("a removal that is asked for gave %v, %v", kept, err)
	}
	if _, err := dry.c.AddFinalizer(t.Context(), standing, before, "tools.example.com/x"); err != nil {
		t.Error(err)
	}
	if _, err := dry.c.Release(t.Context(), standing, before, Marks{OwnerUID: uid, Labels: []string{"x"}}); err != nil {
		t.Error(err)
	}
	if _, err := dry.c.Delete(t.Context(), standing, uid, metav1.DeletePropagationBackground); err != nil {
		t.Error(err)
	}
	_, err = dry.c.Delete(t.Context(), standing, nobody, metav1.DeletePropagationBackground)
	expectError(t, err, ErrReplaced, ReasonReplaced)

	if n := counter.Mutating(); n != 0 {
		t.Errorf("%d requests were no dry runs: %v", n, counter.Requests())
	}
	if after := f.get(standing); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the object was written: %v", after)
	}
	if testkit.Find(t, configMaps, f.ns, "b") != nil {
		t.Error("an object was made")
	}
}
