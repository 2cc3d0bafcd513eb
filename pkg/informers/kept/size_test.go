package kept

import (
	"reflect"
	"testing"
)

// A process has a packed object for each upstream: what few of them need is in extras.
func TestPackedIsSmall(t *testing.T) {
	if size := reflect.TypeFor[Packed]().Size(); size > 112 { // a size class of Go
		t.Errorf("it has %d bytes without its text, want 112 at most", size)
	}
}
