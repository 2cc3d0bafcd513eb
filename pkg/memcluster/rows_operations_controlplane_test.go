//go:build controlplane

package memcluster_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgets    = schema.GroupVersionResource{Group: "mem.example.com", Version: "v1", Resource: "widgets"}
)

const otherManager = types.UID("11111111-2222-3333-4444-555555555555")

func (s *session) at(gvr schema.GroupVersionResource) apply.Target {
	return apply.Target{GVR: gvr, Namespace: s.ns, Name: "x"}
}

func dataOf(keys ...string) map[string]any {
	data := map[string]any{}
	for i := 0; i < len(keys); i += 2 {
		data[keys[i]] = keys[i+1]
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{}, "data": data}
}

func specOf(spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "mem.example.com/v1", "kind": "Widget", "metadata": map[string]any{}, "spec": spec}
}

func do(f func(*session) (any, error)) step { return step{apply: f} }

// The operations of pkg/apply on a ConfigMap or a Widget named x; of is the step whose response an operation starts from.
func created(document map[string]any, gvr schema.GroupVersionResource) step {
	return do(func(s *session) (any, error) { return s.apply.Create(s.t.Context(), s.at(gvr), document) })
}

func applied(of int, document map[string]any, gvr schema.GroupVersionResource) step {
	return do(func(s *session) (any, error) {
		return s.apply.Apply(s.t.Context(), s.at(gvr), s.object(of).GetUID(), document)
	})
}

func deleted(of int, gvr schema.GroupVersionResource, policy metav1.DeletionPropagation) step {
	return do(func(s *session) (any, error) {
		return s.apply.Delete(s.t.Context(), s.at(gvr), s.object(of).GetUID(), policy)
	})
}

