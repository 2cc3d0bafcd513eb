package pipeline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// A busy machine must not decide for good what an upstream asks for, or what its status says.
func TestTookTooLong(t *testing.T) {
	failed := func(err error) *pipeline.Desired {
		return &pipeline.Desired{Objects: []pipeline.DesiredObject{{}, {Err: fmt.Errorf("rendering a: %w", err)}}}
	}
	for _, row := range []struct {
		reason  string
		desired *pipeline.Desired
		want    bool
	}{
		{"everything was evaluated", &pipeline.Desired{Objects: make([]pipeline.DesiredObject, 2)}, false},
		{"a template", failed(&render.Error{Limit: render.ErrTime}), true},
		{"a template that is too large, on any machine", failed(&render.Error{Limit: render.ErrLimit}), false},
		{"an expression", failed(&rules.EvalError{Err: rules.ErrTime}), true},
		{"an expression that costs too much, on any machine", failed(&rules.EvalError{Cause: rules.CauseCost}), false},
		{"a rule", &pipeline.Desired{Invalid: []rules.Failure{{}, {Err: &rules.EvalError{Err: rules.ErrTime}}}}, true},
		{"a rule that is violated", &pipeline.Desired{Invalid: []rules.Failure{{}}}, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if got := row.desired.TookTooLong(); got != row.want {
				t.Errorf("took too long: %v", got)
			}
		})
	}
}

// Each of the expressions is evaluated in time for a short list and not for a long one: the time grows with the square of its length.
func TestReportTookTooLong(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, ready, field string
	}{
		{"a field of the status", "true", "self.spec.list.map(x, x).size()"},
		{"a rule of readiness", "self.spec.list.map(x, x).size() > 0", "true"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			p := compileConfig(t, fmt.Sprintf(`
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: x}
watch: {apiVersion: tools.example.com/v1, kind: Thing}
downstreams:
  - name: page
    apiVersion: v1
    kind: ConfigMap
    template: '{metadata: {name: page}, data: {a: b}}'
    ready: {rules: [{rule: %q}]}
conventions: {fieldManager: x, labels: {a.example.com/x: x}, hash: {annotation: a.example.com/hash}, owner: {reference: true}}
status: {conditions: {ready: Ready}, fields: [{path: .status.field, value: %q}]}
`, row.ready, row.field))
			for n, want := range map[int]bool{10: false, 500_000: true} {
				up := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "tools.example.com/v1", "kind": "Thing",
					"metadata": map[string]any{"name": "a", "namespace": "b"}, "spec": map[string]any{"list": make([]any, n)}}}
				w := p.Desired(t.Context(), up, pipeline.Inputs{})
				results := []pipeline.Result{{Outcome: pipeline.Outcome{State: pipeline.StateInSync},
					Live: &drift.Live{UID: "1", Name: "page", Namespace: "b", Status: kstatus.CurrentStatus}}}
				report := p.Report(t.Context(), up, pipeline.Inputs{}, w, results, nil, metav1.Now())
				if report.TookTooLong != want || w.TookTooLong() {
					t.Errorf("%d elements took too long: %v, %v", n, report.TookTooLong, report.Conditions)
				}
			}
		})
	}
}

// compileConfig compiles a config of kinds that every API server has, or of which no schema is known.
func compileConfig(t *testing.T, text string) *pipeline.Pipeline {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := kinds.Offline()
	if err != nil {
		t.Fatal(err)
	}
	files, errs := config.Load(config.Options{Files: []string{path}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	p, errs, err := pipeline.Compile(files[0], pipeline.Options{Kinds: source})
	if err != nil || len(errs) > 0 {
		t.Fatal(err, errs)
	}
	return p
}
