//go:build controlplane

package compile_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// installed is the API server that serves the definitions of a file, schemas included.
func installed(t *testing.T, file string) (live *discovered.Cluster) {
	t.Helper()
	crds, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	testkit.InstallCRDs(t, strings.Split(string(crds), "\n---\n")...)
	if live, err = discovered.New(testkit.Config(t)); err != nil {
		t.Fatal(err)
	}
	source := must.Get(kinds.Definitions(file)).In(t)
	for _, crd := range source {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		testkit.Eventually(t, testkit.Patience, func() (bool, string) {
			live.Invalidate()
			k, err := live.Kind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
			return err == nil && k.Schema != nil, "no schema of " + kind
		})
	}
	return live
}

// TestServerRefusesWhatCheckRefuses: the API server refuses each document with a refusal, and takes those of which
// nothing is said.
func TestServerRefusesWhatCheckRefuses(t *testing.T) {
	installed(t, typedCRDs)
	things, deployments := golden.Entries(t, "testdata/typed/things.txt"), golden.Entries(t, "testdata/typed/deployments.txt")
	namespace := testkit.Namespace(t)
	source := must.Get(kinds.Offline(typedCRDs)).In(t)
	up := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "App",
		"metadata": map[string]any{"name": "app", "namespace": namespace, "uid": "00000000-0000-0000-0000-000000000001"},
		"spec": map[string]any{
			"text": "abc", "whole": int64(1), "flag": true, "either": int64(1), "any": int64(1),
			"texts": map[string]any{"a": "b"}, "numbers": map[string]any{"a": int64(1)},
			"more": []any{map[string]any{"operator": "Exists", "effect": "NoExecute"}},
			"list": []any{map[string]any{"a": "x", "b": int64(1)}},
		},
	}}
	refused, taken := 0, 0
	try := func(reason, apiVersion, kind, template string) {
		p := compileTyped(t, source, apiVersion, kind, template, "")
		if len(p.Warnings) > 0 || strings.Contains(template, "if .spec.flag") {
			return // what another upstream would be refused
		}
		w := p.Render(context.Background(), up, desired.Inputs{})
		if err := w.Objects[0].Err; err != nil {
			if len(p.Refusals) == 0 {
				t.Errorf("%s: %v", reason, err)
			}
			return
		}
		document, err := p.Document(w, 0, up, desired.Inputs{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := must.Get(json.Marshal(document)).In(t)
		gvr, yes := p.Downstreams[0].Kind.GVR, true
		_, err = testkit.Dynamic(t).Resource(gvr).Namespace(namespace).Patch(context.Background(), "web", types.ApplyPatchType, text,
			metav1.PatchOptions{FieldManager: "types", DryRun: []string{metav1.DryRunAll}, Force: &yes})
		switch {
		case err == nil && len(p.Refusals) > 0:
			t.Errorf("%s: the API server takes what is said to be refused: %s", reason, p.Refusals[0].Error())
		case err != nil && len(p.Refusals) == 0:
			t.Errorf("%s: nothing is said, and the API server refuses: %v", reason, err)
		case err != nil:
			refused++
		default:
			taken++
		}
	}
	for _, e := range things {
		try(e.Reason, "example.com/v1", "Thing", thing(e.Input))
	}
	for _, e := range deployments {
		try(e.Reason, "apps/v1", "Deployment", deployment(e.Input))
	}
	if refused < 30 || taken < 20 {
		t.Errorf("only %d documents were refused and %d taken", refused, taken)
	}
	// Why a number that its field cannot hold is refused before: once the API server refuses it itself, checkNumbers can
	// go.
	for given, kept := range map[string]int64{"4294967297": 1, "-2147483649": 2147483647} {
		got := testkit.Apply(t, namespace, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: cut}, spec: {replicas: `+given+`,
  selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}}`)
		if have, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); have != kept {
			t.Errorf("%s replicas became %d, not %d", given, have, kept)
		}
	}
}

// nestedCRDs have fields of every form that a schema can give a value.
const nestedCRDs = "testdata/typed/nested.yaml"

// nestedConfig has two downstreams of one kind, and one of another.
const nestedConfig = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: nest}
watch: {apiVersion: types.example.com/v1, kind: Nest}
downstreams:
- {name: blue, apiVersion: apps/v1, kind: Deployment, template: 'metadata: {name: blue}', ready: {rules: [{rule: "READY"}]}}
- {name: green, apiVersion: apps/v1, kind: Deployment, template: 'metadata: {name: green}'}
- {name: other, apiVersion: types.example.com/v1, kind: Nest, template: 'metadata: {name: other}'}
conventions:
  fieldManager: nest
  labels: {tools.example.com/managed-by: nest}
  hash: {annotation: tools.example.com/hash}
  owner: {reference: true}
status:
  conditions: {ready: Ready}
  fields: [{path: .status.out, value: "VALUE"}]
`

// TestTypesAgree: expressions have the same types whether schemas come from files or from the API server, and where
// less is known more is allowed.
func TestTypesAgree(t *testing.T) {
	live := installed(t, nestedCRDs)
	version := must.Get(live.Version()).In(t)
	files := must.Get(kinds.Offline(nestedCRDs)).In(t)
	nothing := must.Get(kinds.Offline()).In(t)
	for _, expr := range agreeing {
		for _, text := range []string{strings.Replace(nestedConfig, "VALUE", expr, 1), strings.NewReplacer("VALUE", "1", "READY", "dyn("+strings.ReplaceAll(expr, "downstreams.blue", "downstream")+") == 1").Replace(nestedConfig)} {
			text = strings.Replace(text, "READY", "true", 1)
			offline := problemsOf(t, text, compile.Options{Kinds: files, Version: version})
			if online := problemsOf(t, text, compile.Options{Kinds: live, Version: version}); online != offline {
				t.Errorf("%s: live\n%s\nwith files\n%s", expr, online, offline)
			}
			if newest := problemsOf(t, text, compile.Options{Kinds: files}); newest != offline {
				t.Errorf("%s: for the newest version\n%s\nfor that of the API server\n%s", expr, newest, offline)
			}
			if untyped := problemsOf(t, text, compile.Options{Kinds: nothing, Version: version}); untyped != "" && offline == "" {
				t.Errorf("%s: less is known, and this is wrong: %s", expr, untyped)
			}
		}
	}
}

// agreeing are expressions, right ones and wrong ones.
var agreeing = []string{
	"self.spec.maybe == 1 ? downstreams.blue.status : downstreams.green.status",
	"true ? downstreams.blue.status : downstreams.other.status",
	"true ? downstreams.blue.metadata : self.metadata",
	"true ? self.spec : downstreams.other.spec",
	"downstreams.blue.spec.replicas + 1", "downstreams.blue.spec.replicas + 1.0", "downstreams.blue.spec.replicsa", "downstreams.blue.spec.paused",
	"downstreams.blue.spec.template.spec.containers.map(c, c.resources.limits.cpu)", "downstreams.blue.spec.template.spec.containers.map(c, c.nme)",
	"downstreams.blue.spec.strategy.rollingUpdate.maxSurge == 1", "downstreams.blue.status.conditions.filter(c, c.type == 'Available')",
	"downstreams.blue.metadata.labels['a']", "downstreams.blue.metadata.creationTimestamp > timestamp('2026-01-01T00:00:00Z')", "downstreams.blue.kind",
	"self.spec.dash__dash__ed", "self.spec.dashed", "self.spec.at.getFullYear()", "self.spec.at + 'a'", "self.spec.for > duration('1h')", "self.spec.for + 1",
	"self.spec.raw == b'a'", "self.spec.raw == 'a'", "self.spec.ratio > 1.0", "self.spec.ratio > 1", "self.spec.maybe > 1", "self.spec.maybe > 'a'", "self.spec.maybe == null",
	"self.spec.either == 1", "self.spec.either + 1", "self.spec.any.x.y", "self.spec.keeps.a + 1", "self.spec.keeps.b.c",
	"self.spec.object.metadata.name", "self.spec.object.kind", "self.spec.object.spec.a", "self.spec.object.spec.b", "self.spec.object.specs", "self.spec.empty.x",
	"self.spec.map.x.a + 1", "self.spec.map.x.b", "self.spec.map.all(k, k == 'a')", "self.spec.set.exists(s, s == 'a')", "self.spec.set.exists(s, s == 1)", "self.spec.set == ['a']",
	"self.spec.keyed[0].a", "self.spec.keyed[0].b", "self.spec.keyed.map(k, k.a).join(',')", "self.metadata.name.size()", "self.metadata.nmae", "self.metadata.generation + 1",
	"self.apiVersion + self.kind", "self.status.replicas + 1", "self.status.out.x", "self.specs", "has(self.spec.maybe)", "self.spec.?maybe.orValue(2)", "self.?spec.?nope.orValue(2)",
}

// problemsOf is what is wrong with a config.
func problemsOf(t *testing.T, text string, o compile.Options) string {
	t.Helper()
	p, out := compiledText(t, text, o)
	for i := 0; p != nil && i < len(p.Refusals); i++ {
		out += p.Refusals[i].Error() + "\n"
	}
	return out
}
