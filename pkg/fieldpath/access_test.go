package fieldpath

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corollary-dev/corollary/internal/must"
)

func object(t *testing.T, s string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

const pod = `{"metadata":{"labels":{"a.b/c":"x"}},"spec":{"nodeName":null,"containers":[
	{"name":"app","image":"i:1","ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":80,"protocol":"UDP","hostPort":81}]},
	{"name":"side","image":"s:1"},"odd"]}}`

func TestGet(t *testing.T) {
	obj := object(t, pod)
	for _, tc := range []struct {
		reason, path string
		want         any
		missing      bool
	}{
		{reason: "a key with dots", path: ".metadata.labels['a.b/c']", want: "x"},
		{reason: "null is there", path: ".spec.nodeName", want: nil},
		{reason: "an item by key", path: ".spec.containers[name=side].image", want: "s:1"},
		{reason: "an item by number", path: ".spec.containers[1].image", want: "s:1"},
		{reason: "keys that are numbers", path: ".spec.containers[name=app].ports[containerPort=80,protocol=UDP].hostPort", want: 81.0},
		{reason: "the first of several", path: ".spec.containers[0].ports[containerPort=80].protocol", want: "TCP"},
		{reason: "an item that is a scalar", path: ".spec.containers[2]", want: "odd"},
		{reason: "no such key", path: ".spec.replicas", missing: true},
		{reason: "below null", path: ".spec.nodeName.x", missing: true},
		{reason: "below a scalar", path: ".spec.containers[0].image.x", missing: true},
		{reason: "no such item", path: ".spec.containers[name=none]", missing: true},
		{reason: "beyond the end", path: ".spec.containers[3]", missing: true},
		{reason: "an index into a map", path: ".spec[0]", missing: true},
		{reason: "a key of a list", path: ".spec.containers.app", missing: true},
		{reason: "a selector into a map", path: ".spec[name=app]", missing: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, ok := Get(obj, MustParse(tc.path))
			if ok == tc.missing || !cmp.Equal(got, tc.want) {
				t.Errorf("got %v, %v", got, ok)
			}
		})
	}
	if got, ok := Get(obj, nil); !ok || !cmp.Equal(got, any(obj)) {
		t.Error("the empty path is the object")
	}
	for _, v := range []any{int64(8080), 8080.0} {
		list := map[string]any{"ports": []any{map[string]any{"port": v, "on": true}}}
		if _, ok := Get(list, MustParse(".ports[port=8080,on=true]")); !ok {
			t.Errorf("%T as a list key is not found", v)
		}
	}
}

func TestSet(t *testing.T) {
	for _, tc := range []struct{ reason, obj, path, want, err string }{
		{reason: "a key", obj: `{"a":{"b":1}}`, path: ".a.b", want: `{"a":{"b":"V"}}`},
		{reason: "missing maps are made", obj: `{}`, path: ".a['b.c'].d", want: `{"a":{"b.c":{"d":"V"}}}`},
		{reason: "null on the way counts as missing", obj: `{"a":null}`, path: ".a.b", want: `{"a":{"b":"V"}}`},
		{reason: "inside an item", obj: `{"a":[{"n":"x"},{"n":"y"}]}`, path: ".a[n=y].v", want: `{"a":[{"n":"x"},{"n":"y","v":"V"}]}`},
		{reason: "a whole item", obj: `{"a":[1,2]}`, path: ".a[1]", want: `{"a":[1,"V"]}`},
		{reason: "a scalar on the way", obj: `{"a":"s"}`, path: ".a.b", err: "setting .a.b: .a is a string, not a map"},
		{reason: "a number on the way", obj: `{"a":1}`, path: ".a.b.c", err: "setting .a.b.c: .a is a number, not a map"},
		{reason: "a boolean on the way", obj: `{"a":true}`, path: ".a[0]", err: "setting .a[0]: .a is a boolean, not a list"},
		{reason: "a list on the way", obj: `{"a":[]}`, path: ".a.b", err: "setting .a.b: .a is a list, not a map"},
		{reason: "a map where a list is meant", obj: `{"a":{}}`, path: ".a[0].b", err: "setting .a[0].b: .a is a map, not a list"},
		{reason: "a missing item is not made", obj: `{"a":[{"n":"x"}]}`, path: ".a[n=y].v",
			err: "setting .a[n=y].v: .a has no item [n=y] (it has 1 items)"},
		{reason: "a missing last item is not made", obj: `{"a":[]}`, path: ".a[0]", err: "setting .a[0]: .a has no item [0] (it has 0 items)"},
		{reason: "a missing list is not made, and nothing else either", obj: `{}`, path: ".a.b[0].c",
			err: "setting .a.b[0].c: . has no .a, and a list on the way is never created"},
		{reason: "a null item is not replaced", obj: `{"a":[null]}`, path: ".a[0].b", err: "setting .a[0].b: .a[0] is null, not a map"},
		{reason: "an index into the root", obj: `{}`, path: "[0]", err: "setting [0]: . is a map, not a list"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			obj := object(t, tc.obj)
			err := Set(obj, MustParse(tc.path), "V")
			if tc.err != "" {
				var ae *AccessError
				if !errors.As(err, &ae) || err.Error() != tc.err {
					t.Fatalf("got  %v\nwant %s", err, tc.err)
				}
				tc.want = tc.obj // a refused Set leaves the object alone
			} else if err != nil {
				t.Fatal(err)
			}
			must.Same(t, object(t, tc.want), obj)
		})
	}
	if err := Set(map[string]any{}, nil, 1); err == nil {
		t.Error("the root was set")
	}
	if err := Set(nil, New("a"), 1); err == nil {
		t.Error("a nil map was set")
	}
}

func TestRemove(t *testing.T) {
	for _, tc := range []struct {
		reason, obj, path, want string
		gone                    bool
	}{
		{"a key; its empty parent stays", `{"a":{"b":1}}`, ".a.b", `{"a":{}}`, true},
		{"null counts as there", `{"a":null}`, ".a", `{}`, true},
		{"an item by number", `{"a":[1,2,3]}`, ".a[1]", `{"a":[1,3]}`, true},
		{"an item by key", `{"a":[{"n":"x"},{"n":"y"}]}`, ".a[n=x]", `{"a":[{"n":"y"}]}`, true},
		{"the key that selects", `{"a":[{"n":"x","v":1}]}`, ".a[n=x].n", `{"a":[{"v":1}]}`, true},
		{"an item of an inner list", `{"a":[[1,2],[3]]}`, ".a[0][0]", `{"a":[[2],[3]]}`, true},
		{"nothing there", `{"a":{"b":1}}`, ".a.c", `{"a":{"b":1}}`, false},
		{"nothing there on the way", `{"a":{"b":1}}`, ".x.c", `{"a":{"b":1}}`, false},
		{"another type on the way", `{"a":"s"}`, ".a.b", `{"a":"s"}`, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			obj := object(t, tc.obj)
			must.Same(t, tc.gone, Remove(obj, MustParse(tc.path)), "reported")
			must.Same(t, object(t, tc.want), obj)
		})
	}
	if Remove(map[string]any{}, nil) {
		t.Error("the root was removed")
	}
	list := []any{1.0, 2.0}
	Remove(map[string]any{"a": list}, MustParse(".a[0]"))
	if !cmp.Equal(list, []any{1.0, 2.0}) {
		t.Error("the old list was changed")
	}
}
