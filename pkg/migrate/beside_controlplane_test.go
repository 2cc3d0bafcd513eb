//go:build controlplane

package migrate_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/migrate"
)

// What others do in between refuses no object and begins nothing again: an object that is made again under its name is rewritten, and a
// definition of which only a condition has changed is the same one.
func TestMigrateBesideOthers(t *testing.T) {
	t.Parallel()
	k := define(t, "v1beta1!", "v1")
	k.fill(3)
	k.change("v1", "v1beta1", "v1!")
	config := testkit.Config()
	again, touched := false, false
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return before(func(r *http.Request) {
			switch {
			case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/things/t0") && !again:
				again = true
				testkit.Delete(t, k.resource("v1"), k.ns, "t0")
				if err := k.apply("v1beta1", "somebody", "t0", "a", "again"); err != nil {
					t.Error(err)
				}
			case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, k.name()+"/status") && !touched:
				touched = true
				testkit.Patch(t, definitions, "", k.name(), "somebody", `{"metadata": {"annotations": {"example.com/touched": "yes"}}}`)
			}
		}, next)
	})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	m := k.migration(client, "v1beta1")
	p, err := m.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Run(t.Context(), p)
	if err != nil || !r.Trimmed || r.Refused > 0 || r.Fixed != 3 || !again || !touched {
		t.Errorf("the result is %+v: %v", r, err)
	}
}

// before does something before each request.
func before(do func(*http.Request), next http.RoundTripper) http.RoundTripper {
	return tripper(func(r *http.Request) (*http.Response, error) {
		do(r)
		return next.RoundTrip(r)
	})
}

// A definition that was deleted and made again is another one, though its generation is the same.
func TestMigrateMadeAgain(t *testing.T) {
	t.Parallel()
	k := define(t, "v1beta1!")
	k.fill(1)
	m := k.migration(testkit.Dynamic(t))
	p, err := m.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	testkit.Delete(t, definitions, "", k.name())
	testkit.Eventually(t, patience, func() (bool, string) {
		_, err := testkit.Dynamic(t).Resource(definitions).Get(t.Context(), k.name(), metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint("the definition: ", err)
	})
	k.change("v1beta1", "v1beta1!")
	if r, err := m.Run(t.Context(), p); !errors.Is(err, migrate.ErrChanged) {
		t.Errorf("the result is %+v: %v", r, err)
	}
}

// An object that a policy keeps from being written is rewritten by way of its status. But its managedFields stay then, whatever is sent:
// where they have to be changed, the object is reported, and the old version stays named.
func TestMigrateByTheStatus(t *testing.T) {
	t.Parallel()
	withStatus := func(text string) string {
		return strings.ReplaceAll(text, "schema: {", "subresources: {status: {}}, schema: {")
	}
	for _, leaving := range [][]string{nil, {"v1beta1"}} {
		k := define(t, "v1beta1!", "v1")
		testkit.Apply(t, "", withStatus(k.crd("v1beta1!", "v1")))
		k.fill(2)
		testkit.Policy(t, k.ns, "Validating", "UPDATE", k.group, "things", `
  validations: [{expression: "false", message: frozen}]`)
		testkit.Eventually(t, patience, func() (bool, string) {
			return k.apply("v1beta1", "somebody", "t0", "a", "other") != nil, "the policy is not in force yet"
		})
		testkit.Apply(t, "", withStatus(k.crd("v1beta1", "v1!")))
		testkit.Eventually(t, patience, func() (bool, string) { return len(k.stored()) == 2, fmt.Sprint("stored are ", k.stored()) })
		before := testkit.Get(t, k.resource("v1"), k.ns, "t0")
		m := k.migration(testkit.Dynamic(t), leaving...)
		p, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Run(t.Context(), p)
		isRewritten := before.GetResourceVersion() != testkit.Get(t, k.resource("v1"), k.ns, "t0").GetResourceVersion()
		if isWanted := len(leaving) == 0; err != nil || r.Trimmed != isWanted || isRewritten != isWanted || (r.Refused == 0) != isWanted {
			t.Errorf("leaving %v: rewritten is %t, the result %+v: %v", leaving, isRewritten, r, err)
		}
	}
}
