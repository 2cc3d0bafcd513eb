package kept

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/drift"
)

// Returned is what a watch keeps of the objects that the last writes of this process returned: it shows each of them
// once more, and need not read it again. That saves a sixth of what is allocated for each object written.
type Returned struct {
	mu    sync.Mutex
	last  [64]*drift.Live // a write and its event are milliseconds apart
	next  int
	until time.Time // nothing is looked for any more then
}

// returnedFor is for how long an event is awaited.
const returnedFor = 15 * time.Second

// Add notes an object as a write returned it, in the view of the watch. It may not be changed from then on.
func (r *Returned) Add(live *drift.Live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[r.next], r.until = live, time.Now().Add(returnedFor)
	r.next = (r.next + 1) % len(r.last)
}

// take removes and returns the state of an object that JSON has; nil if no write returned it.
func (r *Returned) take(data []byte) *drift.Live {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !time.Now().Before(r.until) {
		r.last = [len(r.last)]*drift.Live{}
		return nil
	}
	// A text before the metadata may look like it: then the object is read again.
	_, rest, _ := bytes.Cut(data, []byte(`"resourceVersion":"`))
	version, _, _ := bytes.Cut(rest, []byte(`"`))
	i := slices.IndexFunc(r.last[:], func(l *drift.Live) bool { return l != nil && l.ResourceVersion == string(version) })
	if i < 0 {
		return nil
	}
	live := r.last[i]
	h, err := decodeHead(data)
	if m := h.Metadata; err != nil || m.UID != live.UID || m.ResourceVersion != live.ResourceVersion ||
		h.APIVersion != live.APIVersion || h.Kind != live.Kind {
		return nil // whoever reads all of it says what is wrong
	}
	r.last[i] = nil
	return live
}

// LiveCodec reads the objects of a watch as ObjectCodec does, but for those that were returned.
type LiveCodec struct {
	ObjectCodec
	Returned *Returned
}

// Decode returns a *drift.Live for what was returned; those of a watch come without into.
func (c LiveCodec) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil {
		if live := c.Returned.take(data); live != nil {
			gvk := live.GroupVersionKind()
			return live, &gvk, nil
		}
	}
	return c.ObjectCodec.Decode(data, defaults, into)
}
