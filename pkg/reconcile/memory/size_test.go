package memory

import (
	"reflect"
	"testing"
)

// A process has one Upstream for each upstream, and an Object for each of its objects: what few of them need is rare.
func TestMemoryOfAnUpstreamIsSmall(t *testing.T) {
	for _, row := range []struct {
		reason string
		of     reflect.Type
		most   uintptr
	}{
		{"a size class of Go", reflect.TypeFor[Upstream](), 256},
		{"a size class of Go, and no more than a multiple of it for several objects", reflect.TypeFor[Object](), 160},
	} {
		if size := row.of.Size(); size > row.most {
			t.Errorf("%s: a %s has %d bytes, want %d at most", row.reason, row.of, size, row.most)
		}
	}
}
