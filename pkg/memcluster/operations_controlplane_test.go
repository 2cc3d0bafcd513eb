//go:build controlplane

package memcluster_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// arguments are what is written after an operation of pkg/apply.
type arguments struct {
	Of        int            // the step whose response it starts from; 0: an object with another uid
	Version   int            // the step whose response has the version, if it is another one
	Namespace string         // if not the row's
	Doc       map[string]any // without apiVersion and kind
	Status    map[string]any
	Policy    metav1.DeletionPropagation
	Names     []string // of finalizers, fields or managers
	Marks     apply.Marks
}

// operation is an operation of pkg/apply on an object named x.
type operation struct {
	*apply.Client
	arguments
	ctx     context.Context
	kind    schema.GroupVersionKind
	at      apply.Target
	live    *unstructured.Unstructured
	uid     types.UID
	version string
}

var operations = map[string]func(o *operation) (*unstructured.Unstructured, error){
	"Create":       func(o *operation) (*unstructured.Unstructured, error) { return o.Create(o.ctx, o.at, o.Doc) },
	"DryRunCreate": func(o *operation) (*unstructured.Unstructured, error) { return o.DryRunCreate(o.ctx, o.at, o.Doc) },
	"Accepts":      func(o *operation) (*unstructured.Unstructured, error) { return nil, o.Accepts(o.ctx, o.at, o.Doc) },
	"Apply":        func(o *operation) (*unstructured.Unstructured, error) { return o.Apply(o.ctx, o.at, o.uid, o.Doc) },
	"ApplyAt": func(o *operation) (*unstructured.Unstructured, error) {
		return o.ApplyAt(o.ctx, o.at, o.uid, o.version, o.Doc)
	},
	"DryRunApply": func(o *operation) (*unstructured.Unstructured, error) {
		return o.DryRunApply(o.ctx, o.at, o.uid, o.Doc)
	},
	"AcceptsApply": func(o *operation) (*unstructured.Unstructured, error) {
		return nil, o.AcceptsApply(o.ctx, o.at, o.uid, o.Doc)
	},
	"Delete": func(o *operation) (*unstructured.Unstructured, error) {
		_, err := o.Delete(o.ctx, o.at, o.uid, o.Policy)
		return nil, err
	},
	"Get":    func(o *operation) (*unstructured.Unstructured, error) { return o.Get(o.ctx, o.at) },
	"Latest": func(o *operation) (*unstructured.Unstructured, error) { return o.Latest(o.ctx, o.at) },
	"Version": func(o *operation) (*unstructured.Unstructured, error) {
		_, err := o.Client.Version(o.ctx, o.at)
		return nil, err
	},
	"AddFinalizer": func(o *operation) (*unstructured.Unstructured, error) {
		return o.AddFinalizer(o.ctx, o.at, o.live, o.Names[0])
	},
	"SwapFinalizer": func(o *operation) (*unstructured.Unstructured, error) {
		return o.SwapFinalizer(o.ctx, o.at, o.live, o.Names[0], o.Names[1])
	},
	"RemoveFinalizer": func(o *operation) (*unstructured.Unstructured, error) {
		return o.RemoveFinalizer(o.ctx, o.at, o.live, o.Names...)
	},
	"ApplyStatus": func(o *operation) (*unstructured.Unstructured, error) {
		return o.ApplyStatus(o.ctx, o.at, o.kind.GroupVersion().String(), o.kind.Kind, true, o.uid, o.Status)
	},
	"PatchStatus": func(o *operation) (*unstructured.Unstructured, error) {
		return o.PatchStatus(o.ctx, o.at, true, o.version, o.uid, o.Status)
	},
	"WithdrawStatus": func(o *operation) (*unstructured.Unstructured, error) {
		return o.WithdrawStatus(o.ctx, o.at, o.live, true, o.Names[0])
	},
	"Null": func(o *operation) (*unstructured.Unstructured, error) {
		return o.Null(o.ctx, o.at, o.uid, o.version, o.paths())
	},
	"DryRunNull": func(o *operation) (*unstructured.Unstructured, error) {
		return o.DryRunNull(o.ctx, o.at, o.uid, o.version, o.paths())
	},
	"Release": func(o *operation) (*unstructured.Unstructured, error) { return o.Release(o.ctx, o.at, o.live, o.Marks) },
	"Unmark":  func(o *operation) (*unstructured.Unstructured, error) { return o.Unmark(o.ctx, o.at, o.live, o.Marks) },
	"TakeOver": func(o *operation) (*unstructured.Unstructured, error) {
		return o.TakeOver(o.ctx, o.at, o.live, o.Names)
	},
	"Stored": func(o *operation) (*unstructured.Unstructured, error) {
		o.live.Object["spec"] = o.Doc["spec"]
		return o.WouldStore(o.ctx, o.at, o.live)
	},
}

func (o *operation) paths() (paths []fieldpath.Path) {
	for _, name := range o.Names {
		paths = append(paths, fieldpath.MustParse(name))
	}
	return paths
}

// operate runs an operation of pkg/apply, which is written as `METHOD RESOURCE {of: 1, doc: {…}}`.
func (s *session) operate(st step, run func(*operation) (*unstructured.Unstructured, error)) (answer, shown any) {
	s.t.Helper()
	kind := map[string]schema.GroupVersionKind{"configmaps": {Version: "v1", Kind: "ConfigMap"},
		"widgets": {Group: "mem.example.com", Version: "v1", Kind: "Widget"}}[st.path]
	o := &operation{Client: s.apply, ctx: s.t.Context(), kind: kind, live: &unstructured.Unstructured{Object: map[string]any{}}}
	o.Doc = map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{}}
	text := must.Get(yaml.YAMLToJSONStrict([]byte(s.fill(st.body)))).In(s.t, st)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	must.Do(s.t, decoder.Decode(&o.arguments), st)
	for _, fields := range []map[string]any{o.Doc, o.Status} {
		must.Do(s.t, utiljson.ConvertMapNumbers(fields, 0))
	}
	o.at = apply.Target{GVR: kind.GroupVersion().WithResource(st.path), Namespace: cmp.Or(o.Namespace, s.ns), Name: "x"}
	o.live.SetUID("11111111-2222-3333-4444-555555555555")
	if o.Of > 0 {
		o.live = s.object(o.Of)
	}
	o.uid, o.version = o.live.GetUID(), o.live.GetResourceVersion()
	if o.arguments.Version > 0 {
		o.version = s.object(o.arguments.Version).GetResourceVersion()
	}
	out, err := run(o)
	if out != nil {
		answer = out.Object
	}
	failure := apply.Classify(err)
	return answer, map[string]any{
		"body":    s.masks.mask(normalJSON(s.t, answer)),
		"reason":  failure.Reason,
		"message": s.masks.text(failure.Message),
		"fields":  apply.InvalidFields(err),
	}
}