// operationRows returns the rows about operations of pkg/apply.
func operationRows() []row {
	x, wx := cm+"/x", wd+"/x"
	get := step{method: "GET", path: x}
	return []row{
		{"Create", "and again: ErrExists", []step{created(dataOf("k", "1"), configMaps), created(dataOf("k", "2"), configMaps), get}},
		{"Create in a missing namespace", "NamespaceNotFound", []step{do(func(s *session) (any, error) {
			return s.apply.Create(s.t.Context(), apply.Target{GVR: configMaps, Namespace: "missing", Name: "x"}, dataOf())
		})}},
		{
			"Create of what is not valid",
			"Rejected and SchemaMismatch",
			[]step{created(specOf(map[string]any{"size": int64(1000)}), widgets), created(specOf(map[string]any{"nope": int64(1)}), widgets),
				created(specOf(map[string]any{"color": "blue"}), widgets)},
		},
		{
			"Apply",
			"by the uid; ErrGone and ErrReplaced",
			[]step{created(dataOf("k", "1", "l", "1"), configMaps), applied(1, dataOf("k", "2"), configMaps),
				do(func(s *session) (any, error) {
					return s.apply.Apply(s.t.Context(), s.at(configMaps), otherManager, dataOf())
				}),
				deleted(1, configMaps, metav1.DeletePropagationBackground), applied(1, dataOf("k", "3"), configMaps)},
		},
		{"ApplyAt", "at a version, else ErrConflict", []step{created(dataOf("k", "1"), configMaps),
			do(func(s *session) (any, error) {
				return s.apply.ApplyAt(s.t.Context(), s.at(configMaps), s.object(1).GetUID(), s.object(1).GetResourceVersion(), dataOf("k", "2"))
			}),
			do(func(s *session) (any, error) {
				return s.apply.ApplyAt(s.t.Context(), s.at(configMaps), s.object(1).GetUID(), s.object(1).GetResourceVersion(), dataOf("k", "3"))
			})}},
		{
			"Apply of an immutable field",
			"Rejected, and the field",
			[]step{created(specOf(map[string]any{"color": "red"}), widgets), applied(1, specOf(map[string]any{"color": "green"}), widgets)},
		},
		{"DryRunApply and DryRunCreate", "nothing is stored", []step{created(dataOf("k", "1"), configMaps),
			do(func(s *session) (any, error) {
				return s.apply.DryRunApply(s.t.Context(), s.at(configMaps), s.object(1).GetUID(), dataOf("k", "2"))
			}),
			do(func(s *session) (any, error) {
				return s.apply.DryRunCreate(s.t.Context(), s.at(configMaps), dataOf("k", "2"))
			}),
			do(func(s *session) (any, error) {
				return s.apply.DryRunCreate(s.t.Context(), s.at(widgets), specOf(map[string]any{"size": int64(1000)}))
			}),
			do(func(s *session) (any, error) {
				return nil, s.apply.Accepts(s.t.Context(), s.at(configMaps), dataOf("k", "2"))
			}),
			do(func(s *session) (any, error) {
				return nil, s.apply.AcceptsApply(s.t.Context(), s.at(configMaps), s.object(1).GetUID(), dataOf("k", "2"))
			}), get}},
		{
			"Get, Latest and Version",
			"ErrGone",
			[]step{
				do(
					func(s *session) (any, error) { return s.apply.Get(s.t.Context(), s.at(configMaps)) },
				),
				do(func(s *session) (any, error) { return s.apply.Latest(s.t.Context(), s.at(configMaps)) }),
				created(dataOf("k", "1"), configMaps),
				do(func(s *session) (any, error) { return s.apply.Latest(s.t.Context(), s.at(configMaps)) }),
				do(func(s *session) (any, error) {
					_, err := s.apply.Version(s.t.Context(), s.at(configMaps))
					return nil, err
				}),
				do(func(s *session) (any, error) { return s.apply.Get(s.t.Context(), s.at(widgets)) }),
			},
		},
		{"finalizers", "added, renamed, removed; ErrConflict", []step{{method: "POST", path: wd, body: widget},
			do(func(s *session) (any, error) {
				return s.apply.AddFinalizer(s.t.Context(), s.at(widgets), s.object(1), "example.com/a")
			}),
			do(func(s *session) (any, error) {
				return s.apply.AddFinalizer(s.t.Context(), s.at(widgets), s.object(1), "example.com/b")
			}),
			do(func(s *session) (any, error) {
				return s.apply.AddFinalizer(s.t.Context(), s.at(widgets), s.object(2), "example.com/b")
			}),
			do(func(s *session) (any, error) {
				return s.apply.SwapFinalizer(s.t.Context(), s.at(widgets), s.object(4), "example.com/a", "example.com/c")
			}),
			deleted(1, widgets, metav1.DeletePropagationBackground), {method: "GET", path: wx},
			do(func(s *session) (any, error) {
				return s.apply.AddFinalizer(s.t.Context(), s.at(widgets), s.object(7), "example.com/z")
			}),
			do(func(s *session) (any, error) {
				return s.apply.RemoveFinalizer(s.t.Context(), s.at(widgets), s.object(7), "example.com/b", "example.com/c")
			}),
			do(func(s *session) (any, error) {
				return s.apply.RemoveFinalizer(s.t.Context(), s.at(widgets), s.object(7), "example.com/b")
			})}},
		{"ApplyStatus and PatchStatus", "by uid and version", []step{{method: "POST", path: wd, body: widget},
			do(func(s *session) (any, error) {
				return s.apply.ApplyStatus(
					s.t.Context(),
					s.at(widgets),
					"mem.example.com/v1",
					"Widget",
					true,
					s.object(1).GetUID(),
					map[string]any{"count": int64(1)},
				)
			}),
			do(func(s *session) (any, error) {
				return s.apply.ApplyStatus(
					s.t.Context(),
					s.at(widgets),
					"mem.example.com/v1",
					"Widget",
					true,
					otherManager,
					map[string]any{"count": int64(2)},
				)
			}),
			do(func(s *session) (any, error) {
				return s.apply.ApplyStatus(
					s.t.Context(),
					s.at(widgets),
					"mem.example.com/v1",
					"Widget",
					true,
					s.object(1).GetUID(),
					map[string]any{"phase": "Odd"},
				)
			}),
			do(func(s *session) (any, error) {
				return s.apply.ApplyStatus(
					s.t.Context(),
					s.at(widgets),
					"mem.example.com/v1",
					"Widget",
					true,
					s.object(1).GetUID(),
					map[string]any{"nope": "Odd"},
				)
			}),
			{method: "GET", path: wx},
			do(func(s *session) (any, error) {
				return s.apply.PatchStatus(
					s.t.Context(),
					s.at(widgets),
					true,
					s.object(6).GetResourceVersion(),
					s.object(1).GetUID(),
					map[string]any{"phase": "Good", "nope": "x"},
				)
			}),
			do(func(s *session) (any, error) {
				return s.apply.PatchStatus(
					s.t.Context(),
					s.at(widgets),
					true,
					s.object(1).GetResourceVersion(),
					s.object(1).GetUID(),
					map[string]any{"phase": "Bad"},
				)
			}),
			do(func(s *session) (any, error) {
				return s.apply.WithdrawStatus(s.t.Context(), s.at(widgets), s.object(7), true, "operator")
			})}},
		{
			"Null",
			"takes fields away and leaves our entry",
			[]step{
				created(dataOf("k", "1"), configMaps),
				{method: "MERGE", path: x + asB, body: `{"data":{"z":"1"},"metadata":{"labels":{"y":"1"}}}`},
				do(func(s *session) (any, error) {
					return s.apply.DryRunNull(
						s.t.Context(),
						s.at(configMaps),
						s.object(1).GetUID(),
						s.object(2).GetResourceVersion(),
						[]fieldpath.Path{fieldpath.MustParse(".data.z")},
					)
				}),
				do(func(s *session) (any, error) {
					return s.apply.Null(
						s.t.Context(),
						s.at(configMaps),
						s.object(1).GetUID(),
						s.object(2).GetResourceVersion(),
						[]fieldpath.Path{fieldpath.MustParse(".data.z"), fieldpath.MustParse(".metadata.labels.y")},
					)
				}),
				do(func(s *session) (any, error) {
					return s.apply.Null(
						s.t.Context(),
						s.at(configMaps),
						s.object(1).GetUID(),
						s.object(2).GetResourceVersion(),
						[]fieldpath.Path{fieldpath.MustParse(".data.k")},
					)
				}),
				do(func(s *session) (any, error) {
					return s.apply.Null(
						s.t.Context(),
						s.at(configMaps),
						otherManager,
						s.object(4).GetResourceVersion(),
						[]fieldpath.Path{fieldpath.MustParse(".data.k")},
					)
				}),
			},
		},
		{"Delete", "by uid; another one has the name; gone", []step{created(dataOf("k", "1"), configMaps),
			do(func(s *session) (any, error) {
				return s.apply.Delete(s.t.Context(), s.at(configMaps), otherManager, metav1.DeletePropagationForeground)
			}),
			deleted(1, configMaps, metav1.DeletePropagationBackground), deleted(1, configMaps, metav1.DeletePropagationBackground)}},
		{
			"Release and Unmark",
			"take our marks off",
			[]step{
				{method: "POST", path: wd, body: widget},
				{
					method: "APPLY",
					path:   x + "?fieldManager=operator",
					body: configMapWith(
						`,"labels":{"a":"1","b":"2"},"annotations":{"example.com/x/y":"1"},"ownerReferences":[{"apiVersion":"mem.example.com/v1","kind":"Widget","name":"x","uid":"${1.metadata.uid}"}]`,
						`{"k":"1"}`,
					),
					message: true,
				},
				{
					method: "APPLY",
					path:   x + "?fieldManager=operator",
					body: configMapWith(
						`,"labels":{"a":"1","b":"2"},"annotations":{"example.com/y":"1"},"ownerReferences":[{"apiVersion":"mem.example.com/v1","kind":"Widget","name":"x","uid":"${1.metadata.uid}"}]`,
						`{"k":"1"}`,
					),
				},
				do(func(s *session) (any, error) {
					return s.apply.Unmark(s.t.Context(), s.at(configMaps), s.object(3), apply.Marks{Labels: []string{"a"}})
				}),
				do(func(s *session) (any, error) {
					return s.apply.Release(
						s.t.Context(),
						s.at(configMaps),
						s.object(4),
						apply.Marks{OwnerUID: s.object(1).GetUID(), Labels: []string{"b"}, Annotations: []string{"example.com/y"}},
					)
				}),
				get,
				{method: "MERGE", path: x + asB, body: `{"data":{"k":"1"}}`},
			},
		},
		{
			"TakeOver",
			"the fields of former managers become ours",
			[]step{{method: "APPLY", path: x + "?fieldManager=former", body: configMapWith(``, `{"k":"1","l":"1"}`)},
				{method: "MERGE", path: x + "?fieldManager=before", body: `{"data":{"m":"1"}}`},
				do(func(s *session) (any, error) {
					return s.apply.TakeOver(s.t.Context(), s.at(configMaps), s.object(2), []string{"former", "before"})
				}),
				applied(1, dataOf("k", "2"), configMaps)},
		},
		{"Stored", "what several writes would come to", []step{created(specOf(map[string]any{"color": "red"}), widgets),
			do(func(s *session) (any, error) {
				u := s.object(1).DeepCopy()
				u.Object["spec"] = map[string]any{"color": "red", "ports": []any{map[string]any{"name": "a"}}}
				return s.apply.Stored(s.t.Context(), s.at(widgets), u)
			}), {method: "GET", path: wx}}},
	}
}
