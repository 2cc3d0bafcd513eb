package kept

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Every object comes back as it was, whatever object its kind was seen with first, and whatever came later.
func TestTexts(t *testing.T) {
	settings := func(n, size int) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"App","metadata":{"name":"app-%d"},"spec":{"text":%q,"replicas":%d}}`,
			n, strings.Repeat(string(rune('a'+n%26)), size), n)
	}
	for _, row := range []struct {
		reason string
		in     []string
		before int // so many of the first one came before
	}{
		{"one object", []string{settings(1, 10)}, 0},
		{"few objects", []string{settings(1, 10), settings(2, 10), settings(3, 11)}, 0},
		{"objects that are alike", []string{settings(1, 10), settings(2, 10), settings(3, 11)}, period},
		{"the dictionary is made between two objects", []string{settings(1, 10), settings(2, 10), settings(3, 11)}, period - 1},
		{"the empty object before others", []string{`{}`, settings(1, 10)}, period},
		{"longer and longer objects, so that the dictionary is replaced",
			[]string{settings(1, 1), settings(2, 1000), settings(3, 10_000), settings(4, 100_000)}, period},
		{"one that is longer than a dictionary and a window",
			[]string{settings(1, 1_500_000), settings(2, 1_500_000), settings(3, 1)}, period},
		{"texts that look like nothing else", []string{`{"a":"\u0000é\\"}`, `{"b":9007199254740993,"c":[null,true,1.5]}`}, period},
	} {
		t.Run(row.reason, func(t *testing.T) {
			all := NewTexts()
			for range row.before {
				all.compress(schema.GroupVersionKind{Kind: "App"}, []byte(row.in[0]))
			}
			made := make([]text, len(row.in))
			var group sync.WaitGroup
			for i, in := range row.in {
				group.Go(func() { all.put(schema.GroupVersionKind{Kind: "App"}, []byte(in), &made[i]) }) // watches run at the same time
			}
			group.Wait()
			for range 2 { // at once, and while they are compressed and after that
				for i, in := range row.in {
					group.Go(func() { // workers read at the same time
						got, err := made[i].object()
						if err != nil {
							t.Errorf("object %d: %v", i, err)
							return
						}
						var want map[string]any
						if err := utiljson.Unmarshal([]byte(in), &want); err != nil {
							t.Error(err)
						} else if !reflect.DeepEqual(got, want) {
							t.Errorf("object %d is another one", i)
						}
					})
				}
				group.Go(all.compressFresh)
			}
			group.Wait()
		})
	}
}

// What is new is compressed after a while, or when there is too much of it.
func TestFreshTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := NewTexts()
		large := []byte(`{"a":"` + strings.Repeat("x", maxFresh/2) + `"}`)
		made := make([]text, 3)
		for i, fresh := range []int{1, 0, 1} {
			all.put(schema.GroupVersionKind{}, large, &made[i])
			all.freshMu.Lock()
			if n := len(all.fresh); n != fresh {
				t.Errorf("after %d texts, %d are not compressed, want %d", i+1, n, fresh)
			}
			all.freshMu.Unlock()
		}
		<-time.After(freshFor)
		synctest.Wait()
		for i := range made {
			if n := len(made[i].Load().bytes); n > 1000 {
				t.Errorf("text %d has %d bytes", i, n)
			}
		}
		all.freshMu.Lock()
		defer all.freshMu.Unlock()
		if all.bytes+len(all.fresh) > 0 {
			t.Errorf("%d texts of %d bytes are left", len(all.fresh), all.bytes)
		}
	})
}

// Of an object that is like another one of its kind, little more is kept than what only it has.
func TestTextsAreSmall(t *testing.T) {
	all := NewTexts()
	object := func(name, value string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"App","metadata":{"name":%q,"labels":{"app.kubernetes.io/managed-by":"someone"}},
			"spec":{"storageClassName":"fast","accessModes":["ReadWriteOnce"],"password":%q},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, name, value)
	}
	for i := range period + 1 {
		all.compress(schema.GroupVersionKind{}, object(fmt.Sprintf("first-%d", i), "none"))
	}
	if made := all.compress(schema.GroupVersionKind{}, object("second", "b0c4d8a1")); len(made.bytes) > 70 {
		t.Errorf("it takes %d bytes", len(made.bytes))
	}
}
