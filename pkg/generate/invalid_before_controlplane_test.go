//go:build controlplane

package generate_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/generate"
)

// TestInvalidBeforeThePolicy: an object that was invalid before the policy existed can be fixed, get conditions, lose
// finalizers and be deleted, but not be changed into another invalid one.
func TestInvalidBeforeThePolicy(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "untyped")
	testkit.Apply(t, d.namespace, strings.Replace(d.object("old", `{replicas: 21}`), "{name: old}",
		"{name: old, finalizers: [example.com/hold]}", 1))
	policy := must.Get(generate.RulesPolicy(d.offline, "")).In(t)
	apply(t, policy.Manifests)
	d.waitInForce(t, doors["untyped"])
	for _, c := range []struct {
		reason, patch, subresource string
		want                       string
	}{
		{"a label and an annotation", `{"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}`, "", ""},
		{"another finalizer", `{"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}`, "", ""},
		{"without it", `{"metadata": {"finalizers": ["example.com/hold"]}}`, "", ""},
		{"the status", `{"status": {"conditions": []}}`, "status", ""},
		{"still invalid", `{"spec": {"replicas": 22}}`, "", "spec.replicas: Invalid value: at most 20 replicas"},
		{"invalid in another way", `{"spec": {"replicas": 20, "enabled": false}}`, "", "Invalid value: switch it on"},
		{"fixed", `{"spec": {"replicas": 20}}`, "", ""},
		{"and broken again", `{"spec": {"replicas": 21}}`, "", "spec.replicas: Invalid value: at most 20 replicas"},
	} {
		must.Same(t, c.want, denial(t, d.patch(t, c.patch, strings.Fields(c.subresource)...), d.name+"-rules"), c.reason)
	}
	testkit.Delete(t, d.things(), d.namespace, "old")
	for _, patch := range []string{`{"spec": {"replicas": 30}}`, `{"metadata": {"finalizers": null}}`} {
		if err := d.patch(t, patch); err != nil {
			t.Errorf("while it is being deleted, %s: %v", patch, err)
		}
	}
	if testkit.Find(t, d.things(), d.namespace, "old") != nil {
		t.Error("it is not gone")
	}
	if _, err := testkit.TryApply(t, d.beside, d.object("new", `{replicas: 21}`)); err != nil {
		t.Errorf("in a namespace that the config does not watch: %v", err)
	}
}

// patch patches the object old.
func (d *door) patch(t *testing.T, text string, subresources ...string) error {
	t.Helper()
	_, err := testkit.Dynamic(t).Resource(d.things()).Namespace(d.namespace).Patch(t.Context(), "old", types.MergePatchType, []byte(text),
		metav1.PatchOptions{}, subresources...)
	return err
}

// TestSelected: what the config's label selector does not match is none of its business, until it does.
func TestSelected(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "untyped")
	d.offline.Config.Watch.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"test", "trial"}},
		{Key: "tier", Operator: metav1.LabelSelectorOpExists}}}
	labeled := func(name, tier string) error {
		_, err := testkit.TryApply(t, d.namespace, strings.Replace(d.object(name, `{replicas: 21}`), "{name: "+name+"}",
			"{name: "+name+", labels: {tier: "+tier+"}}", 1))
		return err
	}
	must.Do(t, labeled("old", "live"))
	policy := must.Get(generate.RulesPolicy(d.offline, "")).In(t)
	apply(t, policy.Manifests)
	testkit.Eventually(t, patience, func() (bool, string) {
		err := labeled(strings.ToLower(rand.Text()), "live")
		return deniedBy(err, d.name+"-rules"), fmt.Sprintf("the policy is not in force: %v", err)
	})
	if err := labeled("free", "test"); err != nil {
		t.Errorf("not selected, yet refused: %v", err)
	}
	if got := denial(t, labeled("bound", "live"), d.name+"-rules"); got == "" {
		t.Error("selected, yet let through")
	}
	if got := denial(t, labeled("free", "live"), d.name+"-rules"); got == "" {
		t.Error("selected by a change of its label, yet let through")
	}
	if err := errors.Join(labeled("free", "trial"), labeled("old", "dead")); err != nil {
		t.Errorf("what stood before, or is not selected, cannot be labeled: %v", err)
	}
	leaving := strings.Replace(d.object("old", `{replicas: 22}`), "{name: old}", "{name: old, labels: {tier: test}}", 1)
	if _, err := testkit.TryApply(t, d.namespace, leaving); err != nil {
		t.Errorf("not selected any more, yet refused: %v", err)
	}
}

// TestInvalidBeforeTheRulesOfTheDefinition: with rules in the definition, an object that was invalid before cannot be
// written at all until it is fixed. That is how the API server works; the documents say so.
func TestInvalidBeforeTheRulesOfTheDefinition(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "typed")
	old := d.object("old", `{image: registry.example.com/web, replicas: 21}`)
	testkit.Apply(t, d.namespace, old)
	pasted := d.definition(t, "typed", "")
	v := d.validations(t)
	must.Get(v.Fit(pasted)).In(t)
	pasted.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = v.Rules
	testkit.InstallCRDs(t, text(t, pasted))
	testkit.Eventually(t, patience, func() (bool, string) {
		// another one each time: what was let through once is not looked at again, as long as it is not changed
		_, err := testkit.TryApply(t, d.beside, d.object(strings.ToLower(rand.Text()), `{image: registry.example.com/web, replicas: 22}`))
		return apierrors.IsInvalid(err), fmt.Sprintf("the rules are not in force: %v", err)
	})
	for _, err := range []error{d.patch(t, `{"metadata": {"labels": {"a": "b"}}}`), d.patch(t, `{"status": {"a": "b"}}`, "status")} {
		if causes(t, err) == nil {
			t.Error("an invalid object can be written")
		}
	}
	if err := d.patch(t, `{"spec": {"replicas": 20}}`); err != nil {
		t.Errorf("it cannot be fixed: %v", err)
	}
	if err := d.patch(t, `{"status": {"a": "b"}}`, "status"); err != nil {
		t.Errorf("fixed, it cannot be written: %v", err)
	}
}
