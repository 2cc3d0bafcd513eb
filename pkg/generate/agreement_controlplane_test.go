//go:build controlplane

package generate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// TestPolicyAgreesWithOperator: the policy in the API server and the rules in the operator accept the same objects, and
// give the same messages.
func TestPolicyAgreesWithOperator(t *testing.T) {
	for set, cases := range doors {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			d := openDoor(t, set)
			policy, err := generate.RulesPolicy(d.offline, "")
			if err != nil || len(policy.Notes) > 0 {
				t.Fatal(err, policy.Notes)
			}
			apply(t, policy.Manifests)
			d.waitInForce(t, cases)
			for i, c := range cases {
				t.Run(c.reason, func(t *testing.T) {
					text := d.object(fmt.Sprintf("thing-%d", i), c.spec)
					// Beside the namespace that the policy is about, so that it is stored whatever the rules say.
					stored := testkit.Apply(t, d.beside, text)
					failures := d.live.Validator.Validate(d.live.VarsOf(stored, desired.Inputs{}), rules.NewBudget(t.Context()))
					said := ""
					if len(failures) > 0 {
						said = shortened(failures[0])
					}
					if c.want != "other words" && said != c.want && !strings.HasPrefix(c.want, "error: ") || !strings.HasPrefix(said, c.want) &&
						c.want != "other words" {
						t.Errorf("the operator says %q, want %q", said, c.want)
					}
					_, err := testkit.TryApply(t, d.namespace, text)
					if got := denial(t, err, d.name+"-rules"); got != said && (c.want != "other words" || got == "" || said == "") {
						t.Errorf("the API server says\n%q, the operator\n%q", got, said)
					}
				})
			}
		})
	}
}

func (d *door) things() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: d.group, Version: "v1", Resource: "things"}
}

// waitInForce waits until what some rule is against is refused: the API server learns of policies by a watch.
func (d *door) waitInForce(t *testing.T, cases []doorCase) {
	t.Helper()
	bad := cases[len(cases)-1]
	for _, c := range cases {
		if strings.HasPrefix(c.want, "spec.replicas: ") {
			bad = c
		}
	}
	testkit.Eventually(t, patience, func() (bool, string) {
		_, err := testkit.TryApply(t, d.namespace, d.object("probe", bad.spec))
		if err == nil {
			testkit.Delete(t, d.things(), d.namespace, "probe")
		}
		return deniedBy(err, d.name+"-rules"), fmt.Sprintf("the policy is not in force: %v", err)
	})
}

// deniedBy reports whether a policy is what refused a request. Other errors may pass by themselves.
func deniedBy(err error, policy string) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'")
}

// apply applies what was generated and takes it away at the end of the test.
func apply(t *testing.T, list []generate.Manifest) {
	t.Helper()
	for _, m := range list {
		text := must.Get(yaml.Marshal(m.Object)).In(t)
		u := testkit.Apply(t, "", string(text))
		resource := "validatingadmissionpolicies"
		if u.GetKind() == "ValidatingAdmissionPolicyBinding" {
			resource = "validatingadmissionpolicybindings"
		}
		t.Cleanup(func() { // the test's own context has ended by then
			gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
			if err := testkit.Dynamic(t).Resource(gvr).Delete(context.Background(), u.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// shortened is what the operator says, of an error "error: " and what the error is.
func shortened(f rules.Failure) string {
	if !f.Errored {
		return f.String()
	}
	var failed *rules.EvalError
	if errors.As(f.Err, &failed) {
		return "error: " + problem(failed.Problem)
	}
	return f.String()
}

// problem is what two evaluators say of one error: of operators that do not take a value the operator says more.
func problem(text string) string {
	if strings.HasPrefix(text, "no such overload") {
		return "no such overload"
	}
	return text
}

// denial is what a policy has against a request, "" where it has nothing.
func denial(t *testing.T, err error, policy string) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Reason != metav1.StatusReasonInvalid || status.Status().Code != 422 ||
		status.Status().Details == nil {
		t.Fatalf("no verdict: %v", err)
	}
	causes := status.Status().Details.Causes
	message := causes[len(causes)-1].Message
	text, ok := strings.CutPrefix(message, fmt.Sprintf("ValidatingAdmissionPolicy '%[1]s' with binding '%[1]s' denied request: ", policy))
	if !ok {
		t.Fatalf("not denied by the policy: %s", message)
	}
	if _, why, failed := strings.Cut(text, "' resulted in error: "); failed {
		return "error: " + problem(why)
	}
	return text
}
