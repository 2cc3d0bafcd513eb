//go:build controlplane

package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
)

// definition returns the CRD with the schema in testdata and the validations at its root.
func definition(t *testing.T, group string, given []Validation) string {
	t.Helper()
	root := map[string]any{}
	text := must.Get(json.Marshal(testSchema(t))).In(t)
	must.Do(t, json.Unmarshal(text, &root))
	var rules []any
	for _, v := range given {
		rule := map[string]any{"rule": v.Rule}
		for name, value := range map[string]string{"message": v.Message, "messageExpression": v.MessageExpression,
			"fieldPath": v.FieldPath, "reason": string(v.Reason)} {
			if value != "" {
				rule[name] = value
			}
		}
		rules = append(rules, rule)
	}
	root["x-kubernetes-validations"] = rules
	bound(root)
	crd := must.Get(yaml.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": "Thing", "plural": "things"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": root}}},
		},
	})).In(t)
	return string(crd)
}

// bound limits lists, maps and strings: the API server estimates the worst-case cost of rules, and refuses expensive
// ones.
func bound(s map[string]any) {
	switch s["type"] {
	case "array":
		s["maxItems"] = 10
		bound(s["items"].(map[string]any))
	case "string":
		s["maxLength"] = 100
	}
	if values, ok := s["additionalProperties"].(map[string]any); ok {
		s["maxProperties"] = 10
		bound(values)
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		for _, property := range properties {
			bound(property.(map[string]any))
		}
	}
}

// TestAgainstCRD: valid rules of a CRD have the same result and message here.
func TestAgainstCRD(t *testing.T) {
	given := []Validation{
		{Rule: "!has(self.spec.replicas) || self.spec.replicas <= 20", Message: "at most 20 replicas", FieldPath: ".spec.replicas"},
		{Rule: "self.spec.?replicas.orValue(1) != 13", MessageExpression: "'not 13 replicas of ' + self.spec.image", Reason: FieldValueForbidden},
		{Rule: "self.spec.image.startsWith('registry.example.com/')", Message: "wrong registry", Reason: FieldValueRequired,
			FieldPath: ".spec.image"},
		{Rule: "!has(self.spec.tag) || self.spec.tag != 'latest'"},
		{Rule: "!has(self.spec.node__dash__pool) || self.spec.node__dash__pool == self.spec.__namespace__", Message: "pool",
			FieldPath: ".spec['node-pool']"},
		{Rule: "!has(self.spec.zones) || !has(self.spec.oldZones) || self.spec.zones == self.spec.oldZones", Message: "zones changed"},
		{Rule: "!has(self.spec.env) || self.spec.env.all(e, has(e.value) && e.value != '')", Message: "empty value",
			MessageExpression: "'bad: ' + self.spec.env[1].name", FieldPath: ".spec.env"},
		{Rule: "!has(self.spec.port) || type(self.spec.port) == int || self.spec.port != 'ssh'", Message: "port", FieldPath: ".spec.port"},
		{Rule: "!has(self.spec.timeout) || self.spec.timeout >= duration('1m')", Message: "too short", FieldPath: ".spec.timeout"},
		{Rule: "!has(self.spec.since) || self.spec.since < timestamp('2030-01-01T00:00:00Z')", Message: "too late"},
		{Rule: "!has(self.spec.labels) || !('app' in self.spec.labels) || self.spec.labels['app'] == self.metadata.name",
			FieldPath: ".spec.labels['app']", Message: "app"},
		{Rule: "!has(self.spec.ratio) || 1.0 / self.spec.ratio < 2.0", Message: "ratio"},
		{Rule: "!has(self.spec.replicas) || 10 / self.spec.replicas >= 0", Message: "cannot divide"},
		{Rule: "!has(self.spec.labels) || self.spec.labels['zone'] != ''"},
		{Rule: "!has(self.spec.data) || size(self.spec.data) < 4", MessageExpression: "'\\n'", Message: "data"},
	}
	const group = "compared.example.com"
	testkit.InstallCRDs(t, definition(t, group, given))
	cluster := must.Get(discovered.New(testkit.Config(t))).In(t)
	kind, err := cluster.Kind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Thing"})
	if err != nil || kind.Schema == nil {
		t.Fatalf("no schema: %v", err)
	}
	validators := map[string]*Validator{}
	for name, o := range map[string]EnvOptions{"live": {Self: kind.Schema}, "offline": {Self: testSchema(t)}} {
		env := must.Get(NewEnv(o)).In(t)
		v, errs := CompileValidation(env, given)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		validators[name] = v
	}
	namespace := testkit.Namespace(t)
	for i, given := range []string{
		`{image: registry.example.com/web}`,
		`{image: registry.example.com/web, replicas: 21}`,
		`{image: web, replicas: 13, tag: latest}`,
		`{image: registry.example.com/web, replicas: 0}`,
		`{image: registry.example.com/web, tag: null}`,
		`{image: registry.example.com/web, node-pool: a, namespace: a}`,
		`{image: registry.example.com/web, node-pool: a, namespace: b}`,
		`{image: registry.example.com/web, node-pool: a}`,
		`{image: registry.example.com/web, zones: [a, b], oldZones: [b, a]}`,
		`{image: registry.example.com/web, zones: [a, b], oldZones: [b, c]}`,
		`{image: registry.example.com/web, env: [{name: A, value: x}, {name: B}, {name: C}]}`,
		`{image: registry.example.com/web, env: [{name: A, value: ""}]}`,
		`{image: registry.example.com/web, port: 22}`,
		`{image: registry.example.com/web, port: ssh, timeout: 30s}`,
		`{image: registry.example.com/web, timeout: 90s, since: "2040-01-01T00:00:00Z"}`,
		`{image: registry.example.com/web, labels: {app: other, zone: a}}`,
		`{image: registry.example.com/web, labels: {app: thing-16}}`,
		`{image: registry.example.com/web, ratio: 0.25}`,
		`{image: registry.example.com/web, ratio: 1}`,
		`{image: registry.example.com/web, ratio: 0}`,
		`{image: registry.example.com/web, data: aGVsbG8=}`,
	} {
		text := fmt.Sprintf("apiVersion: %s/v1\nkind: Thing\nmetadata: {name: thing-%d}\nspec: %s", group, i, given)
		t.Run(given, func(t *testing.T) {
			want := serverVerdict(t, namespace, text)
			object := testkit.Parse(t, text).Object
			for name, v := range validators {
				var got []string
				for _, f := range v.Validate(Vars{Self: object}, nil) {
					got = append(got, verdictText(f))
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("%s schema:\ngot  %q\nwant %q", name, got, want)
				}
			}
		})
	}
}

// verdictText formats a Failure like the causes of the API server.
func verdictText(f Failure) string {
	at := f.FieldPath
	if at == "" || f.Errored { // the server reports no field for a rule with an evaluation error
		at = "<nil>"
	}
	return at + ": " + string(f.Reason) + ": " + f.Message
}

// serverVerdict creates the object and returns the errors of the API server.
func serverVerdict(t *testing.T, namespace, text string) []string {
	t.Helper()
	_, err := testkit.TryApply(t, namespace, text)
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		t.Fatalf("no verdict: %v", err)
	}
	var verdicts []string
	for _, cause := range status.Status().Details.Causes {
		reason := string(cause.Type)
		message := cause.Message
		if strings.Contains(message, "evaluating rule") { // an evaluation error does not have the reason of the rule
			reason = string(FieldValueInvalid)
		}
		for _, prefix := range []string{"Invalid value: ", "Required value: ", "Forbidden: "} {
			message = strings.TrimPrefix(message, prefix)
		}
		message = strings.TrimPrefix(message, `"object": `)
		verdicts = append(verdicts, cause.Field+": "+reason+": "+message)
	}
	slices.Sort(verdicts)
	return verdicts
}

// TestAgainstDeployment: the API server's schema of a built-in kind works like the one of a CRD.
func TestAgainstDeployment(t *testing.T) {
	cluster := must.Get(discovered.New(testkit.Config(t))).In(t)
	kind, err := cluster.Kind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil || kind.Schema == nil {
		t.Fatalf("no schema: %v", err)
	}
	env := must.Get(NewEnv(EnvOptions{Downstreams: map[string]*spec.Schema{"web": kind.Schema}})).In(t)
	object := testkit.Apply(t, testkit.Namespace(t), `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: web, resources: {limits: {cpu: 1500m}}}]}`).Object
	for expr, want := range map[string]bool{
		"downstream.?status.?availableReplicas.orValue(0) == 0":                                                   true,
		"downstream.spec.template.spec.containers.exists(c, c.name == 'app')":                                     true,
		"quantity(downstream.spec.template.spec.containers[0].resources.limits.cpu).isGreaterThan(quantity('1'))": true,
		"downstream.spec.template.spec.containers[0].resources.limits.cpu == '1500m'":                             true,
		"downstream.spec.strategy.rollingUpdate.maxSurge == '25%'":                                                true,
		"downstream.spec.strategy.rollingUpdate.maxUnavailable == 1":                                              true,
		"downstream.metadata.creationTimestamp < timestamp('2000-01-01T00:00:00Z')":                               false,
		"downstream.metadata.generation >= downstream.?status.?observedGeneration.orValue(0)":                     true,
	} {
		p, err := env.Bool(expr, Downstream, "web")
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got, err := p.Eval(Vars{Downstream: object}, nil); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", expr, got, err, want)
		}
	}
	_, err = env.Bool("downstream.status.availableReplica > 0", Downstream, "web")
	if err == nil || !strings.Contains(err.Error(), "did you mean availableReplicas?") {
		t.Errorf("a misspelt field: %v", err)
	}
}
